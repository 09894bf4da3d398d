"""`sonde stat` and `sonde list` against perf, time and valgrind themselves."""

import json
import os
import pathlib
import re
import shutil
import signal

import pytest

from runs import run

SOFTWARE = "task-clock,page-faults,context-switches,cpu-migrations"


def facts(done):
    return done.json["sections"]["run"]["facts"]


def events(done):
    return {row["event"]: row for row in done.json["sections"]["events"]["rows"]}


def notes(done):
    return " ".join(note["text"] for note in done.json["sections"]["notes"]["notes"])


@pytest.fixture
def stat(sonde, tmp_path):
    """stat(*options, command=[...]) -> Run, its stdout the JSON; the command's is .printed."""
    def call(*options, command=(), env=None, **more):
        output = tmp_path / "stat.json"
        done = sonde("stat", "--json", "-o", output, *options, "--", *command, env=env, **more)
        done.printed, done.stdout = done.stdout, output.read_text() if output.exists() else ""
        return done
    return call


def perf_counts(command, names, environment):
    done = run(["perf", "stat", "-x", ",", "-e", names, "--", *command], env=environment)
    return {line.split(",")[2]: float(line.split(",")[0]) for line in done.stderr.splitlines()
            if line.count(",") >= 3 and line[0].isdigit()}


def test_the_commands_own_output_status_and_signal(stat, target):
    done = stat(command=[target("exits"), "status", "3"])
    assert done.status == 3
    assert stat(command=[target("exits"), "signal", "9"]).status == 137
    assert stat(command=["/no/such"]).status == 127
    assert stat(command=["/etc/passwd"]).status == 126
    assert stat(command=["echo", "here"]).printed == "here\n"


@pytest.mark.skipif(not shutil.which("perf"), reason="no perf")
def test_agrees_with_perf(stat, target, environment):
    command = [target("shares"), "300000"]
    theirs = perf_counts(command, SOFTWARE, environment)
    ours = events(stat("-e", SOFTWARE, command=command))
    assert ours["page-faults"]["value"] == pytest.approx(theirs["page-faults"], abs=5)
    assert ours["task-clock"]["value"] / 1e6 == pytest.approx(theirs["task-clock"], rel=0.3)
    assert ours["task-clock"]["unit"] == "ns" and ours["task-clock"]["running_percent"] == 100


@pytest.mark.skipif(not shutil.which("perf"), reason="no perf")
def test_switches_agree_with_perf_and_time(stat, environment):
    """Of a program that sleeps so often that what a busy machine adds is little beside it."""
    command = ["/usr/bin/python3", "-c", "import time\nfor _ in range(400): time.sleep(0.0005)"]
    theirs = perf_counts(command, "context-switches,page-faults", environment)
    done = stat("-e", "context-switches,page-faults", command=command)
    ours, ran = events(done), facts(done)
    said = run(["/usr/bin/time", "-v", *command], env=environment).stderr
    slept = int(re.search(r"Voluntary context switches: (\d+)", said)[1])
    assert ran["voluntary_switches"] == pytest.approx(slept, rel=0.05, abs=10) and slept >= 400
    assert ours["context-switches"]["value"] >= 400 and theirs["context-switches"] >= 400
    forced = ours["context-switches"]["value"] - ran["voluntary_switches"]
    assert forced == pytest.approx(ran["involuntary_switches"], abs=10)
    assert ours["page-faults"]["value"] == pytest.approx(theirs["page-faults"], rel=0.02, abs=10)
    minor = int(re.search(r"Minor .*: (\d+)", said)[1])
    assert ran["minor_faults"] == pytest.approx(minor, rel=0.05, abs=20)


@pytest.mark.skipif(not shutil.which("time") and not os.path.exists("/usr/bin/time"),
                    reason="no time")
def test_agrees_with_time(stat, environment, tmp_path):
    script = tmp_path / "memory.py"
    script.write_text("x = bytearray(60 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\n"
                      "sum(range(3000000))\n")
    command = ["/usr/bin/python3", str(script)]
    done = run(["/usr/bin/time", "-v", *command], env=environment)
    said = dict(re.findall(r"^\t(.*?)(?: \(.*\))?: (\S+)$", done.stderr, re.M))
    ours = facts(stat("-e", "task-clock", command=command))
    assert ours["max_rss"] == pytest.approx(
        int(said["Maximum resident set size"]) * 1024, rel=0.05)
    assert ours["max_rss_is_bound"] == "no"
    faults = int(said["Minor"]) if "Minor" in said else None
    if faults:
        assert ours["minor_faults"] == pytest.approx(faults, rel=0.1)
    cpu = float(said["User time"]) + float(said["System time"])
    assert (ours["user"] + ours["sys"]) / 1e9 == pytest.approx(cpu, rel=0.4, abs=0.05)
    assert ours["real"] >= ours["user"] * 0.5


def test_the_whole_tree_is_counted(stat, target):
    rows = events(stat("-e", "task-clock", command=[target("tree")]))
    alone = events(stat("-e", "task-clock", command=[target("shares"), "1000000"]))
    assert rows["task-clock"]["value"] == pytest.approx(alone["task-clock"]["value"], rel=0.3)


def test_each_thread_by_itself(stat, target):
    done = stat("--per-thread", "-e", SOFTWARE, command=[target("threads")])
    rows = {row["name"]: row for row in done.json["sections"]["threads"]["rows"]}
    heavy, medium, light = (rows[name]["task-clock"] for name in ("heavy", "medium", "light"))
    assert heavy / light == pytest.approx(6, rel=0.15)
    assert medium / light == pytest.approx(3, rel=0.15)
    total = events(done)
    for event in SOFTWARE.split(","):
        assert sum(row[event] for row in rows.values()) == pytest.approx(
            total[event]["value"], rel=0.001, abs=2), event


def test_each_process_by_itself(stat, target):
    """Shares of CPU time by each one's own clock: a unit of work takes longer beside a busy neighbour."""
    done = stat("--per-thread", "-e", "task-clock", command=[target("tree"), "500ms"])
    shares = sorted(row["task-clock"] for row in done.json["sections"]["threads"]["rows"])
    assert len(shares) == 5
    whole = sum(shares)
    for share, percent in zip(shares, (10, 10, 20, 20, 40)):
        assert 100 * share / whole == pytest.approx(percent, abs=3)


def test_what_the_machine_lacks_stops_nothing(stat):
    done = stat("-e", "page-faults,nosuch:tracepoint,nopmu/x=1/,r1ff,task-clock", command=["true"])
    rows = events(done)
    assert done.status == 0 and rows["page-faults"]["value"] > 0
    assert rows["task-clock"]["value"] > 0
    seen = any(os.path.exists(f"/sys/kernel/{root}/events") for root in ("tracing", "debug/tracing"))
    assert ("no tracepoint" if seen else "tracepoints") in rows["nosuch:tracepoint"]["reason"]
    assert "no PMU 'nopmu'" in rows["nopmu/x=1/"]["reason"]
    assert rows["nosuch:tracepoint"]["value"] is None
    assert rows["r1ff"]["value"] is not None or rows["r1ff"]["reason"]


def test_the_table_for_people(sonde):
    done = sonde("stat", "-r", "3", "-e", "{task-clock,page-faults},nosuch:thing", "--", "true")
    assert " Performance counter stats for 'true' (3 runs):" in done.stderr
    assert re.search(r"^ +[\d.]+ msec task-clock +# +[\d.]+ CPUs utilized +\( \+- +[\d.]+% \)$",
                     done.stderr, re.M)
    assert re.search(r"^ +\d+      page-faults +# +[\d.]+ [KM]?/sec", done.stderr, re.M)
    assert re.search(r"^ +<not supported>      nosuch:thing$", done.stderr, re.M)
    assert "seconds time elapsed" in done.stderr and "maximum resident memory" in done.stderr
    assert done.stdout == ""
    table = sonde("stat", "--csv", "-o", "-", "-e", "page-faults", "--", "true").stdout
    assert table.splitlines()[0].startswith("event,value,unit")


def test_intervals_add_up(stat, target):
    done = stat("-I", "50", "-e", "task-clock,page-faults", command=[target("shares"), "300000"])
    rows = done.json["sections"]["intervals"]["rows"]
    assert len(rows) >= 3
    for event in ("task-clock", "page-faults"):
        assert sum(row[event] for row in rows) == pytest.approx(
            events(done)[event]["value"], rel=0.001, abs=1)


def test_a_process_that_runs(stat, started, target):
    process = started([target("steady")])
    done = stat("-p", process.pid, "--duration", "300ms", "-e", "task-clock,page-faults")
    assert done.status == 0 and process.poll() is None
    assert events(done)["task-clock"]["value"] > 0
    timed = stat("-p", process.pid, "-e", "task-clock", command=["sleep", "0.2"])
    assert 0.2e9 <= facts(timed)["real"] < 5e9
    process.send_signal(signal.SIGKILL)
    process.wait()
    gone = stat("-p", process.pid)
    assert gone.status == 1 and f"there is no process {process.pid}" in gone.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="whole CPUs are for root")
def test_all_cpus(stat):
    done = stat("-a", "-e", "cpu-clock,context-switches", command=["sleep", "0.3"])
    cpus = os.cpu_count()
    assert events(done)["cpu-clock"]["value"] == pytest.approx(
        facts(done)["real"] * cpus, rel=0.2)


@pytest.mark.parametrize("options, word", [
    (["-e", "bogus", "--", "true"], "is not an event"),
    (["-e", "{cycles", "--", "true"], "'}' is missing"),
    (["-e", "cpu/event=1", "--", "true"], "pmu/event/"),
    (["-p", "x"], "not a process number"), (["-I", "0", "--", "true"], "1 ms or more"),
    (["-I", "soon", "--", "true"], "milliseconds"), ([], "nothing to count"),
    (["-a", "-p", "1"], "choose one"), (["--json", "--csv", "--", "true"], "exclude each other"),
    (["-r", "2", "-p", "1"], "--repeat"), (["--simulate=x", "--", "true"], "cache or calls"),
    (["--simulate", "-p", "1"], "one command")])
def test_bad_options(sonde, options, word):
    done = sonde("stat", *options)
    assert done.status == 2 and word in done.stderr and len(done.stderr.splitlines()) == 1, done


def test_an_output_that_cannot_be_written(sonde):
    done = sonde("stat", "-o", "/no/such/folder/x", "--", "true")
    assert done.status == 1 and "cannot write /no/such/folder/x" in done.stderr


def test_an_ordinary_user(nobody):
    done = nobody("stat", "--json", "-o", "-", "-e", SOFTWARE, "--", "sh", "-c", "exit 4")
    rows = events(done)
    assert done.status == 4 and rows["page-faults"]["value"] > 0
    assert rows["task-clock"]["value"] > 0
    if int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text()) >= 2:
        assert rows["page-faults"]["user_only"] == "yes" and "kernel.perf_event_paranoid" in \
            notes(done)


def test_in_a_seccomp_filter(sonde_path, environment, target):
    """perf_event_open is refused: the kernel's accounts take its place."""
    done = run([target("deny"), "perf", sonde_path, "stat", "--json", "-o", "-", "-e",
                f"{SOFTWARE},cycles", "--", "sh", "-c", "exit 5"], env=environment)
    rows = events(done)
    assert done.status == 5 and rows["page-faults"]["value"] > 0
    assert rows["page-faults"]["origin"] == "accounted"
    assert rows["context-switches"]["value"] is not None
    assert rows["cycles"]["reason"] and "kernel's accounts" in notes(done)


@pytest.fixture
def control_group():
    """The folder of a control group for memory, of either version, gone after the test."""
    for parent in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup"):
        group = pathlib.Path(parent) / f"sonde-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / "cgroup.procs").exists():
            yield group
            group.rmdir()
            return
        group.rmdir()
    pytest.skip("no control groups here")


def test_in_a_control_group(sonde_path, environment, control_group):
    """Counts are what they are outside; limits are made as groups below the one that we are in."""
    def inside(*words):
        enter = f"echo $$ > {control_group}/cgroup.procs && exec \"$@\""
        return run(["sh", "-c", enter, "sh", sonde_path, *words], env=environment)
    done = inside("stat", "--json", "-o", "-", "-e", SOFTWARE, "--", "sh", "-c", "exit 6")
    rows = events(done)
    assert done.status == 6 and all(rows[name]["value"] is not None for name in rows), done
    assert rows["page-faults"]["value"] > 20
    limit = inside("run", "-q", "-f", "-o", "/dev/null/x", "--memory-limit", "64M", "--", "true")
    assert limit.status == 125 and "/dev/null/x" in limit.stderr, limit
    assert [path for path in control_group.iterdir() if path.is_dir()] == []


@pytest.fixture
def paranoid():
    path = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
    before = path.read_text()

    def set_level(level):
        try:
            path.write_text(str(level))
        except OSError:
            pytest.skip("kernel.perf_event_paranoid cannot be set here")
    yield set_level
    path.write_text(before)


@pytest.mark.alone
def test_users_count_their_own_side(nobody, paranoid):
    """2, the kernel's default."""
    paranoid(2)
    done = nobody("stat", "--json", "-o", "-", "-e", SOFTWARE, "--", "true")
    rows = events(done)
    assert done.status == 0 and rows["page-faults"]["user_only"] == "yes"
    assert rows["page-faults"]["value"] > 0 and rows["task-clock"]["value"] > 0


@pytest.mark.alone
def test_a_machine_that_lets_nobody_count(nobody, paranoid):
    """3 and more refuse users everything where the kernel has that patch; 2 the kernel's side."""
    paranoid(4)
    done = nobody("stat", "--json", "-o", "-", "-e", SOFTWARE, "--", "true")
    rows = events(done)
    assert done.status == 0 and rows["page-faults"]["value"] > 0
    assert rows["page-faults"]["origin"] in ("counted", "accounted")
    if rows["page-faults"]["origin"] == "accounted":
        assert "kernel's accounts" in notes(done)


needs_valgrind = pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")


@needs_valgrind
def test_simulated_counts_are_cachegrinds(stat, target, environment, tmp_path):
    command = [str(target("shares")), "2000"]
    out = tmp_path / "cachegrind.out"
    run(["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--branch-sim=yes",
         "--trace-children=yes", f"--log-file={tmp_path}/log", f"--cachegrind-out-file={out}",
         *command], env=environment)
    text = out.read_text()
    names = re.search(r"^events: (.*)$", text, re.M)[1].split()
    theirs = dict(zip(names, map(int, re.search(r"^summary: (.*)$", text, re.M)[1].split())))
    done = stat("--simulate", command=command)
    ours = {name: row["value"] for name, row in events(done).items()}
    expected = {"instructions": theirs["Ir"], "L1-dcache-loads": theirs["Dr"],
                "L1-dcache-load-misses": theirs["D1mr"], "L1-dcache-stores": theirs["Dw"],
                "LLC-load-misses": theirs["ILmr"] + theirs["DLmr"],
                "LLC-store-misses": theirs["DLmw"], "branches": theirs["Bc"] + theirs["Bi"],
                "branch-misses": theirs["Bcm"] + theirs["Bim"]}
    for name, value in expected.items():  # the two runs' addresses differ, so a few misses may
        assert ours[name] == pytest.approx(value, rel=0.002, abs=20), name
    assert all(row["origin"] == "simulated" for row in events(done).values())
    assert "simulated" in notes(done)
    rows = {row["name"]: row for row in done.json["sections"]["functions"]["rows"]}
    assert rows["most"]["instructions"] / rows["least"]["instructions"] == pytest.approx(6, rel=.02)
    lines = done.json["sections"]["lines"]["rows"]
    assert sum(row["instructions"] for row in lines) == ours["instructions"]


@needs_valgrind
def test_simulated_forks_are_counted_once(stat, target, sonde, tmp_path):
    recording = tmp_path / "sim.sonde"
    done = stat("--simulate=calls", "--record", recording, command=[target("tree"), "1000"],
                timeout=120)
    whole = events(done)["instructions"]["value"]
    alone = events(stat("--simulate", command=[target("shares"), "1000"]))["instructions"]["value"]
    assert whole == pytest.approx(alone, rel=0.6)
    report = sonde("report", "--json", "-e", "instructions", recording)
    assert report.status == 0 and report.json["sections"]["functions"]["rows"]


def test_list_tells_what_opens(sonde):
    done = sonde("list", "--json")
    rows = {row["event"]: row for row in done.json["sections"]["events"]["rows"]}
    assert rows["page-faults"]["opens"] == "yes" and rows["page-faults"]["alias"] == "faults"
    assert rows["cycles"]["group"] == "hardware"
    assert rows["cycles"]["opens"] == "yes" or rows["cycles"]["why"]
    assert "L1-dcache-load-misses" in rows
    few = sonde("list", "--csv", "*FAULTS").stdout
    assert "page-faults" in few and "cycles" not in few
    assert sonde("list", "nothing-of-this-name").status == 1


def test_listed_software_events_are_counted(stat, sonde):
    done = sonde("list", "--json", "--open", "*-faults")
    names = [row["event"] for row in done.json["sections"]["events"]["rows"]
             if row["group"] == "software"]
    counted = events(stat("-e", ",".join(names), command=["true"]))
    assert all(counted[name]["reason"] is None for name in names)


@pytest.mark.skipif(os.geteuid() != 0, reason="limits of control groups are for root")
def test_limits_are_kept_and_told(sonde, recording, tmp_path):
    path = tmp_path / "limited.sonde"
    burn = "import time\nend = time.time() + 1\nwhile time.time() < end: pass\n" \
           "print(time.process_time())"
    done = sonde("run", "-q", "-o", path, "--nice", "7", "--cpu-limit", "0.3", "--", "python3",
                 "-c", burn + "\nimport os; print(os.nice(0))")
    if done.status == 125 and "control group" in done.stderr:
        pytest.skip("no control groups here")
    used, nice = done.stdout.split()
    assert float(used) < 0.55 and nice == "7"
    said = " ".join(recording(path).report("--notes").notes)
    assert "limited to 0.3 CPUs by a control group" in said and "nice 7" in said
    done = sonde("run", "-q", "-f", "-o", path, "--memory-limit", "64M", "--", "python3", "-c",
                 "bytearray(300 << 20)")
    assert done.status in (1, 137)
    assert "memory was limited to 64.0 MiB" in " ".join(recording(path).report("--notes").notes)


@pytest.mark.skipif(os.geteuid() != 0, reason="limits of control groups are for root")
def test_limits_are_those_of_the_group(sonde, recording, tmp_path):
    """The command finds itself in a group with these limits, on these CPUs; the report says so."""
    path = tmp_path / "g.sonde"
    look = "import os, sys\nprint(os.sched_getaffinity(0))\n" \
           "for line in open('/proc/self/cgroup'):\n" \
           "    _, names, folder = line.strip().split(':', 2)\n" \
           "    for base in ('/sys/fs/cgroup/' + names, '/sys/fs/cgroup'):\n" \
           "        for name in ('memory.limit_in_bytes', 'memory.max', 'cpu.cfs_quota_us', 'cpu.max'):\n" \
           "            if os.path.exists(base + folder + '/' + name):\n" \
           "                print(name, open(base + folder + '/' + name).read().strip())\n"
    done = sonde("run", "-q", "-o", path, "--cpus", "0", "--memory-limit", "300M", "--cpu-limit",
                 "0.5", "--", "/usr/bin/python3", "-c", look)
    if done.status == 125 and "control group" in done.stderr:
        pytest.skip("no control groups here")
    lines = done.stdout.splitlines()
    assert done.status == 0 and lines[0] == "{0}", done
    assert {f"memory.limit_in_bytes {300 << 20}", f"memory.max {300 << 20}"} & set(lines)
    assert {"cpu.cfs_quota_us 50000", "cpu.max 50000 100000"} & set(lines)
    said = " ".join(recording(path).report("--notes").notes)
    assert "0.5 CPUs by a control group" in said and "300.0 MiB" in said and "CPUs 0" in said


def test_timeout(sonde, recording, tmp_path):
    path = tmp_path / "t.sonde"
    done = sonde("run", "-q", "-o", path, "--timeout", "300ms", "--", "sh", "-c", "sleep 30; true")
    assert done.status == 143 and done.seconds < 20
    assert "--timeout" in json.dumps(recording(path).show("--notes", "--json", status=None).json)


@pytest.mark.parametrize("options, status", [
    (["--nice", "x"], 2), (["--nice", "30"], 2), (["--cpu-limit", "0"], 2),
    (["--memory-limit", "1K"], 2), (["--timeout", "never"], 2)])
def test_bad_limits(sonde, options, status):
    assert sonde("run", *options, "--", "true").status == status


def test_limits_of_an_ordinary_user(nobody):
    done = nobody("run", "--cpu-limit", "0.5", "--", "true")
    assert done.status == 125 and "control group" in done.stderr
    done = nobody("run", "-q", "-o", "n.sonde", "--memory-limit", "200M", "--", "python3", "-c",
                  "bytearray(600 << 20)")
    assert done.status == 1 and "MemoryError" in done.stderr
