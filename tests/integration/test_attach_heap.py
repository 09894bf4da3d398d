"""`sonde attach --heap`: into processes that run already, and out again, unnoticed."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest

from runs import run, wait_until


@pytest.fixture
def started(environment):
    """started([program, ...]) -> Popen, ended with the test."""
    with contextlib.ExitStack() as stack:
        def start(command, **more):
            p = stack.enter_context(subprocess.Popen(command, env=environment, text=True,
                                                     stdout=subprocess.PIPE, **more))
            stack.callback(p.kill)
            time.sleep(0.4)
            return p
        yield start


@pytest.fixture
def attach(sonde, tmp_path):
    def call(pid, *options, status=0):
        path = tmp_path / "attached.sonde"
        done = sonde("attach", "--heap", "-f", "-o", path, "-d", "1500ms", *options, pid,
                     timeout=60)
        assert done.status == status, done
        return done if status else sonde("report", path, "--heap", "--json").json["sections"]
    return call


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


@pytest.mark.parametrize("mode", ["waits", "runs", "threads"])
def test_sees_what_comes_after(attach, started, target, mode):
    p = started([target("late"), mode, "4"])
    sections = attach(p.pid)
    facts = sections["heap"]["facts"]
    assert facts["allocations"] > 5
    assert facts["live"] > 0
    names = {row["name"] for row in sections["functions"]["rows"]}
    assert "late_site" in names
    assert p.wait(timeout=60) == 7
    assert p.stdout.read() == "done\n"


def test_a_program_at_fixed_addresses(attach, started, target):
    """Where the loader's answer to "malloc" is the program's own way to it, which is hooked."""
    p = started([target("bound"), "5"])
    sections = attach(p.pid)
    assert sections["heap"]["facts"]["allocations"] > 100
    assert "bound_site" in {row["name"] for row in sections["functions"]["rows"]}
    assert p.wait(timeout=60) == 7
    assert p.stdout.read() == "done\n"


def test_python(attach, started, tmp_path):
    """Debian's is such a program."""
    app = tmp_path / "app.py"
    app.write_text("import time\nuntil = time.time() + 5\n"
                   "while time.time() < until: kept = [bytes(2000 + i) for i in range(100)]\nprint('done')\n")
    p = started(["/usr/bin/python3", app])
    assert attach(p.pid)["heap"]["facts"]["allocations"] > 100
    assert p.wait(timeout=60) == 0
    assert p.stdout.read() == "done\n"


def test_again_and_again(attach, started, target):
    p = started([target("late"), "threads", "9"])
    counts = [attach(p.pid)["heap"]["facts"]["allocations"] for _ in range(3)]
    assert min(counts) > 5
    assert p.wait(timeout=60) == 7


def test_hooks_are_gone_afterwards(attach, started, target):
    """The program's table of functions points at libc again."""
    p = started([target("late"), "waits", "4"])
    attach(p.pid)
    time.sleep(0.3)
    with open(f"/proc/{p.pid}/maps", encoding="utf-8") as f:
        maps = [line.split() for line in f]
    ours = [tuple(int(x, 16) for x in m[0].split("-")) for m in maps if m[-1].endswith("libsonde.so")]
    data = [tuple(int(x, 16) for x in m[0].split("-")) for m in maps
            if m[-1].endswith("/late") and "x" not in m[1]]
    assert ours and data
    with open(f"/proc/{p.pid}/mem", "rb") as f:
        for start, end in data:
            f.seek(start)
            part = f.read(end - start)
            for i in range(0, len(part) - 7, 8):
                word = int.from_bytes(part[i:i + 8], "little")
                assert not any(a <= word < b for a, b in ours)
    assert p.wait(timeout=60) == 7


@pytest.mark.parametrize("wait", ["poll", "epoll_wait"])
def test_waits_go_on(attach, started, target, wait):
    """The kernel ends some when a thread is stopped, others when it comes back from a signal frame."""
    p = started([target("still"), wait, "4"])
    assert attach(p.pid)["heap"]["facts"]["allocations"] > 2
    assert p.wait(timeout=60) == 7
    assert p.stdout.read() == "0 interrupted\n"


@pytest.mark.parametrize("change", ["unload", "sandbox"])
def test_what_changes_meanwhile(sonde_path, environment, started, target, tmp_path, change):
    """A library goes with its table of functions in it; a filter forbids what the agent does."""
    library = [target("brought.so")] if change == "unload" else []
    p = started([target("changes"), change, *library])
    assert p.stdout.readline() == "ready\n"
    with subprocess.Popen([sonde_path, "attach", "--heap", "-q", "-f", "-o", tmp_path / "x.sonde",
                           str(p.pid)], env=environment) as recorder:
        wait_until(lambda: pathlib.Path(f"/proc/{p.pid}/maps").read_text().count("memfd:sonde") > 1)
        time.sleep(0.3)
        p.send_signal(signal.SIGUSR1)
        assert p.stdout.readline() == "changed\n"
        time.sleep(0.3)
        recorder.send_signal(signal.SIGINT)
    time.sleep(0.3)
    p.send_signal(signal.SIGTERM)
    assert p.stdout.read() == "done\n"
    assert p.wait(timeout=60) == 7


def test_refused_by_name(attach, started, root, target, tmp_path):
    p = started([target("late"), "waits", "20"])
    p.send_signal(signal.SIGSTOP)
    time.sleep(0.1)
    assert "while it is stopped" in attach(p.pid, status=1).stderr
    p.send_signal(signal.SIGCONT)
    static = tmp_path / "static"
    built = run(["cc", "-static", "-O2", "-o", static, root / "tests/targets/late.c", "-pthread"])
    if built.status:
        pytest.skip("a static program cannot be linked here")
    p = started([static, "waits", "20"])
    assert "statically linked" in attach(p.pid, status=1).stderr


def test_the_recorder_is_killed_at_any_instant(sonde_path, environment, started, target, tmp_path):
    """The target is never left stopped, and ends as it would have."""
    p = started([target("late"), "threads", "9"])
    draw = random.Random(4)
    for i in range(12):
        with subprocess.Popen([sonde_path, "attach", "--heap", "-q", "-f", "-o", tmp_path / "x.sonde",
                               str(p.pid)], env=environment, stderr=subprocess.DEVNULL) as recorder:
            time.sleep(draw.uniform(0, 0.25))
            recorder.send_signal(signal.SIGKILL)
        time.sleep(0.02)
        assert state(p.pid) in "RSD", i
    assert p.wait(timeout=60) == 7
    assert p.stdout.read() == "done\n"


def test_another_allocator(attach, started, target):
    jemalloc = shutil.which("redis-server") and "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
    if not jemalloc or not os.path.exists(jemalloc):
        pytest.skip("libjemalloc is not installed")
    p = started(["env", f"LD_PRELOAD={jemalloc}", target("late"), "waits", "4"])
    assert attach(p.pid)["heap"]["facts"]["allocations"] > 5
    assert p.wait(timeout=60) == 7
