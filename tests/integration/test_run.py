"""`sonde run` as its user's command sees it: status, signals, descriptors, folder, environment."""

import json
import os
import signal
import subprocess
import time

import pytest

SELF = """
import json, os, signal, sys
print(json.dumps({
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "environment": dict(os.environ),
    "folder": os.getcwd(),
    "cpus": sorted(os.sched_getaffinity(0)),
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "ignored": open("/proc/self/status").read().split("SigIgn:")[1].split()[0],
    "limits": open("/proc/self/limits").read(),
    "nice": os.nice(0), "umask": os.umask(0),
}))
"""


@pytest.fixture
def self_portrait(sonde, environment, tmp_path):
    """What a command finds itself in, under `sonde run` with these options."""
    def ask(*options):
        done = sonde("run", "-q", "-o", tmp_path / "self.sonde", "--force", *options, "--",
                     "/usr/bin/python3", "-c", SELF)
        assert done.status == 0, done
        return done.json
    ask.alone = lambda: json.loads(subprocess.run(
        ["/usr/bin/python3", "-c", SELF], env=environment, stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        check=True).stdout)
    return ask


@pytest.mark.parametrize("arguments, status", [
    (["status", 0], 0), (["status", 3], 3), (["status", 255], 255),
    (["signal", signal.SIGTERM], 143), (["signal", signal.SIGKILL], 137),
    (["segv"], 139), (["abort"], 134)])
def test_status_and_signal(harness, arguments, status):
    run = harness("exits", *[str(int(a)) if isinstance(a, int) else a for a in arguments])
    report = run.check()
    assert run.alone().status == status
    root = report.processes[0]
    found = root["status"]
    assert (128 + (found & 127) if found & 127 else found >> 8) == status


@pytest.mark.parametrize("command, status", [
    (["/no/such/program"], 127), (["no-such-program-in-path"], 127),
    (["/etc/passwd"], 126), (["/"], 126)])
def test_what_cannot_be_executed(sonde, tmp_path, command, status):
    made = sonde("run", "-o", tmp_path / "r.sonde", "--", *command)
    assert made.status == status
    assert made.stderr.startswith("sonde run: cannot run") and command[0] in made.stderr
    assert not (tmp_path / "r.sonde").exists()


@pytest.mark.parametrize("options", [
    ["--rate", "0"], ["--rate", "20000"], ["--event", "no-such-event"], ["--cpus", "4096"],
    ["--cpus", "x"], ["--env", "NOVALUE"], ["--duration", "soon"], ["--nonsense"], ["--cpus", ""]])
def test_usage_is_checked_before_anything_runs(sonde, tmp_path, options):
    made = sonde("run", "-o", tmp_path / "r.sonde", *options, "--", "touch", tmp_path / "ran")
    assert made.status == 2, made
    assert len(made.stderr.splitlines()) == 1 and made.stderr.startswith("sonde run: ")
    assert not (tmp_path / "ran").exists() and not (tmp_path / "r.sonde").exists()


@pytest.mark.parametrize("options", [["--no-python"], []])
def test_a_command_finds_what_it_would_find_alone(self_portrait, options):
    """But for what brings the agent into processes that run Python."""
    alone, under = self_portrait.alone(), self_portrait(*options)
    ours = [name for name in under["environment"]
            if name == "LD_PRELOAD" or name.startswith("SONDE_SESSION")]
    assert bool(ours) == (not options)
    for name in ["_", *ours]:
        del under["environment"][name]
    del alone["environment"]["_"]
    assert under == alone


def test_folder_environment_and_cpus(self_portrait, tmp_path):
    found = self_portrait("--cwd", tmp_path, "--env", "COLOUR=blue", "--env", "LC_ALL=C",
                          "--cpus", "0")
    assert found["folder"] == str(tmp_path)
    assert found["environment"]["COLOUR"] == "blue" and found["environment"]["LC_ALL"] == "C"
    assert found["cpus"] == [0]


def test_no_such_folder(sonde, tmp_path):
    made = sonde("run", "-o", tmp_path / "r.sonde", "--cwd", tmp_path / "none", "--", "true")
    assert made.status == 125
    assert f"cannot run the command in {tmp_path}/none: No such file" in made.stderr


def test_streams_are_untouched(sonde_path, environment, tmp_path):
    """Binary input comes out byte by byte; nothing of sonde's on standard output."""
    data = bytes(range(256)) * 4096
    script = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d);" \
             "sys.stderr.buffer.write(d[::-1])"
    done = subprocess.run([sonde_path, "run", "-q", "-o", tmp_path / "r.sonde", "--",
                           "/usr/bin/python3", "-c", script], env=environment, input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 0
    assert done.stdout == data and done.stderr == data[::-1]


def test_duration_stops_the_recording_alone(harness):
    """The command runs on to its end and its status counts."""
    run = harness("exits", "status", "5", options=["--duration", "20ms"])
    recording = run.record()
    assert recording.made.status == 5
    assert recording.made.stdout == run.alone().stdout
    assert 15e6 < recording.report(status=None).facts("run")["duration"] < 90e6


@pytest.mark.parametrize("number, status", [
    (signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)])
def test_signals_are_passed_on(started, recording, sonde_path, target, tmp_path, number, status):
    path = tmp_path / "r.sonde"
    run = started([sonde_path, "run", "-o", path, "--", target("shares"), 60000000])
    time.sleep(0.4)
    run.send_signal(number)
    run.wait(20)
    assert run.returncode == status, run.communicate()
    report = recording(path).report()
    assert report.facts("run")["complete"] == "yes"
    assert report.processes[0]["status"] & 127 == number
    report.check_accounts()


def test_a_signal_that_the_command_survives(started, recording, sonde_path, tmp_path):
    script = "trap 'echo caught' INT; echo ready; for i in 1 2 3 4 5; do sleep 0.1; done; exit 4"
    run = started([sonde_path, "run", "-o", tmp_path / "r.sonde", "--", "sh", "-c", script])
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGINT)
    assert run.communicate(timeout=20)[0] == "caught\n"
    assert run.returncode == 4
    assert recording(tmp_path / "r.sonde").path.exists()


def test_background_children_are_followed_to_their_end(harness):
    """The command ends first; what it left behind is still recorded."""
    run = harness("/bin/sh", "-c", "sh -c 'sleep 0.4; exit 3' & exit 0")
    recording = run.record()
    assert recording.made.status == 0 and recording.made.seconds >= 0.4
    assert len(recording.report(status=None).processes) == 3


def test_a_tracepoint(harness):
    if not os.path.exists("/sys/kernel/tracing/events/sched/sched_process_fork/id"):
        pytest.skip("tracefs is not mounted on /sys/kernel/tracing")
    report = harness("forkstorm", 100, options=["-e", "sched:sched_process_fork"]).report()
    assert report.facts("totals")["samples"] == 100


@pytest.mark.parametrize("event", ["cycles", "instructions"])
def test_a_counter_that_is_not_there(sonde, tmp_path, event):
    """Without a PMU: the sentence names the event and the way out, and nothing has run."""
    made = sonde("run", "-o", tmp_path / "r.sonde", "-e", event, "--", "touch", tmp_path / "ran")
    if made.status == 0:
        pytest.skip("this machine has a PMU")
    assert made.status == 125 and event in made.stderr and "use cpu" in made.stderr
    assert not (tmp_path / "ran").exists() and not (tmp_path / "r.sonde").exists()


def test_several_events(harness):
    options = ["-e", "cpu,page-faults@1,context-switches@1"]
    recording = harness("faults", 500, 50, options=options).record()
    found = {row["event"]: row for row in recording.report(status=None).rows("accounting")}
    assert list(found) == ["cpu", "page-faults", "context-switches"]
    assert found["page-faults"]["generated"] >= 500
    assert recording.report("--event", "page-faults").facts("totals")["event"] == "page-faults"


def test_switches_beside_blocked_time(harness):
    """Both are of the same switches: each is counted, and none is taken for the other."""
    recording = harness("blocked", options=["-w", "-e", "cpu,context-switches"]).record()
    found = {row["event"]: row for row in recording.report(status=None).rows("accounting")}
    blocked = sum(row["recorded"] for name, row in found.items() if name.startswith("off-cpu:"))
    assert found["context-switches"]["recorded"] >= blocked > 0
    assert found["context-switches"]["lost"] == found["off-cpu:other"]["lost"]


def test_default_name_of_the_recording(sonde, tmp_path):
    made = sonde("run", "--", "sh", "-c", "exit 0", cwd=tmp_path)
    assert made.status == 0, made
    (only,) = tmp_path.glob("sh-*.sonde")
    assert f"the recording is {only.name}" in made.stderr


def on_a_terminal(command, environment, output=None):
    """Everything a terminal gets to see of the command."""
    master, slave = os.openpty()
    process = subprocess.Popen([str(word) for word in command], env=environment, stdin=slave,
                               stdout=output or slave, stderr=slave, start_new_session=True)
    os.close(slave)
    seen = b""
    try:
        while True:
            seen += os.read(master, 65536)
    except OSError:  # nobody has it open any more
        os.close(master)
    assert process.wait(20) == 0
    return seen.decode()


def test_a_prompt_stays_on_the_terminal(sonde_path, environment, tmp_path):
    script = "printf 'Name? '; sleep 0.8; echo nobody"
    seen = on_a_terminal([sonde_path, "run", "-o", tmp_path / "r.sonde", "--", "sh", "-c", script],
                         environment)
    assert seen.startswith("Name? nobody\r\n"), seen


def test_progress_on_a_terminal(sonde_path, environment, target, tmp_path):
    """Where the command's output goes elsewhere: one line, gone in the end."""
    with open(tmp_path / "output", "wb") as output:
        seen = on_a_terminal([sonde_path, "run", "-o", tmp_path / "r.sonde", "--",
                              target("shares"), 800000], environment, output)
    assert "1 process, 1 thread" in seen and "samples" in seen, seen
    left = seen.rpartition("\033[K")[2]  # what stays when the line is cleared for the last time
    assert left.startswith("sonde: ") and "1 process, 1 thread" not in left, seen


CROWD = """
import os, time
children = []
for _ in range(90):
    child = os.fork()
    if not child:
        for _ in range(400):
            time.sleep(0.01)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""


def curves_of(sonde, path):
    """{name: [highest of each process]}"""
    found = {}
    for one in sonde("export", "--format", "json", path, "-o", "-").json["series"]:
        found.setdefault(one["name"], []).append(max(value for _, value in one["points"]))
    return found


def test_curves_are_there_unasked(sonde, tmp_path):
    """Memory, faults and switches of a run that says nothing of them, and none if told so."""
    path = tmp_path / "r.sonde"
    program = "import time; block = bytearray(48 << 20); [time.sleep(0.01) for _ in range(100)]"

    def run(*options):
        made = sonde("run", "-q", "-f", "-o", path, *options, "--", "/usr/bin/python3", "-c", program)
        assert made.status == 0, made
        return curves_of(sonde, path)
    assert run("--rss-rate", "0") == {}
    found = run()
    assert {name: len(of) for name, of in found.items()} == {"rss": 1, "page faults": 1, "switches": 1}
    assert 48 << 20 < found["rss"][0] < 80 << 20
    assert found["page faults"][0] > 500 and found["switches"][0] > 50


def test_curves_of_a_crowd(sonde, tmp_path):
    """However many processes there are, each is looked at in its turn."""
    path = tmp_path / "r.sonde"
    made = sonde("run", "-q", "-o", path, "--", "/usr/bin/python3", "-c", CROWD)
    assert made.status == 0, made
    found = curves_of(sonde, path)
    assert {name: len(of) for name, of in found.items()} == {"rss": 91, "page faults": 91, "switches": 91}


def test_memory_of_a_child_is_not_its_parents(sonde, recording, tmp_path):
    """What the kernel says of a process that has waited for others is of the largest of them."""
    path = tmp_path / "r.sonde"
    child = "import time; block = bytearray(100 << 20); time.sleep(0.5)"
    made = sonde("run", "-q", "-o", path, "--", "sh", "-c", f"/usr/bin/python3 -c '{child}'; true")
    assert made.status == 0, made
    shell, python = recording(path).report("--processes").rows("processes")
    assert not shell.get("max_rss"), shell
    highest = sorted(curves_of(sonde, path)["rss"])
    assert highest[0] < 20 << 20 and highest[1] > 100 << 20
