"""Python under `sonde run`: its functions, files and lines in the place of the interpreter's, native
code between them, in every process of a tree; and programs that notice nothing of it."""

import os
import shutil
import signal
import time

import pytest

from pythons import (FOUND, check_quiet, embedded, folded, minor, name_of, python, script,
                     some_python)
from runs import Recording, run

pytestmark = pytest.mark.skipif(not FOUND, reason="no interpreter was found")


def test_shares_and_lines(harness, python, script):
    """60, 30 and 10 in a hundred; in turns, since the machine is not equally fast all the time, of
    changing length, so as not to keep step with the samples."""
    app = script("""
        class Work:
            def sixty(self, n):
                return spin(60 * n)

            def thirty(self, n):
                return spin(30 * n)


        def ten(n):
            return spin(10 * n)


        def rounds():
            work = Work()
            for i in range(250):
                n = 500 + 137 * i % 1000
                work.sixty(n)
                work.thirty(n)
                ten(n)


        rounds()
        """)
    run = harness(python, app, options=["--rate", "2000"])
    report = run.check()
    method = "Work.{}" if minor(python) >= 11 else "{}"
    whole = report.share("rounds")  # "main" is the interpreter's as well
    assert whole > 80
    for name, share in [(method.format("sixty"), 60), (method.format("thirty"), 30), ("ten", 10)]:
        assert abs(100 * report.share(name) / whole - share) < 4, report.answer
    check_quiet(report)
    facts = report.facts("totals")
    rate = facts["samples"] / (report.processes[0]["cpu_counted"] / 1e9)
    assert rate > 1700, "the kernel's tick would give 250 here"
    lines = lines_of(run, "spin")
    assert lines[4] + lines[5] > 0.95 * sum(lines.values()), lines


def lines_of(run, function):
    """{line: total} of a function in the recording that `run` made."""
    rows = Recording(run.sonde, run.environment, run.path).show(
        "--json", "--lines", command="report").json["sections"]
    return {row["line"]: row["total"] for row in rows["lines"]["rows"]
            if (row["file"] or "").endswith("app.py") and row["function"] == function}


def test_native_between(harness, python, script):
    """Python that C code calls back stands above that code, for each way of calling."""
    app = script("""
        import json
        import re


        def key(x):
            return spin(40)


        def replace(match):
            spin(40)
            return "x"


        def hook(thing):
            spin(40)
            return thing


        def steps(n):
            for i in range(n):
                yield spin(40)


        text = json.dumps([{"a": 1}] * 2000)
        for _ in range(40):
            sorted(range(2000), key=key)
            re.sub("a", replace, "ab" * 2000)
            json.loads(text, object_hook=hook)
            sum(steps(2000))
        """)
    recording = harness(python, app, options=["--rate", "1000"]).record()
    stacks = folded(recording)
    natives = {"key": "sort", "replace": "pattern_sub", "hook": "parse_object",
               "steps": "builtin_sum"}
    for function, native in natives.items():
        mine = [(frames, count) for frames, count in stacks if function in frames]
        samples = sum(count for _, count in mine)
        assert samples > 50, function
        ordered = sum(count for frames, count in mine
                      if frames.index("<module>") < frames.index(function) and
                      (name_of(python).startswith("debian") or
                       any(native in frame for frame in frames[:frames.index(function)])))
        assert ordered >= 0.98 * samples, (function, mine[:3])
        spun = sum(count for frames, count in mine
                   if "spin" in frames and frames.index("spin") > frames.index(function))
        assert spun > 0.5 * samples, function
    # But for a call of the loop that has only begun.
    loops = sum(count for frames, count in stacks if "key" in frames and
                any("EvalFrameDefault" in frame for frame in frames))
    assert loops <= 0.03 * sum(count for frames, count in stacks if "key" in frames)
    check_quiet(recording.report())


def test_no_native(harness, some_python, script):
    app = script("for _ in range(20):\n    sorted(range(2000), key=lambda x: spin(40))\n")
    recording = harness(some_python, app, options=["--rate", "1000", "--no-native"]).record()
    kinds = {frame for frames, _ in folded(recording) for frame in frames if "spin" in frames}
    assert kinds and not any("sort" in frame for frame in kinds), kinds


def test_no_python(harness, some_python, script):
    app = script("for _ in range(40):\n    spin(20000)\n")
    report = harness(some_python, app, options=["--no-python"]).check()
    assert not report.share("spin") and report.facts("totals")["samples"]


DEEP = """
    import sys, threading, time

    def deep(n):
        if n:
            return deep(n - 1)
        while time.process_time() < {seconds}:
            spin(20000)

    def run():
        deep({depth})

    sys.setrecursionlimit(20000)
    threading.stack_size(512 << 20)
    t = threading.Thread(target=run)
    t.start()
    t.join()
    """


def deep_stacks(recording):
    """Calls of `deep` in each stack at its bottom: of those that are whole, and of those marked as cut."""
    seen = [(frames.count("deep"), "[cut]" in frames) for frames, _ in folded(recording) if "spin" in frames]
    return [count for count, cut in seen if not cut], [count for count, cut in seen if cut]


@pytest.mark.parametrize("depth", [900, 3000])
def test_recursion(harness, some_python, script, depth):
    """Long enough for the agent to see some of it, and then the kernel."""
    app = script(DEEP.format(depth=depth, seconds=1.6))
    rate = 499 if depth < 1000 else 199  # a sample of thousands of frames is half a megabyte
    recording = harness(some_python, app, options=["--rate", rate]).record()
    assert recording.made.status == 0, recording.made
    said = recording.report().profiler
    assert said["lost"] <= 0.25 * said["generated"], "on the way down each sample is a long one"
    whole, cut = deep_stacks(recording)
    assert whole and set(whole) == {depth + 1}, whole
    assert said["stacks_cut"] <= 0.1 * said["stacks"] and len(cut) <= said["stacks_cut"], cut


def test_deep_stacks_that_are_read_late(started, sonde_path, recording, some_python, script, tmp_path):
    """Where the ring of copies is full before anybody reads it, a stack is whole or says that it is not."""
    app, path = script(DEEP.format(depth=3000, seconds=2.5)), tmp_path / "late.sonde"
    collector = started([sonde_path, "run", "--rate", "997", "-o", path, "--", some_python, app])
    while collector.poll() is None:
        collector.send_signal(signal.SIGSTOP)
        time.sleep(0.04)
        collector.send_signal(signal.SIGCONT)
        time.sleep(0.04)
    collector.communicate()
    assert collector.returncode == 0
    whole, cut = deep_stacks(recording(path))
    assert whole and set(whole) == {3001}, whole
    assert len(cut) <= recording(path).report().profiler["stacks_cut"], cut


@pytest.mark.alone
@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel copies frames for root alone")
def test_settled_processes_have_no_signals(harness, python, script):
    """After half a second the kernel samples: threads from before and after, quick ones and a
    fork's child have the time that they took, whoever sampled them."""
    app = script("""
        import os, threading, time, warnings
        warnings.simplefilter("ignore")  # of a fork with threads, by the process's number

        def early():
            for _ in range(40):
                spin(150000)
                time.sleep(0.05)

        def late():
            for _ in range(20):
                spin(150000)
                time.sleep(0.002)

        def quick():
            spin(200000)

        def child():
            spin(3000000)
            os._exit(3)

        first = threading.Thread(target=early)
        first.start()
        time.sleep(1.5)
        second = threading.Thread(target=late)
        second.start()
        for _ in range(30):
            third = threading.Thread(target=quick)
            third.start()
            third.join()
        pid = os.fork() or child()
        first.join()
        second.join()
        print(os.waitpid(pid, 0)[1] >> 8)
        """)
    run = harness(python, app, options=["--rate", "1997"])
    report = run.check()
    check_quiet(report)
    told = [note for note in report.notes if "by the kernel at the sample itself" in note]
    assert told and int(told[0].split()[0]) > 0.5 * report.profiler["generated"], report.notes
    whole = sum(report.share(name) for name in ("early", "late", "quick", "child"))
    assert whole > 80, report.answer
    for name, share in [("early", 6 / 18), ("late", 3 / 18), ("quick", 6 / 18), ("child", 3 / 18)]:
        assert abs(report.share(name) / whole - share) < 0.1, (name, report.share(name), whole)


@pytest.mark.skipif(os.geteuid() != 0, reason="the kernel copies frames for root alone")
def test_code_that_comes_and_goes(harness, some_python, script):
    """Who makes code as it runs and drops it is not handed over to the kernel, which has no names."""
    app = script("""
        import time

        end = time.monotonic() + 2.5
        made = 0
        while time.monotonic() < end:
            made += 1
            names = {}
            exec(f"def made_{made}(n):\\n    return sum(i * i for i in range(n))\\n", names)
            names[f"made_{made}"](300)
        """)
    report = harness(some_python, app).check()
    assert report.profiler["generated"] > 800
    assert report.share("[python code gone]") == 0, report.notes
    told = [note for note in report.notes if "by the kernel at the sample itself" in note]
    assert not told or int(told[0].split()[0]) < 0.1 * report.profiler["generated"], told


@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
@pytest.mark.parametrize("options", [[], ["--python"], ["--heap"]],
                         ids=["outside", "inside", "heap"])
def test_a_namespace_of_its_own(harness, some_python, script, options):
    """As in a container: the process has other numbers for its threads than everybody else."""
    nested = [shutil.which("unshare"), "--pid", "--fork"]
    if run([*nested, "true"]).status != 0:
        pytest.skip("no namespace may be made here")
    app = script("""
        import threading

        def apart():
            spin(3000000)

        def first():
            spin(3000000)

        other = threading.Thread(target=apart)
        other.start()
        first()
        other.join()
        print("done")
        """)
    report = harness(*nested, some_python, app, options=options).check()
    assert report.share("spin") > 80, report.answer
    assert abs(report.share("apart") - report.share("first")) < 15
    counted = sum(process["cpu_counted"] for process in report.processes)
    assert report.facts("totals")["value_recorded"] < 1.15 * counted
    assert sum(process["threads"] for process in report.processes) == 3


def test_threads(harness, python, script):
    app = script("""
        import threading, time


        def one():
            for _ in range(40):
                spin(20000)


        def two():
            for _ in range(40):
                spin(20000)


        threads = [threading.Thread(target=f) for f in (one, two)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(threading.active_count())
        """)
    report = harness(python, app, options=["--rate", "1000"]).check()
    assert report.share("one") > 15 and report.share("two") > 15  # the GIL shares as it likes
    assert report.processes[0]["threads"] == 3
    check_quiet(report)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(harness, some_python, script, method):
    app = script(f"""
        import multiprocessing


        def work(n):
            return spin(500000) + n


        if __name__ == "__main__":
            multiprocessing.set_start_method({method!r})
            with multiprocessing.Pool(3) as pool:
                print(sum(pool.map(work, range(12), 1)))
        """)
    report = harness(some_python, app, options=["--rate", "1000"]).check()
    assert report.share("spin") > 25
    assert len(report.processes) >= 4
    # A module's body that runs between a fork and the child's first own sample may be gone before it is read.
    assert report.profiler["lost"] == 0 and report.share("[python code gone]") < 2


def test_fork_in_threads(harness, some_python, script):
    app = script("""
        import os, sys, threading, warnings
        warnings.simplefilter("ignore")


        def child():
            spin(3000000)
            os._exit(7)


        def forker():
            pid = os.fork()
            if not pid:
                child()
            print(os.waitpid(pid, 0)[1] >> 8)


        other = threading.Thread(target=spin, args=(6000000,))
        other.start()
        t = threading.Thread(target=forker)
        t.start()
        t.join()
        other.join()
        """)
    report = harness(some_python, app, options=["--rate", "1000"]).check()
    assert report.share("child") > 10
    check_quiet(report)


def test_tree_from_a_shell(harness, some_python, script, tmp_path):
    app = script("spin(600000)\n")
    shell = tmp_path / "tree.sh"
    shell.write_text(f"#!/bin/sh\n{some_python} {app}\necho between\nexec {some_python} {app} last\n")
    shell.chmod(0o755)
    report = harness(shell, options=["--rate", "1000", "--python"]).check()
    python = [row for row in report.processes if "app.py" in row["arguments"]]
    assert len(python) == 2 and report.share("spin") > 35
    check_quiet(report)


@pytest.mark.alone
def test_exec_from_python(harness, some_python, script):
    """A sample that comes due during an exec must not reach the next program."""
    app = script("""
        import os, sys
        left = int(sys.argv[1])
        spin(20000)
        if left:
            os.execv(sys.executable, [sys.executable, "-S", "-E", __file__, str(left - 1)])
        os.execvp("sh", ["sh", "-c", "exit 5"])
        """)
    run = harness(some_python, app, "25", options=["--rate", "5000"])
    assert run.check() and run.recording.made.status == 5


ENDINGS = {
    "exit": ("import sys; spin(100000); sys.exit(9)", 9),
    "at_once": ("import os; print('x', flush=True); spin(100000); os._exit(4)", 4),
    "killed": ("import os, signal; spin(100000); os.kill(os.getpid(), signal.SIGKILL)", 137),
    "terminated": ("import os, signal; spin(100000); os.kill(os.getpid(), signal.SIGTERM)", 143),
    "uncaught": ("spin(100000); raise KeyError('a')", 1),
    "aborted": ("import os; spin(100000); os.abort()", 134),
    "daemon": ("import threading, time\n"
               "threading.Thread(target=lambda: [spin(10**9)], daemon=True).start()\n"
               "time.sleep(0.3); print('bye')", 0),
    "finalisers": ("import atexit\nclass A:\n    def __del__(self): spin(200000)\n"
                   "a = A(); atexit.register(spin, 200000)", 0),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_endings(harness, some_python, script, ending):
    text, status = ENDINGS[ending]
    run = harness(some_python, script(text), options=["--rate", "1000"])
    report = run.check()
    assert run.recording.made.status == status
    assert report.share("spin") > 5
    check_quiet(report)


def test_signals_of_the_program(harness, some_python, script):
    app = script("""
        import faulthandler, signal, sys, time
        faulthandler.enable(file=open("/dev/null", "w"))
        count = {signal.SIGPROF: 0, signal.SIGALRM: 0, signal.SIGUSR1: 0}


        def handler(number, frame):
            count[number] += 1


        for number in count:
            signal.signal(number, handler)
        print([signal.getsignal(n) for n in (signal.SIGIO, signal.SIGRTMAX, signal.SIGPIPE)])
        signal.setitimer(signal.ITIMER_PROF, 0.02, 0.02)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        while count[signal.SIGPROF] < 5 or count[signal.SIGALRM] < 5:
            spin(2000)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.raise_signal(signal.SIGUSR1)
        spin(1000)
        print(count[signal.SIGUSR1], sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        """)
    check_quiet(harness(some_python, app, options=["--rate", "1000"]).check())


def test_descriptors(harness, some_python, script):
    """None of ours is there to be seen or closed."""
    app = script("""
        import os
        spin(300000)
        print(sorted(os.listdir("/proc/self/fd")))
        os.closerange(3, 4096)
        opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(8)]
        spin(4000000)
        print(opened, sorted(os.listdir("/proc/self/fd")))
        """)
    report = harness(some_python, app, options=["--rate", "1000"]).check()
    assert report.share("spin") > 80
    assert report.facts("totals")["samples"] > 0.85e-6 * report.processes[0]["cpu_counted"]


def test_output_of_standard_tests(harness, some_python):
    """The interpreter's own tests of signals, threads and processes pass as they do alone."""
    for name in ["test.test_json", "test.test_threadsignals", "test.test_struct"]:
        code = ("import sys, unittest\n"
                "try:\n    import test.support\nexcept ImportError:\n    sys.exit()\n"
                f"import importlib\nm = importlib.import_module({name!r})\n"
                "suite = unittest.defaultTestLoader.loadTestsFromModule(m)\n"
                "r = unittest.TextTestRunner(stream=open('/dev/null', 'w')).run(suite)\n"
                "print(r.testsRun, len(r.failures), len(r.errors))\n")
        harness(some_python, "-c", code, options=["--rate", "1000"],
                timeout=120).check(together=True)


@pytest.mark.alone
def test_writes_stay_whole(harness, some_python, script, tmp_path):
    """A signal makes a blocking write to a pipe short: not so that the program would notice."""
    app = script("""
        import os, subprocess, sys
        slow = "import sys, time\\nwhile sys.stdin.buffer.read(50000): time.sleep(0.001)\\n"
        reader = subprocess.Popen([sys.executable, "-S", "-c", slow], stdin=subprocess.PIPE)
        block = b"x" * 3000000
        print([os.write(reader.stdin.fileno(), block) for _ in range(4)])
        reader.stdin.close()
        print(reader.wait())
        """)
    harness(some_python, app, options=["--rate", "5000"]).check()


def test_endless_recursion(harness, some_python, script):
    """Ten thousand frames deep: what is not kept is cut, and said to be."""
    app = script("""
        import sys, threading

        def deep(n):
            return deep(n - 1) if n else spin(1000000)

        sys.setrecursionlimit(20000)
        threading.stack_size(512 << 20)
        t = threading.Thread(target=deep, args=(10000,))
        t.start()
        t.join()
        print("through")
        """)
    report = harness(some_python, app, options=["--rate", "199"]).check()
    assert report.share("spin") > 5 and report.share("deep") > 5


def test_terminated_workers(harness, some_python, script):
    app = script("""
        import multiprocessing, time


        def work(n):
            while True:
                spin(100000)


        if __name__ == "__main__":
            multiprocessing.set_start_method("fork")
            workers = [multiprocessing.Process(target=work, args=(n,)) for n in range(3)]
            for w in workers:
                w.start()
            time.sleep(0.4)
            for w in workers:
                w.terminate()
            for w in workers:
                w.join()
            print([w.exitcode for w in workers])
        """)
    report = harness(some_python, app, options=["--rate", "499"]).check()
    assert len(report.processes) == 4 and report.share("work") > 20


def test_embedded(harness, python, tmp_path):
    """A program of another name with libpython in it, and a thread that C code started."""
    program = embedded(python, tmp_path)
    report = harness(program, options=["--rate", "997", "--python"]).check()
    assert report.share("inside") > 8 and report.share("from_c") > 8, report.answer
