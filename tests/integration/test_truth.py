"""What reports say is what the programs did: targets whose shares, depths, waits and lines are known
beforehand."""

import os

import pytest

pytestmark = pytest.mark.alone

MS = 1000000


def assert_shares(rows, expected, points):
    """Percentages by name, each within so many points."""
    found = {row["name"]: row for row in rows}
    for name, percent in expected.items():
        assert name in found, (name, sorted(found))
        share = found[name].get("total_percent", found[name]["self_percent"])
        assert abs(share - percent) <= points, (name, share)


SHARES = {"most": 60, "some": 30, "least": 10}


def test_shares_at_default_settings(harness):
    report = harness("shares", 2000000, 50000).report()  # turns that outlast many samples
    assert_shares(report.rows("functions"), SHARES, 3)
    report.check_accounts()


def test_shares_of_many_samples(harness):
    """20,000 samples: a share above 5 % is right to a percentage point."""
    report = harness("shares", 6500000, options=["--rate", 5000]).report()
    assert report.facts("totals")["samples"] >= 20000
    assert_shares(report.rows("functions"), SHARES, 1)
    report.check_accounts()


@pytest.mark.parametrize("denied", ["bpf", "perf"])
def test_shares_by_the_next_best_way(harness, target, denied):
    """Each thread's own clock where BPF is refused; timers inside the program where perf is."""
    recording = harness("shares", 3000000, under=[target("deny"), denied]).record()
    report = recording.report()
    assert_shares(report.rows("functions"), SHARES, 6)
    report.check_accounts()
    assert ("inside" in recording.show().stdout) == (denied == "perf")


def test_threads_have_their_names_and_shares(harness):
    report = harness("threads", 1000000).record().report("--threads")
    rows = [row for row in report.rows("threads") if row["self"]]
    assert_shares(rows, {"heavy": 60, "medium": 30, "light": 10}, 3)
    for row in rows:
        counted = row["cpu_counted"]
        assert counted and abs(row["self"] - counted) < 0.05 * counted + 5 * MS, row


def test_counted_time_is_of_each_process(harness):
    """The kernel's own count stands with the process that used it, also when parent and child take
    turns on a CPU."""
    for process in harness("tree", 500000).report().processes:
        assert process["cpu_counted"], process
        assert abs(process["cpu_counted"] - process["self"]) < 10 * MS, process


def test_threads_bear_the_name_of_their_maker(harness):
    report = harness("manythreads", 100).record().report("--threads", "--top", "0", status=0)
    assert {row["name"] for row in report.rows("threads")} == {"manythreads"}


@pytest.mark.parametrize("depth", [100, 1500])
def test_deep_stacks_are_whole(harness, depth):
    recording = harness("deep", depth, 800000).record()
    report = recording.report()
    assert report.profiler["stacks_cut"] == 0, report.profiler
    # A process on its way in has no stack of its own yet, and on its way out none any more.
    own = sum(report.share(name) for name in ("_start", "__x64_sys_execve", "do_exit"))
    assert own > 99.9 and report.share("bottom") > 98
    tree = recording.report("--tree", "--min", "20").rows("tree")
    assert sum(row["name"] == "descend" for row in tree) == depth


def test_stacks_deeper_than_what_is_copied(harness):
    """The rest is read while the program runs, so what is taken up after its end may be cut: 50 ms
    at most, and it is counted."""
    recording = harness("deep", 8000, 1000000).record()
    report = recording.report()
    assert 0 <= report.profiler["stacks_cut"] < 50, report.profiler
    assert report.share("bottom") > 98
    tree = recording.report("--tree", "--min", "20").rows("tree")
    assert sum(row["name"] == "descend" for row in tree) == 8000


def test_inlined_functions_and_lines(harness):
    recording = harness("inline", 500000).record()
    lines = dict(line.split() for line in recording.made.stdout.splitlines()[:3])
    report = recording.report()
    for name in "inner", "middle", "outer", "main":
        assert report.share(name) > 99, name
    path = [row["name"] for row in report.rows("hottest_path")]
    assert path[path.index("main"):][:4] == ["main", "outer", "middle", "inner"]
    found = {row["line"]: row for row in recording.report("--lines").rows("lines")
             if row["file"] and row["file"].endswith("inline.c")}
    for name in "middle", "outer":
        assert found[int(lines[name])]["total_percent"] > 99, name
    inner = int(lines["inner"])  # the loop's own line and the one it repeats
    assert found[inner]["self_percent"] + found[inner - 1]["self_percent"] > 95
    apart = recording.report("--no-inline")
    assert apart.share("outer") > 99 and apart.share("inner") == 0


def test_waits_and_their_causes(harness):
    """3 units asleep and 3 in the thread that holds the lock; 2 for the lock; 1 for the pipe."""
    recording = harness("sleeper", 100, options=["--wall"]).record()
    report = recording.report()
    for cause, expected in (("sleep", 600), ("lock", 200), ("io", 100)):
        waited = report.waited(cause) / MS
        assert abs(waited - expected) < 0.1 * expected, (cause, waited)
    for event, function in (("sleep", "in_sleep"), ("lock", "in_lock"), ("io", "in_read")):
        shown = recording.report("--event", f"off-cpu:{event}")
        assert shown.share(function) > 45, (event, function)
    main = recording.report("--event", "off-cpu:lock").rows("functions")
    assert "in_read" not in {row["name"] for row in main}


def test_wait_for_a_child(harness, tmp_path):
    report = harness("/bin/sh", "-c", "sleep 0.3; exit 0", options=["--wall"]).report()
    assert abs(report.waited("child") / MS - 300) < 30
    assert abs(report.waited("sleep") / MS - 300) < 30


def test_short_processes_are_all_there(harness):
    report = harness("short", 200, 1000).report()
    children = report.processes[1:]
    assert len(children) == 200
    assert all(child["parent_pid"] == report.processes[0]["pid"] for child in children)
    assert all(child["status"] == 0 for child in children)
    assert all(child["cpu_counted"] for child in children)


by_bpf = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists("/sys/kernel/btf/vmlinux"),
    reason="the CPUs' clock needs root and a kernel that describes its types")


@by_bpf
def test_short_programs_keep_their_arguments(harness):
    """Gone within a millisecond or two: the kernel has taken them down."""
    script = "for i in 1 2 3 4 5 6 7 8; do /bin/true $i 'of eight'; done; exec /bin/true at last"
    report = harness("/bin/sh", "-c", script).record().report("--processes")
    found = [process["arguments"] for process in report.processes]
    assert found == ["/bin/true at last"] + [f"/bin/true {i} of eight" for i in range(1, 9)]


@by_bpf
def test_short_processes_have_their_share(harness):
    """Half a period each: the clock meets every second of them."""
    report = harness("short", 400, 1000, options=["--rate", "499"]).report()
    counted = sum(process["cpu_counted"] for process in report.processes)
    sampled = report.facts("totals")["value_recorded"]
    assert abs(sampled - counted) < 0.3 * counted, (sampled, counted)


STARTING = 150  # page faults that it takes a program to start and to end, at most


def faults_of(recording):
    """The report, and the page faults that getrusage counted while pages were touched."""
    report = recording.report("--event", "page-faults")
    totals = report.facts("totals")
    assert totals["samples"] == totals["value"] == report.profiler["recorded"]
    return report, int(recording.made.stdout)


def test_page_faults_are_all_recorded(harness):
    """Every one, where they do not come faster than they can be taken."""
    options = ["-e", "page-faults@1", "--cpus", "0"]
    report, counted = faults_of(harness("faults", 300, 300, options=options).record())
    assert report.profiler["lost"] == 0
    assert counted == 300
    assert counted <= report.profiler["recorded"] <= counted + STARTING
    touched = [row for row in report.rows("functions") if row["name"] == "touch_pages"]
    assert touched[0]["total_samples"] == 300


def test_page_faults_that_are_lost_are_counted(overrun):
    report, counted = faults_of(overrun(20000))
    assert report.profiler["lost"] > 0
    assert counted <= report.profiler["generated"] <= counted + STARTING


def test_page_faults_in_a_burst(harness):
    """By rate, each sample stands for as many as went by: nothing is lost, the sum is right."""
    recording = harness("faults", 200000, options=["-e", "page-faults"]).record()
    report, counted = recording.report("--event", "page-faults"), int(recording.made.stdout)
    assert report.profiler["lost"] == 0
    assert abs(report.facts("totals")["value"] - counted) < 0.1 * counted
    assert report.share("touch_pages") > 90
