"""C1 to C9: what happens to the collector, and what it must not do to the target."""

import os
import pathlib
import re
import signal
import time

import pytest

from runs import children_of, run, samples_in, wait_until

UNITS = 2500000  # of shares: two and a half seconds on an idle machine


@pytest.fixture
def alone(target, environment):
    return run([target("shares"), UNITS], env=environment)


@pytest.fixture
def recorded(started, sonde_path, target, tmp_path):
    """A running `sonde run` of shares with these options, and its file."""
    def start(*options):
        path = tmp_path / "c.sonde"
        return started([sonde_path, "run", "-o", path, *options, "--", target("shares"),
                        UNITS]), path
    return start


def test_c1_sigkill(recorded, recording, alone):
    """The target goes on as if nothing was; the file opens up to there."""
    collector, path = recorded()
    wait_until(lambda: path.exists() and samples_in(recording(path)) > 100)
    (child,) = children_of(collector.pid)
    collector.kill()
    output = collector.communicate(timeout=60)[0]  # ends when the target closes it
    assert output == alone.stdout
    wait_until(lambda: not pathlib.Path(f"/proc/{child}").exists())
    report = recording(path).report()
    assert report.facts("run")["complete"] == "no"
    assert any("has no end" in note for note in report.notes), report.notes
    assert report.facts("totals")["samples"] > 100


def test_c1_sigkill_at_any_instant(started, sonde_path, target, environment, recording, tmp_path):
    expected = run([target("shares"), 200000], env=environment).stdout
    for turn in range(12):
        path = tmp_path / f"{turn}.sonde"
        collector = started([sonde_path, "run", "-o", path, "--", target("shares"), 200000])
        time.sleep(0.02 * turn)
        collector.kill()
        output = collector.communicate(timeout=60)[0]
        assert output in ("", expected)  # nothing, only if it was killed before it started it
        if not path.exists():
            continue
        shown = recording(path).show(status=None)
        assert shown.status in (0, 1), shown
        assert shown.stdout or len(shown.stderr.splitlines()) == 1, shown


def test_c3_sigstop(recorded, recording, alone):
    """The target is not held up; what was lost meanwhile is counted, to the sample."""
    collector, path = recorded("--rate", "2000", "--cpus", "0")
    time.sleep(0.4)
    (child,) = children_of(collector.pid)
    collector.send_signal(signal.SIGSTOP)
    start = time.monotonic()

    def over():
        stat = pathlib.Path(f"/proc/{child}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "Z"
    wait_until(over, 60)
    assert time.monotonic() - start < 10 * alone.seconds + 5
    collector.send_signal(signal.SIGCONT)
    output, _ = collector.communicate(timeout=30)
    assert collector.returncode == 0 and output == alone.stdout
    report = recording(path).report()
    said, totals = report.profiler, report.facts("totals")
    assert said["lost"] > 500
    counted = report.processes[0]["cpu_counted"]
    assert abs(said["generated"] * totals["period"] - counted) < 0.02 * counted, said
    assert "lost" in recording(path).show().stdout


@pytest.mark.skipif(os.geteuid() != 0 or os.getpriority(os.PRIO_PROCESS, 0) != 0,
                    reason="only root may go before others, and keeps a priority that was given")
def test_the_collector_goes_before_its_target(recorded):
    """So that it is not late where hundreds of threads want to run; the target's priority stays."""
    collector, _ = recorded()
    wait_until(lambda: os.getpriority(os.PRIO_PROCESS, collector.pid) < 0)
    (child,) = children_of(collector.pid)
    assert os.getpriority(os.PRIO_PROCESS, child) == os.getpriority(os.PRIO_PROCESS, 0)


def test_c4_ring_overrun(overrun):
    """More page faults than any ring holds: recorded and lost add up to what the kernel counted."""
    recording = overrun(30000)
    report = recording.report("--event", "page-faults")
    assert report.profiler["lost"] > 0
    assert 0 <= report.profiler["generated"] - int(recording.made.stdout) < 150
    lost = re.search(r"lost ([\d,]+)", recording.made.stderr)[1]
    assert int(lost.replace(",", "")) == report.profiler["lost"]


def test_c6_two_collectors(started, target, recording, sonde_path, tmp_path):
    """Perf serves both: each recording is right by itself."""
    process = started([target("shares"), 60000000])
    time.sleep(0.1)
    both = {name: started([sonde_path, "attach", "-o", tmp_path / name, process.pid])
            for name in ("1.sonde", "2.sonde")}
    for name, collector in both.items():
        wait_until(lambda: samples_in(recording(tmp_path / name)) > 400)
        collector.send_signal(signal.SIGINT)
        assert collector.wait(30) == 0, collector.communicate()
        report = recording(tmp_path / name).report()
        report.check_shares(most=60, some=30, least=10)
        report.check_accounts()
    assert process.poll() is None


def test_c6_sonde_of_sonde(harness, sonde_path, target, tmp_path):
    report = harness(sonde_path, "run", "-q", "-o", tmp_path / "inner.sonde", "--",
                     target("shares"), "300000").report()
    assert report.share("most") > 30
    assert {row["name"] for row in report.processes} >= {"sonde", "shares"}


def make_file(path):
    path.write_text("precious")


def make_link(path):
    (path.parent / "aim").write_text("precious")
    path.symlink_to(path.parent / "aim")


def make_dangling_link(path):
    path.symlink_to(path.parent / "nowhere")


def make_fifo(path):
    os.mkfifo(path)


OUTPUTS = {
    "file": (make_file, "exists already: use --force"),
    "link": (make_link, "is a symbolic link"),
    "dangling": (make_dangling_link, "is a symbolic link"),
    "fifo": (make_fifo, "is not a regular file"),
    "folder": (pathlib.Path.mkdir, "is not a regular file"),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_c7_output(sonde, tmp_path, kind):
    """A clear word, nothing overwritten, and the command has not run."""
    make, sentence = OUTPUTS[kind]
    path = tmp_path / "out.sonde"
    make(path)
    before = sorted((p.name, p.lstat().st_mode, p.lstat().st_size) for p in tmp_path.iterdir())
    made = sonde("run", "-o", path, "--", "touch", tmp_path / "ran")
    assert made.status == 125, made
    assert made.stderr.startswith(f"sonde run: {path} ") and sentence in made.stderr, made
    after = sorted((p.name, p.lstat().st_mode, p.lstat().st_size) for p in tmp_path.iterdir())
    assert after == before


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "folder"])
def test_c7_force_replaces_files_alone(sonde, tmp_path, kind):
    path = tmp_path / "out.sonde"
    OUTPUTS[kind][0](path)
    before = path.lstat()
    assert sonde("run", "--force", "-o", path, "--", "true").status == 125
    assert path.lstat().st_ino == before.st_ino


def test_c7_force(sonde, recording, target, tmp_path):
    path = tmp_path / "out.sonde"
    make_file(path)
    assert sonde("run", "--force", "-o", path, "--", target("shares"), 100000).status == 0
    recording(path).report()


def test_c7_no_such_folder(sonde, tmp_path):
    made = sonde("run", "-o", tmp_path / "none/out.sonde", "--", "touch", tmp_path / "ran")
    assert made.status == 125 and f"{tmp_path}/none/out.sonde" in made.stderr
    assert "No such file or directory" in made.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("home", ["own", "unset", "unwritable"])
def test_c8_an_ordinary_user(nobody, public_target, recording, home):
    """As the system is set: it works without the kernel's side, or names the sysctl."""
    env = {"own": {}, "unset": {"HOME": None}, "unwritable": {"HOME": "/proc"}}[home]
    path = nobody.folder / "r.sonde"
    made = nobody("run", "-o", path, "--", public_target("shares"), 600000, env=env)
    if made.status == 125:
        assert "perf_event_paranoid" in made.stderr, made
        return
    assert made.status == 0, made
    report = recording(path).report()
    report.check_shares(most=60, some=30, least=10)
    assert report.profiler["stacks_cut"] == 0
    paranoid = int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if paranoid >= 2:
        assert any("perf_event_paranoid" in note for note in report.notes), report.notes


def test_c8_attach_to_another_users_process(nobody, started, target):
    process = started([target("shares"), 60000000])
    time.sleep(0.1)
    made = nobody("attach", "-o", nobody.folder / "r.sonde", "-d", "100ms", process.pid)
    assert made.status == 1, made
    assert "root" in made.stderr or "user" in made.stderr, made
    assert not (nobody.folder / "r.sonde").exists()


def test_c8_a_folder_that_may_not_be_written(nobody):
    made = nobody("run", "-o", "/usr/out.sonde", "--", "true")
    assert made.status == 125
    assert "cannot create the recording /usr/out.sonde: Permission denied" in made.stderr


def test_c9_secrets(sonde, environment, target, tmp_path):
    """No environment, no input, and nobody else may read the file."""
    secret = "hunter2-in-the-environment"
    path = tmp_path / "r.sonde"
    old = os.umask(0)
    try:
        made = sonde("run", "--wall", "-o", path, "--", target("shares"), 200000,
                     env={"PASSWORD": secret})
    finally:
        os.umask(old)
    assert made.status == 0, made
    assert path.stat().st_mode & 0o777 == 0o600
    everything = [path.read_bytes().decode(errors="replace"),
                  sonde("report", "--json", "--top", 0, path).stdout,
                  sonde("report", "--notes", path).stdout,
                  sonde("export", "-f", "folded", path).stdout]
    for text in everything:
        assert secret not in text and "PASSWORD" not in text


FAULTS = """
import mmap, resource, threading, time
end = time.monotonic() + 2
def touch():
    while time.monotonic() < end:
        with mmap.mmap(-1, 1 << 20) as block:
            for at in range(0, 1 << 20, 4096):
                block[at] = 1
        time.sleep(0.02)
def work():
    while time.monotonic() < end:
        sum(range(20000))
        time.sleep(0.002)
threads = [threading.Thread(target=f) for f in (touch, work, work, work, work)]
for t in threads: t.start()
for t in threads: t.join()
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_minflt + used.ru_majflt, used.ru_nvcsw + used.ru_nivcsw)
"""


def test_counts_of_threads_that_take_turns(sonde, recording, tmp_path):
    """The kernel swaps the counts of threads that follow each other on a CPU: like with like."""
    path = tmp_path / "r.sonde"
    made = sonde("run", "-q", "-e", "page-faults,context-switches", "-o", path, "--",
                 "/usr/bin/python3", "-c", FAULTS)
    assert made.status == 0, made
    for event, true in zip(("page-faults", "context-switches"), map(int, made.stdout.split())):
        totals = recording(path).report("--event", event).facts("totals")
        assert totals["value"] == pytest.approx(true, rel=0.05), event
