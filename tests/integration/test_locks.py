"""Programs that lock their memory: what they asked for is locked, the agent's tables are not."""

import re
import shutil

import pytest

from runs import run

MODES = {"samples": [], "heap": ["--heap"], "heap and calls": ["--heap", "--trace"]}
OWN = 2000  # kB: the agent's code and what it has of its own beside tables


def locked(made):
    """What it printed; kB that were locked at once and in the end, and the most that was resident."""
    assert made.status == 0, made
    return made.stdout, [int(word) for word in re.findall(r"(\d+) kB", made.stderr)]


def compare(sonde, options, command, tmp_path):
    alone, (at_once, at_end, resident) = locked(run(command))
    told, figures = locked(sonde("run", "-q", "-o", tmp_path / "r.sonde", *options, "--", *command))
    assert told == alone and "mlockall 0" in told
    assert figures[0] <= at_once + OWN and figures[1] <= at_end + OWN, (at_once, at_end, figures)
    assert figures[2] <= resident + 4 * OWN, (resident, figures)


@pytest.mark.parametrize("what", ["current", "future", "both"])
@pytest.mark.parametrize("mode", MODES)
def test_the_tables_are_not_locked(sonde, target, tmp_path, mode, what):
    compare(sonde, MODES[mode], [target("locks"), what], tmp_path)


@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")
@pytest.mark.parametrize("what", ["current", "future"])
def test_the_tables_count_for_no_limit(sonde, target, tmp_path, what):
    """Without the right to lock as much as it likes, in 8 MB: enough for the program, not for them."""
    command = ["setpriv", "--bounding-set", "-ipc_lock", "prlimit", "--memlock=8388608:8388608",
               target("locks"), what]
    if run(command).status != 0:
        pytest.skip("not allowed here")
    compare(sonde, ["--heap"], command, tmp_path)
