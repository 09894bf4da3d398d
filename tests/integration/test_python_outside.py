"""Python somewhere in a tree that another program began: without any option its functions are seen,
read from outside, and nothing of that shows in the programs."""

import contextlib
import os
import re
import subprocess
import sys

import pytest

from pythons import FOUND, embedded, folded, held, minor, python, script, slept, some_python

pytestmark = pytest.mark.skipif(not FOUND, reason="no interpreter was found")

WORK = """
    import sys


    def sixty(n):
        return spin(60 * n)


    def forty(n):
        return spin(40 * n)


    def rounds():
        for i in range(int(sys.argv[1])):
            n = 300 + 137 * i % 1000
            sixty(n)
            forty(n)


    rounds()
    """


def shares(stacks):
    """{function: samples in it or what it calls}"""
    counts = {}
    for frames, count in stacks:
        for frame in set(frames):
            counts[frame] = counts.get(frame, 0) + count
    return counts


def pythons(report):
    """The rows of those that run the script."""
    return [row for row in report.processes if "app.py" in (row["arguments"] or "") and
            not row["arguments"].startswith(("/bin/sh", "/usr/bin/make"))]


def by_process(recording):
    """{pid: stacks without it}"""
    made = {}
    for frames, count in folded(recording, "--by-process"):
        made.setdefault(int(frames[0].rpartition("-")[2]), []).append((frames[1:], count))
    return made


def test_every_interpreter_of_a_tree(harness, script):
    """One shell starts them all; each has its shares, whoever read them."""
    app = script(WORK)
    shell = "env | grep -c LD_PRELOAD\n" + "".join(f"{path} {app} 80\n" for path in FOUND)
    run = harness("/bin/sh", "-c", shell, options=["--rate", "1997"])
    report = run.check(together=True)
    assert any("with nothing put into the processes" in note for note in report.notes), report.notes
    assert len(pythons(report)) == len(FOUND)
    stacks = by_process(run.recording)
    for row in pythons(report):
        counts = shares(stacks[row["pid"]])
        for frames, _ in stacks[row["pid"]]:
            if "sixty" in frames:
                assert frames.index("<module>") < frames.index("rounds") < frames.index("sixty"), frames
        known = counts["sixty"] + counts["forty"]
        assert counts["rounds"] > 0.7 * counts["<module>"] and known > 0.95 * counts["rounds"], row
        assert abs(100 * counts["sixty"] / known - 60) < 12, (row, counts["sixty"], known)


@contextlib.contextmanager
def load():
    """Every CPU is wanted by somebody else as well."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    yield
    for other in others:
        other.kill()
        other.wait()


def read_from_outside(report):
    """(stacks, of them copied by the kernel, rejected)"""
    told = re.compile(r"(\d+) Python stacks were read.*: (\d+) by the kernel at the sample itself.*; (\d+) were rejected")
    return next(tuple(map(int, found.groups())) for found in map(told.search, report.notes) if found)


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel copies frames for root alone")
def test_frames_of_the_very_instant(harness, python, script):
    """Calls are over within a microsecond, and whoever reads them comes late: only a copy that was
    made at the sample can have the function that ran then."""
    app = script("""
        def leaf(n):
            return n + 1

        def left(n):
            return leaf(n) + leaf(n)

        def right(n):
            return leaf(leaf(n))

        def rounds():
            for i in range(2000000):
                left(i)
                right(i)

        rounds()
        """)
    with load():
        recording = harness("/bin/sh", "-c", f"{python} {app}; true", options=["--rate", "1997"]).record()
    stacks, copied, rejected = read_from_outside(recording.report())
    assert copied > 0.9 * stacks and rejected < 0.02 * stacks + 10, (stacks, copied, rejected)
    for frames, _ in folded(recording):
        if "leaf" in frames:
            assert frames[frames.index("leaf") - 2] == "rounds", frames
            assert frames[frames.index("leaf") - 1] in ("left", "right"), frames
    counts = shares(folded(recording))
    assert min(counts["leaf"], counts["left"], counts["right"]) > 100, counts


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel copies frames for root alone")
@pytest.mark.parametrize("depth", [150, 900, 3000])
def test_deep_frames_are_copied_whole(harness, some_python, script, depth):
    if minor(some_python) < 11:
        depth = min(depth, 900)  # each frame has one of C: more are a megabyte of stack a sample
    app = script(f"""
        import sys, threading

        def deep(n):
            return deep(n - 1) if n else spin(12000000)

        sys.setrecursionlimit(20000)
        threading.stack_size(512 << 20)
        t = threading.Thread(target=deep, args=({depth},))
        t.start()
        t.join()
        """)
    recording = harness("/bin/sh", "-c", f"{some_python} {app}; true", options=["--rate", "499"]).record()
    stacks, copied, _ = read_from_outside(recording.report())
    deep = [frames.count("deep") for frames, _ in folded(recording) if "spin" in frames]
    assert copied > 0.8 * stacks - 10 and deep and min(deep) == max(deep) == depth + 1, (stacks, copied, deep)


def test_short_lives(harness, some_python, script):
    """Each is over before the collector would look by itself."""
    app = script("import json\nspin(200000)\n")
    run = harness("/bin/sh", "-c", f"for i in 1 2 3 4 5 6 7 8 9 10; do {some_python} {app}; done",
                  options=["--rate", "1997"])
    report = run.check()
    assert len(pythons(report)) == 10
    counts = shares(folded(run.recording))
    loop = sum(count for frames, count in folded(run.recording)
               if any("EvalFrameDefault" in frame for frame in frames) and "<module>" not in frames)
    assert counts["spin"] > 20 and counts["<module>"] > loop, (counts["<module>"], loop)


def test_workers_of_a_server(harness, some_python, script, tmp_path):
    """A script with #! that forks its workers, started by make."""
    app = script(f"""
        import os


        def worker(n):
            spin(3000000)
            os._exit(n)


        for n in range(3):
            if not os.fork():
                worker(n)
        print(sorted(os.wait()[1] >> 8 for _ in range(3)))
        """)
    app.write_text(f"#!{some_python}\n" + app.read_text())
    app.chmod(0o755)
    (tmp_path / "Makefile").write_text(f"all:\n\t@{app}\n")
    run = harness("/usr/bin/make", "-s", "-C", tmp_path, options=["--rate", "1997"])
    report = run.check()
    counts = shares(folded(run.recording))
    assert counts["worker"] > 0.4 * sum(count for _, count in folded(run.recording)), counts
    assert counts["spin"] > 0.9 * counts["worker"]


def test_other_name(harness, some_python, tmp_path):
    """An interpreter in a program of another name: its library tells."""
    run = harness(embedded(some_python, tmp_path), options=["--rate", "1997"])
    report = run.check()
    assert report.share("inside") > 8 and report.share("from_c") > 8, report.answer


def test_blocked(harness, some_python, script):
    app = script("""
        import threading, time


        def nap():
            for _ in range(10):
                time.sleep(0.03)


        threading.Thread(target=nap, name="napping").start()
        """)
    recording = harness("/bin/sh", "-c", f"{some_python} {app}; true", options=["--wall"]).record()
    assert slept(recording)["nap"] > 1e8


def test_heap_of_a_tree(harness, some_python, script):
    """An agent is there for the heap: then it tells of Python too."""
    app = script("""
        def make():
            return bytearray(30 << 20)


        kept = make()
        spin(300000)
        """)
    recording = harness("/bin/sh", "-c", f"{some_python} {app}; true", options=["--heap"]).record()
    assert held(recording)["make"] >= 30 << 20
    assert not any("nothing put into" in note for note in recording.report().notes)


def test_no_python(harness, some_python, script):
    run = harness("/bin/sh", "-c", f"{some_python} {script(WORK)} 20; true", options=["--no-python"])
    report = run.check()
    assert not report.share("rounds") and report.facts("totals")["samples"]
    assert not any("outside" in note for note in report.notes)
