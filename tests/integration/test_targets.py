"""The target programs themselves: alone, each ends as it says and prints the same every time.

What they prove about sonde rests on this.
"""

import shutil

import pytest

from programs import FAULTS, TRUTHS, arguments_of, label
from runs import run


@pytest.mark.parametrize("program", TRUTHS + FAULTS, ids=label)
def test_a_target_is_the_same_every_time(target, environment, program):
    command = [target(program.name), *arguments_of(program, target)]
    first, second = run(command, env=environment), run(command, env=environment)
    assert first.status == program.status, first
    assert first.stdout and first.stdout == second.stdout
    assert first.stderr == ""


def test_every_target_is_run(root):
    sources = {path.stem for path in (root / "tests/targets").glob("*.c*")}
    sources -= {"answer", "brought", "lib_bump", "waiting"}  # libraries
    # What tests of one kind run: the heap's, limits', budgets', traces', comparisons', live sessions',
    # attaching's, locked memory's, jumps'.
    sources -= {"heap", "deny", "grows", "allocates", "instrumented", "late", "marks", "mixture", "changes",
                "still", "locks", "jumps"}
    assert sources == {program.name for program in TRUTHS + FAULTS}


def test_inline_prints_the_lines_of_its_work(root, target, environment):
    source = (root / "tests/targets/inline.c").read_text().splitlines()
    printed = run([target("inline"), 1], env=environment).stdout.split("\n")
    work = {"inner": "seed = seed *", "middle": "seed = inner(", "outer": "seed = middle("}
    for line in printed[:3]:
        name, number = line.split()
        assert work[name] in source[int(number) - 1]


def test_perf_finds_the_known_shares(target, tmp_path, environment):
    """An oracle for the oracle: perf's samples fall 60, 30 and 10 % into the three functions."""
    if not shutil.which("perf"):
        pytest.skip("perf is not installed")
    data = tmp_path / "perf.data"
    made = run(["perf", "record", "-q", "-e", "cpu-clock:u", "-F", 1999, "-o", data,
                target("shares")], env=environment)
    if made.status != 0:
        pytest.skip(f"perf may not sample here: {made.stderr.strip().splitlines()[:1]}")
    shown = run(["perf", "script", "-i", data, "-F", "ip,sym"], env=environment)
    listed = [line.split()[-1] for line in shown.stdout.splitlines() if line.strip()]
    assert len(listed) > 500, shown
    for name, percent in (("most", 60), ("some", 30), ("least", 10)):
        assert abs(100 * listed.count(name) / len(listed) - percent) < 3, (name, len(listed))
