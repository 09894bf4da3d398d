"""The heap agent inside its targets, without the rest of sonde: sums equal to the known truth, and
nobody notices. tests/agent/heapwatch is the collector."""

import json
import pathlib
import random
import re
import shutil

import pytest

from programs import FAULTS, TRUTHS, arguments_of, label
from runs import run

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
MIB = 1 << 20


class Heaps:
    """What heapwatch wrote."""

    def __init__(self, path):
        self.data = json.loads(path.read_text())
        self.processes = self.data["processes"]

    def __getattr__(self, name):
        """The sum over all processes."""
        return sum(process[name] for process in self.processes)

    def of(self, program):
        """allocations, bytes, live and temporary of cells that `program` itself asked for."""
        cells = [cell for process in self.processes for cell in process["cells"]
                 if cell["frames"] and cell["frames"][0].startswith(str(program) + "+")]
        return [sum(cell[kind] for cell in cells)
                for kind in ("allocations", "bytes", "live", "temporary")]


class Watch:
    def __init__(self, build, folder, environment):
        self.command = [build / "tests/agent/heapwatch", "-c", folder / "rows", "-o",
                        folder / "heap.json"]
        self.library = build / "src/agent/libsonde.so"
        self.report = folder / "heap.json"
        self.environment = environment

    def run(self, command, options=(), preload="", **more):
        self.report.unlink(missing_ok=True)
        env = {**self.environment, **({"LD_PRELOAD": str(preload)} if preload else {})}
        done = run([*self.command, *options, self.library, *command], env=env, **more)
        return done, Heaps(self.report)

    def compare(self, command, options=(), preload="", **more):
        """The same with and without; every allocation accounted for."""
        env = {**self.environment, **({"LD_PRELOAD": str(preload)} if preload else {})}
        alone = run(command, env=env, **more)
        under, heaps = self.run(command, options, preload, **more)
        assert under.status == alone.status, (alone, under)
        assert under.stdout == alone.stdout, (alone, under)
        check_sums(heaps)
        return under, heaps


def check_sums(heaps):
    for process in heaps.processes:
        assert process["generated"] == process["recorded"] + process["lost"], process
        assert process["recorded"] == process["allocations"] or process["sampled"]
        assert not process["damaged"]


@pytest.fixture
def watch(build, tmp_path, environment):
    return Watch(build, tmp_path, environment)


@pytest.fixture
def own(build, target):
    """A program that is not in C, from its text."""
    def make(name, text, tmp_path):
        compiler = shutil.which("g++")
        if not compiler:
            pytest.skip("there is no g++")
        source = tmp_path / f"{name}.cc"
        source.write_text(text)
        assert run([compiler, "-O1", source, "-o", tmp_path / name]).status == 0
        return tmp_path / name
    return make


@pytest.mark.parametrize("options", [[], ["-s", "4096"]], ids=["exact", "sampled"])
@pytest.mark.parametrize("program", TRUTHS + FAULTS, ids=label)
def test_a_target_does_not_notice(watch, target, program, options):
    watch.compare([target(program.name), *arguments_of(program, target)], options, timeout=120)


@pytest.mark.parametrize("mode", ["simple", "chain", "aligned"])
def test_one_thread_is_exact(watch, target, mode):
    heap = target("heap")
    done, heaps = watch.compare([heap, mode])
    allocations, bytes_, live, peak, temporary = map(int, done.stdout.split())
    assert heaps.of(heap)[:3] == [allocations, bytes_, live] or mode == "aligned"
    process, = heaps.processes
    assert process["allocations"] == allocations
    assert process["bytes"] == bytes_
    assert process["live"] == live
    assert process["peak"] == peak == process["peak_sum"]
    assert process["temporary"] == temporary
    assert process["lost"] == process["unknown_frees"] == 0


def test_threads_free_what_others_allocated(watch, target):
    heap = target("heap")
    done, heaps = watch.compare([heap, "across"])
    allocations, bytes_, live, peak, temporary = map(int, done.stdout.split())
    assert heaps.of(heap) == [allocations, bytes_, live, temporary]
    process, = heaps.processes
    assert process["unknown_frees"] == 0
    assert abs(process["peak_sum"] - peak) < peak * 0.001 + 2000  # libc's own, for threads
    foreign = sum(cell["foreign_frees"] for cell in process["cells"])
    assert foreign == allocations
    threads = {cell["thread"] for cell in process["cells"] if cell["foreign_frees"]}
    assert len(threads) == 4


@pytest.mark.parametrize("threads, lives, slots", [(1, 2, 200), (2, 4, 100), (3, 3, 40000), (24, 2, 3000)])
def test_blocks_wander_between_threads(watch, target, threads, lives, slots):
    """Freed by whoever comes first, by many threads or by those that came after the one that allocated;
    also where a thread holds more than it has places for its latest blocks."""
    mailbox = target("mailbox")
    done, heaps = watch.run([mailbox, threads, lives, slots], timeout=120)
    allocations, frees, left = map(int, done.stdout.split())
    process, = heaps.processes
    check_sums(heaps)
    # A thread that the kernel puts aside within a table is waited for, but not for ever.
    missed = process["lost"] + process["unknown_frees"]
    assert missed < 1e-4 * allocations
    found = heaps.of(mailbox)
    assert abs(found[0] - allocations - 1) <= missed  # with the slots themselves
    assert abs(found[2] - left - 8 * slots) <= 1000 * missed


def test_the_tree_peaks_when_no_process_does(watch, target):
    heap = target("heap")
    _, heaps = watch.compare([heap, "tree"])
    assert sorted(process["peak"] for process in heaps.processes) == [20 * MIB, 30 * MIB, 39 * MIB]
    assert abs(heaps.data["tree_peak"] - 45 * MIB) < 0.01 * 45 * MIB
    held = sorted(process["tree_peak"] for process in heaps.processes
                  if process["tree_epoch"] == heaps.data["tree_epoch"])
    assert held == [5 * MIB, 10 * MIB, 30 * MIB]


def test_a_child_inherits(watch, target):
    heap = target("heap")
    _, heaps = watch.compare([heap, "inherited"])
    parent, child = heaps.processes
    if parent["allocations"] < child["allocations"]:
        parent, child = child, parent
    assert (parent["allocations"], parent["live"]) == (1000, 100000)
    assert (child["allocations"], child["live"]) == (10, 10000)
    assert (parent["unknown_frees"], child["unknown_frees"]) == (0, 1000)


def test_a_child_in_a_sandbox(watch, build):
    """Not even that its heap cannot be recorded is said: that takes system calls."""
    done, heaps = watch.compare([build / "tests/agent/sandbox", "before"])
    assert done.stdout.startswith(f"{7 << 8}\n")
    assert len(heaps.processes) == 1


def test_handlers_that_allocate(watch, target):
    _, heaps = watch.compare([target("heap"), "handler"])
    process, = heaps.processes
    assert process["live"] == 0
    assert process["lost"] == process["lost_nested"] <= 200


def test_handlers_that_never_return(watch, target):
    """300 jumps out of whatever was under way; the agent finds out and goes on."""
    bump = target("lib_bump.so")
    _, heaps = watch.compare([target("heap"), "jumping"], preload=bump)
    process, = heaps.processes
    assert process["lost"] <= 300
    leaks = [cell for cell in process["cells"] if cell["live_blocks"] == 100]
    assert [cell["live"] for cell in leaks] == [1000]


@pytest.mark.parametrize("name", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"])
def test_other_allocators(watch, target, own, tmp_path, name):
    library = LIBRARIES / name
    if not library.exists():
        pytest.skip(f"there is no {name}")
    heap = target("heap")
    for mode in ("simple", "across"):
        done, heaps = watch.compare([heap, mode], preload=library)
        allocations, bytes_, live, _, temporary = map(int, done.stdout.split())
        assert heaps.of(heap) == [allocations, bytes_, live, temporary]
    # Debian builds mimalloc as C: where new should throw, the program is ended. Without an exception nothing
    # is allocated after `quiet`, so that it is temporary too.
    throws = "mimalloc" not in name
    new = own("new", NEW if throws else NEW.replace(FAILS, ""), tmp_path)
    done, heaps = watch.compare([new], preload=library)
    assert done.status == 0, done
    assert heaps.of(new) == [NEW_ALLOCATIONS, NEW_BYTES, NEW_LIVE, 1 if throws else 2]


FAILS = """volatile std::size_t huge = std::size_t(1) << 62;
    try { keep = new char[huge]; return 1; } catch (const std::bad_alloc &) {}
    if (new (std::nothrow) char[huge]) return 1;
    """
NEW = """
#include <new>
struct alignas(128) wide { char bytes[128]; };
static void *volatile keep;
int main()
{
    char *one = new char; keep = one;
    int *some = new int[25]; keep = some;
    wide *aligned = new wide; keep = aligned;
    char *quiet = new (std::nothrow) char[1000]; keep = quiet;
    @FAILS@delete one; delete[] some; delete aligned; delete[] quiet;
    char *last = new char[7]; keep = last; delete[] last;
    keep = new char[50];
    return 0;
}
""".replace("@FAILS@", FAILS)
NEW_ALLOCATIONS, NEW_BYTES, NEW_LIVE = 6, 1 + 100 + 128 + 1000 + 7 + 50, 50


def test_killed_at_any_instant(watch, target):
    chance = random.Random(7)
    for _ in range(24):
        done, heaps = watch.run([target("heap"), "endless"],
                                ["-k", str(chance.randrange(3000, 150000))])
        assert done.status == 137
        for process in heaps.processes:
            assert process["generated"] == process["recorded"] + process["lost"]
            assert process["lost"] <= 4  # one a thread was under way
            assert not process["damaged"]
            assert process["live"] < 10 * MIB


def test_tables_beyond_their_bound(watch, target):
    """Blocks that find no room are counted, and the program has its memory all the same."""
    _, heaps = watch.compare([target("heap"), "many", "1200000"], ["-m", str(8 * MIB)])
    process, = heaps.processes
    assert process["generated"] == 1200000
    assert process["lost"] == process["lost_blocks"] > 100000


def test_bytes_of_a_live_block(watch, target):
    _, heaps = watch.compare([target("heap"), "many", "1000000"])
    process, = heaps.processes
    assert process["recorded"] == 1000000
    assert process["table_bytes"] < 40 * 1000000


def test_samples_estimate_without_bias(watch, target):
    heap = target("heap")
    _, exact = watch.run([heap, "many", "300000"])
    _, sampled = watch.run([heap, "many", "300000"], ["-s", "4096"])
    for kind in ("allocations", "bytes", "live"):
        truth = getattr(exact, kind)
        assert abs(getattr(sampled, kind) - truth) < 0.06 * truth, kind
    assert sampled.recorded < exact.recorded / 20


@pytest.mark.parametrize("command", [["ls", "/usr/bin"], ["sqlite3", ":memory:",
                                     "create table t(a); insert into t values(1); select * from t"],
                                     ["sort", "/etc/services"]], ids=lambda c: c[0])
def test_counts_are_valgrinds(watch, command, environment):
    if not shutil.which("valgrind") or not shutil.which(command[0]):
        pytest.skip(f"there is no valgrind or no {command[0]}")
    said = run(["valgrind", "--run-libc-freeres=no", "--run-cxx-freeres=no", *command],
               env=environment, timeout=120).stderr
    numbers = re.search(r"total heap usage: ([\d,]+) allocs, ([\d,]+) frees, ([\d,]+) bytes", said)
    allocations, frees, bytes_ = (int(n.replace(",", "")) for n in numbers.groups())
    _, heaps = watch.compare(command)
    process, = heaps.processes
    assert (process["allocations"], process["frees"]) == (allocations, frees)
    assert abs(process["bytes"] - bytes_) < 4096  # the environment's length differs


class Recorded:
    """A recording made with --heap."""

    def __init__(self, sonde, folder, command, *options):
        self.sonde, self.path = sonde, folder / "heap.sonde"
        self.run = sonde("run", "-q", "--force", "--heap", *options, "-o", self.path, "--", *command)
        assert self.run.status == 0, self.run
        whole = sonde("export", "-f", "json", "-o", "-", self.path).json
        self.meta, self.series, self.losses = whole["meta"], whole["series"], whole["losses"]

    def stacks(self, event):
        """{(names outermost first): value}"""
        text = self.sonde("export", "-f", "folded", "--event", event, "-o", "-", self.path).stdout
        return {tuple(stack.split(";")): int(value) for stack, _, value in
                (line.rpartition(" ") for line in text.splitlines())}

    def within(self, event, name):
        return sum(value for stack, value in self.stacks(event).items() if name in stack)


def test_leaks_have_names(sonde, target, tmp_path):
    r = Recorded(sonde, tmp_path, [target("heap"), "simple"])
    assert r.within("heap:live", "site_leak") == 640
    assert r.within("heap:live", "site_malloc") == 0
    assert r.within("heap:allocated", "site_malloc") == 300350
    assert r.within("heap:peak", "simple") == 100000
    assert r.within("heap:temporary", "site_malloc") == 3 * 100 + 50 * 7
    leak, = (stack for stack in r.stacks("heap:live") if "site_leak" in stack)
    assert leak[0] == "_start" and leak[-2:] == ("simple", "site_leak")
    assert r.meta["heap_mode"] == "exact"
    assert not r.losses


@pytest.mark.parametrize("size", [0, 1, 4096, None])
def test_the_collectors_files_are_others(sonde, target, tmp_path, size):
    """In another namespace the paths of what the collector shares lead anywhere, or nowhere."""
    other = tmp_path / "other"
    if size is not None:
        other.write_bytes(b"x" * size)
    r = Recorded(sonde, tmp_path, ["env", f"SONDE_SESSION_PACK={other}",
                                   f"SONDE_SESSION_HEAP_TREE={other}", target("heap"), "simple"])
    assert r.within("heap:allocated", "site_malloc") == 300350
    assert r.within("heap:live", "site_leak") == 640
    assert size is None or other.read_bytes() == b"x" * size


def test_the_recorded_tree(sonde, target, tmp_path):
    r = Recorded(sonde, tmp_path, [target("heap"), "tree"])
    assert abs(int(r.meta["heap_tree_peak"]) - 45 * MIB) < 0.01 * 45 * MIB
    assert abs(sum(r.stacks("heap:tree-peak").values()) - 45 * MIB) < 0.01 * 45 * MIB
    assert sum(r.stacks("heap:peak").values()) == 89 * MIB
    assert int(r.meta["heap_tree_peak_time"]) >= int(r.meta["start"])


def test_children_have_parents_however_short_they_live(sonde, target, tmp_path):
    """Also if their agents tell of them before the kernel does, and they are over by then."""
    path = tmp_path / "short.sonde"
    for _ in range(12):
        assert sonde("run", "--force", "--heap", "-o", path, "--", target("heap"), "tree").status == 0
        root, *children = sonde("report", path, "--processes", "--json").json["sections"]["processes"]["rows"]
        assert [(child["parent_pid"], child["name"]) for child in children] == [(root["pid"], "heap")] * 2


def test_an_exec_keeps_the_stacks_before_it(sonde, target, tmp_path):
    heap = target("heap")
    r = Recorded(sonde, tmp_path, ["sh", "-c", f"x=1; exec {heap} simple"])
    stacks = r.stacks("heap:allocated")
    assert r.within("heap:allocated", "site_malloc") == 300350
    assert sum(value for stack, value in stacks.items() if "site_malloc" not in stack) > 1000
    assert not any(frame.startswith("[unknown") for stack in stacks for frame in stack)


def test_curves(sonde, target, tmp_path):
    r = Recorded(sonde, tmp_path, ["sh", "-c", "sleep 1.2"])
    assert {series["name"] for series in r.series} >= {"heap", "rss"}


def test_the_recording_does_not_grow_with_calls(sonde, target, tmp_path):
    sizes = []
    for count in ("1000", "400000"):
        r = Recorded(sonde, tmp_path, [target("heap"), "many", count])
        sizes.append(r.path.stat().st_size)
    assert sizes[1] < sizes[0] + 40000


def test_sampled_from_the_command_line(sonde, target, tmp_path):
    r = Recorded(sonde, tmp_path, [target("heap"), "many", "200000"], "--heap=sampled",
                 "--heap-interval", "4K")
    truth = sum(16 + i % 64 for i in range(200000))
    assert abs(r.within("heap:live", "site_leak") - truth) < 0.08 * truth
    assert (r.meta["heap_mode"], r.meta["heap_interval"]) == ("sampled", "4096")
