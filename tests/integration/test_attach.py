"""`sonde attach`: processes that already run, their children and threads, and what cannot be had."""

import ctypes
import os
import signal
import subprocess
import time

import pytest

from runs import samples_in, wait_until


@pytest.fixture
def busy(started, target):
    """busy() -> a process that works for a minute."""
    def start(name="shares", *arguments):
        process = started([target(name), *(arguments or (60000000,))])
        time.sleep(0.1)
        return process
    return start


@pytest.fixture
def attach(sonde, recording, tmp_path):
    """attach(pids, options) -> (Run, Recording)"""
    def call(*pids, options=(), name="attach.sonde"):
        made = sonde("attach", "-o", tmp_path / name, *options, *pids)
        return made, recording(tmp_path / name)
    return call


def test_a_process(attach, busy):
    process = busy()
    made, recording = attach(process.pid, options=["--duration", "600ms"])
    assert made.status == 0, made
    assert process.poll() is None
    report = recording.report()
    (only,) = report.processes
    assert only["pid"] == process.pid and only["name"] == "shares"
    report.check_shares(most=60, some=30, least=10)
    assert report.profiler["stacks_cut"] == 0
    assert abs(report.facts("run")["duration"] - 600e6) < 200e6
    report.check_accounts()


def test_several_processes(attach, busy):
    first, second = busy(), busy("steady")
    made, recording = attach(first.pid, second.pid, options=["--duration", "500ms"])
    assert made.status == 0, made
    assert {row["pid"] for row in recording.report().processes} == {first.pid, second.pid}


def test_until_the_process_ends(attach, started, target):
    process = started([target("shares"), 700000])
    made, recording = attach(process.pid)
    assert made.status == 0, made
    assert recording.report().facts("run")["complete"] == "yes"


LATE = """
import os, threading, time
def work(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
time.sleep(0.8)
thread = threading.Thread(target=work, args=(0.3,))
thread.start()
thread.join()
pid = os.fork()
if pid == 0:
    work(0.3)
    os._exit(5)
os.waitpid(pid, 0)
time.sleep(0.2)
"""


def test_threads_and_children_that_come_later(attach, started):
    process = started(["/usr/bin/python3", "-c", LATE])
    time.sleep(0.2)
    made, recording = attach(process.pid)
    assert made.status == 0, made
    report = recording.report()
    root, child = report.processes
    assert root["pid"] == process.pid and child["parent_pid"] == process.pid
    assert root["threads"] == 2
    assert child["status"] == 5 << 8
    for row in root, child:
        assert row["self"] > 150e6, row


def test_children_that_are_there_already(attach, started, target):
    shell = started(["sh", "-c", f"{target('shares')} 60000000; true"])
    time.sleep(0.3)
    made, recording = attach(shell.pid, options=["--duration", "400ms"])
    assert made.status == 0, made
    root, child = recording.report().processes
    os.kill(child["pid"], signal.SIGKILL)
    assert root["pid"] == shell.pid and child["parent_pid"] == shell.pid
    assert child["name"] == "shares" and child["self"] > 100e6


def test_no_follow(attach, started, target):
    shell = started(["sh", "-c", f"{target('shares')} 60000000 & while :; do :; done"])
    time.sleep(0.3)
    made, recording = attach(shell.pid, options=["--no-follow", "--duration", "300ms"])
    subprocess.run(["pkill", "-KILL", "-P", str(shell.pid)], check=True)
    assert made.status == 0, made
    (only,) = recording.report().processes
    assert only["pid"] == shell.pid


def test_interrupt_ends_in_order(started, busy, recording, sonde_path, tmp_path):
    """Ctrl-C: the recording is complete and the process runs on."""
    process, path = busy(), tmp_path / "r.sonde"
    collector = started([sonde_path, "attach", "-o", path, process.pid])
    wait_until(lambda: path.exists() and samples_in(recording(path)) > 50)
    collector.send_signal(signal.SIGINT)
    assert collector.wait(20) == 0, collector.communicate()
    assert process.poll() is None
    report = recording(path).report()
    assert report.facts("run")["complete"] == "yes"
    assert report.facts("totals")["samples"] > 50
    report.check_accounts()


@pytest.mark.parametrize("word", ["abc", "0", "-1", "12x", "99999999999"])
def test_what_is_no_process_number(attach, word):
    made, recording = attach("--", word)
    assert made.status == 2 and len(made.stderr.splitlines()) == 1, made
    assert not recording.path.exists()


def test_t30_missing(attach):
    made, recording = attach(2**22 - 3)
    assert made.status == 1
    assert f"there is no process {2**22 - 3}" in made.stderr
    assert not recording.path.exists()


def test_t30_zombie(attach):
    process = subprocess.Popen(["true"])
    time.sleep(0.2)
    made, recording = attach(process.pid)
    assert made.status == 1 and f"process {process.pid} has ended" in made.stderr
    assert "zombie" in made.stderr and not recording.path.exists()
    process.wait()


def test_t30_stopped(attach, busy):
    """It is recorded, it stays stopped, and the recording says why there is nothing."""
    process = busy()
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.1)
    made, recording = attach(process.pid, options=["--duration", "200ms"])
    assert made.status == 0, made
    state = open(f"/proc/{process.pid}/stat").read().rpartition(")")[2].split()[0]
    assert state == "T"
    report = recording.report(status=1)
    assert any(f"process {process.pid} was stopped" in note for note in report.notes), report.notes


def test_t30_exiting(attach, started):
    """Processes that end while they are attached to: recorded or named, never a crash."""
    for _ in range(15):
        process = started(["sh", "-c", "exit 0"])
        made, recording = attach(process.pid)
        assert made.status in (0, 1), made
        if made.status == 1:
            assert "no process" in made.stderr or "ended" in made.stderr, made
            assert not recording.path.exists()
        recording.path.unlink(missing_ok=True)
        process.wait()


def test_t30_already_traced(attach, busy):
    """Perf needs no ptrace: a debugger on it is no hindrance."""
    process = busy()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, process.pid, 0, 0) != 0:  # PTRACE_ATTACH
        pytest.skip(f"ptrace is not permitted: {os.strerror(ctypes.get_errno())}")
    os.waitpid(process.pid, 0x40000000)  # __WALL
    libc.ptrace(7, process.pid, 0, 0)  # PTRACE_CONT
    made, recording = attach(process.pid, options=["--duration", "300ms"])
    assert made.status == 0, made
    assert recording.report().facts("totals")["samples"] > 20
    process.kill()


def test_t30_a_kernel_thread(attach):
    made, recording = attach(2, options=["--duration", "50ms"])
    assert made.status in (0, 1), made
    if made.status == 0:
        recording.report(status=None)
