"""T1 to T31: targets that are difficult to be inside of. Each does the same under sonde as alone, and
nothing of it is lost in silence."""

import contextlib
import os
import random
import resource
import shutil
import signal
import subprocess
import time

import pytest

from programs import FAULTS, TRUTHS, arguments_of, label
from runs import run, wait_until

FAST = ["--rate", "4000"]


@pytest.mark.parametrize("program", TRUTHS + FAULTS, ids=label)
def test_a_target_does_not_notice(harness, target, program):
    harness(program.name, *arguments_of(program, target), options=FAST).check()


def children_named(pid, name):
    """Those that have become this program."""
    listed = open(f"/proc/{pid}/task/{pid}/children").read().split()
    return [int(child) for child in listed
            if open(f"/proc/{child}/comm").read().strip() == name]


def test_t1_sigkill_at_any_instant(started, sonde_path, target, recording, tmp_path):
    """Twenty times: the status is the signal's, and what was recorded is all there."""
    instants = random.Random(1)
    for turn in range(20):
        path = tmp_path / f"{turn}.sonde"
        collector = started([sonde_path, "run", "-o", path, "--", target("threads"), 60000000])
        wait_until(lambda: children_named(collector.pid, "threads"))
        time.sleep(instants.uniform(0, 0.2))
        os.kill(children_named(collector.pid, "threads")[0], signal.SIGKILL)
        collector.wait(30)
        words = collector.communicate()[1]
        assert collector.returncode == 137, words
        report = recording(path).report(status=None)
        assert report.facts("run")["complete"] == "yes"
        assert report.processes[0]["status"] == signal.SIGKILL
        report.check_accounts()
        path.unlink()


@pytest.mark.usefixtures("without_asan")
def test_t2_the_core_survives(sonde, target, tmp_path, environment):
    pattern = open("/proc/sys/kernel/core_pattern").read().strip()
    if pattern.startswith(("|", "/")):
        pytest.skip(f"cores go to {pattern}, not into the folder")

    def allow_cores():
        limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        pytest.skip("the hard limit on cores is 0")
    for name, prefix in (("alone", ()), ("under", None)):
        folder = tmp_path / name
        folder.mkdir()
        command = [target("exits"), "segv"]
        if prefix is None:
            made = sonde("run", "-o", tmp_path / "r.sonde", "--", *command, cwd=folder,
                         preexec_fn=allow_cores)
        else:
            made = run(command, env=environment, cwd=folder, preexec_fn=allow_cores)
        assert made.status == 139, made
        assert [path.name for path in folder.iterdir()], f"no core {name}"


def test_t5_fork_storm(harness):
    report = harness("forkstorm", 10000, timeout=120).check()
    root, *children = report.processes
    assert len(children) == 10000
    assert {child["parent_pid"] for child in children} == {root["pid"]}
    assert report.profiler["lost"] == 0


def test_t11_static_binary(harness, root, tmp_path):
    program = tmp_path / "static"
    built = run(["cc", "-static", "-O2", "-g", "-D_GNU_SOURCE", "-o", program,
                 root / "tests/targets/shares.c"])
    if built.status != 0:
        pytest.skip(f"a static program cannot be linked here: {built.stderr[:200]}")
    report = harness(program, "1000000").check()
    report.check_shares(most=60, some=30, least=10)
    assert report.profiler["stacks_cut"] == 0


def test_t11_stripped_binary(harness, target, tmp_path):
    """No symbols: whole stacks all the same, and the module is named as what lacks them."""
    program = tmp_path / "stripped"
    done = run(["strip", "-o", program, target("shares")])
    if done.status != 0:
        pytest.skip("there is no strip")
    recording = harness(program, "500000").record()
    report = recording.report()
    assert report.profiler["stacks_cut"] == 0
    assert "stripped" in {row["module"] for row in report.rows("functions")}
    modules = recording.show("--modules").stdout
    assert "no symbols" in modules or "not found" in modules or "stripped" in modules


def test_t14_stack_overflow(harness):
    assert harness("overflow", 10000).check().processes[0]["status"] == signal.SIGSEGV


def test_t19_five_thousand_threads(harness):
    report = harness("manythreads", 5000, timeout=120).check()
    assert report.processes[0]["threads"] == 5001
    assert not report.rows("accounting")[1:], report.rows("accounting")


def test_t21_code_that_comes_and_goes(harness, target):
    report = harness("churn", target("answer.so"), 2000, options=FAST, timeout=120).check()
    whole = report.profiler
    assert whole["stacks_cut"] <= 0.05 * whole["stacks"], whole


def test_t25_stacks_of_coroutines(harness):
    report = harness("coroutines", 500, options=FAST).check()
    assert report.facts("totals")["samples"] > 0


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(bytes) -> a folder on a disk of its own."""
    mounted = []

    def make(size):
        folder = tmp_path / "disk"
        folder.mkdir()
        done = run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder])
        if done.status != 0:
            pytest.skip(f"a tmpfs cannot be mounted: {done.stderr.strip()}")
        mounted.append(folder)
        return folder
    yield make
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


def assert_stopped_by(made, alone, reason):
    """The target ran as alone; one sentence says why the recording ends before it does."""
    assert made.status == alone.status and made.stdout == alone.stdout, (made, alone)
    lines = made.stderr.splitlines()
    assert any(line.startswith("sonde") and reason in line for line in lines), made


def test_t27_disk_full(harness, small_disk, recording):
    disk = small_disk(20480)
    run_of = harness("steady", 2500000, options=FAST)
    alone = run_of.alone()
    run_of.path = disk / "full.sonde"
    made = run_of.record().made
    assert_stopped_by(made, alone, "No space left on device")
    report = recording(run_of.path).report()
    assert report.facts("run")["complete"] == "no"
    assert report.facts("totals")["samples"] > 0
    assert any("cut" in note or "no end" in note for note in report.notes), report.notes


def test_t27_the_last_word_has_no_room(harness, small_disk, recording):
    """All samples fit, the names at the end do not."""
    disk = small_disk(4096)
    run_of = harness("steady", 250000, options=FAST)
    run_of.path = disk / "full.sonde"
    made = run_of.record().made
    assert_stopped_by(made, run_of.alone(), "No space left on device")
    assert recording(run_of.path).show(status=None).status in (0, 1)


def test_t27_disk_full_from_the_start(sonde, small_disk, tmp_path):
    disk = small_disk(16384)
    with contextlib.suppress(OSError), open(disk / "filler", "wb") as filler:
        filler.write(bytes(1 << 20))
    made = sonde("run", "-o", disk / "r.sonde", "--", "touch", tmp_path / "ran")
    assert made.status == 125 and "No space left on device" in made.stderr, made
    assert not (tmp_path / "ran").exists()


def limited(kind, value):
    def lower():
        resource.setrlimit(kind, (value, value))
    return lower


def test_t28_file_size(harness, recording):
    """The limit is the target's too, which writes nothing: sonde alone meets it, after a second that it
    has written."""
    run_of = harness("steady", 2500000, options=FAST,
                     preexec_fn=limited(resource.RLIMIT_FSIZE, 20480))
    made = run_of.record().made
    assert_stopped_by(made, run_of.alone(), "File too large")
    assert recording(run_of.path).report().facts("run")["complete"] == "no"


def test_t28_file_size_of_what_is_shared(harness):
    """Files in memory have it as well: agents without those are worse off, the target is not."""
    harness("shares", 300000, options=["--heap"],
            preexec_fn=limited(resource.RLIMIT_FSIZE, 1 << 20)).check()


def test_t28_descriptors(harness):
    """A few are enough for one command."""
    run_of = harness("shares", 300000, preexec_fn=limited(resource.RLIMIT_NOFILE, 32))
    run_of.check()


def test_t28_too_few_descriptors(sonde, started, target, tmp_path):
    """An event a thread and CPU: the limit is named."""
    process = started([target("threads"), 60000000])
    time.sleep(0.2)
    made = sonde("attach", "-o", tmp_path / "r.sonde", "-d", "100ms", process.pid,
                 preexec_fn=limited(resource.RLIMIT_NOFILE, 16))
    assert made.status == 1 and "ulimit -n" in made.stderr, made
    assert not (tmp_path / "r.sonde").exists()


def test_t28_locked_memory(nobody, public_target, recording):
    """Rings become smaller, or the limit is named."""
    path = nobody.folder / "r.sonde"
    made = nobody("run", "-o", path, "--", public_target("shares"), 500000,
                  preexec_fn=limited(resource.RLIMIT_MEMLOCK, 0))
    if made.status == 125:
        assert "ulimit -l" in made.stderr or "perf_event_paranoid" in made.stderr, made
        return
    assert made.status == 0, made
    report = recording(path).report()
    report.check_shares(most=60, some=30, least=10)


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="there is no musl to build a program with")
@pytest.mark.parametrize("kind", [[], ["-static"]], ids=["dynamic", "static"])
def test_t12_another_libc(harness, root, sonde_path, environment, tmp_path, kind):
    """A program that the agent cannot live in runs as it does alone, also as part of a tree."""
    program = tmp_path / "other"
    subprocess.run(["musl-gcc", "-O1", "-g", *kind, "-o", program, root / "tests/targets/shares.c"],
                   check=True)
    harness(program, 300000, options=FAST).check().check_shares(most=60, some=30, least=10)
    for options in (["--heap"], ["--heap", "--python"]):
        run_of = harness("/bin/sh", "-c", f"{program} 1000; ls /usr && exit 3", options=options)
        alone, under = run_of.alone(), run_of.record().made
        assert (under.status, under.stdout) == (alone.status, alone.stdout)
    refused = run([sonde_path, "run", "--heap", "-o", tmp_path / "r", "--", program, 1],
                  env=environment)
    assert refused.status == 125 and str(program) in refused.stderr


@pytest.mark.usefixtures("without_asan")
def test_t28_processes(nobody):
    made = nobody("run", "-o", nobody.folder / "r.sonde", "--", "true",
                  preexec_fn=limited(resource.RLIMIT_NPROC, 1))
    if made.status == 0:
        pytest.skip("the limit on processes does not hold here")
    assert made.status == 125 and "ulimit -u" in made.stderr, made
    assert not (nobody.folder / "r.sonde").exists()


@pytest.mark.usefixtures("without_asan")
def test_t28_address_space(harness):
    """Enough for the program but not for everything: an end in order, with the target's output."""
    run_of = harness("shares", 200000, preexec_fn=limited(resource.RLIMIT_AS, 256 << 20))
    run_of.check()


def test_t29_time_only_grows(harness):
    report = harness("clockjump", 300000).check()
    for row in report.processes:
        assert 0 <= row["start"] <= row["end"] <= report.facts("run")["duration"] + 1e7, row


def test_t31_hostile_names(harness, target, tmp_path):
    """Escape sequences, newlines and quotes in names of programs and threads, and in arguments, do
    not reach the terminal."""
    program = tmp_path / "evil\x1b[2Jname\n\"'"
    shutil.copy(target("shares"), program)
    run_of = harness(program, "300000", "1000", "\x1b]0;owned\x07", "a\rb")
    recording = run_of.record()
    for options in ((), ("--processes",), ("--threads",), ("--tree",), ("--modules",)):
        shown = recording.show(*options).stdout
        assert not set(shown) & {chr(code) for code in range(32) if chr(code) != "\n"}, options
        assert "\x7f" not in shown and "\x9b" not in shown
    assert recording.report().processes[0]["arguments"]
    assert "\x1b" not in recording.made.stderr
