"""perf's own files: every count agrees with what perf itself prints for them."""

import collections
import os
import random
import re
import shutil
import struct
import subprocess

import pytest

pytestmark = [pytest.mark.needs("import"),
              pytest.mark.skipif(not shutil.which("perf"), reason="there is no perf here")]


@pytest.fixture(scope="module")
def perf(tmp_path_factory):
    """perf("record", ...) -> its output; a machine that does not allow it skips."""
    folder = tmp_path_factory.mktemp("perf")

    def call(*words, name="perf.data"):
        path = folder / name
        if words[0] == "record" and not path.exists():
            done = subprocess.run(["perf", "record", "-o", path, *map(str, words[1:])],
                                  capture_output=True, text=True, timeout=60)
            if not path.exists():
                pytest.skip(f"perf does not record here: {done.stderr.strip()[:100]}")
        if words[0] == "record":
            return path
        return subprocess.run(["perf", *map(str, words)], capture_output=True, text=True,
                              timeout=120, check=True).stdout
    return call


def script(perf, path):
    """(pid, event, [(symbol, dso), ...] leaf first) of every sample."""
    samples = []
    text = perf("script", "--no-inline", "-F", "comm,pid,tid,time,event,ip,sym,dso", "-i", path)
    for line in text.splitlines():
        if head := re.match(r"\s*\S.*?\s(\d+)/(\d+)\s+[\d.]+:\s+(\S+):\s*(.*)$", line):
            samples.append((int(head[1]), head[3], []))
            line = head[4]
        if frame := re.match(r"\s*[0-9a-f]+ (.+) \(([^()]*)\)$", line):
            samples[-1][2].append((re.sub(r"\+0x[0-9a-f]+$", "", frame[1]), frame[2]))
    return samples


def functions(sonde, path, *options):
    """{function of the program itself: (samples by itself, samples with what it calls)}"""
    done = sonde("report", path, "--json", "--no-inline", "--top", "0", *options)
    assert done.status == 0, done
    rows = done.json["sections"]["functions"]["rows"]
    return {row["name"]: (row["self_samples"], row["total_samples"]) for row in rows
            if row["module"] in ("shares", "tree")}


def counted(samples, event):
    own, below = collections.Counter(), collections.Counter()
    for _, name, frames in samples:
        if not name.startswith(event) or not frames:
            continue
        if frames[0][1].endswith(("shares", "tree")):
            own[frames[0][0]] += 1
        below.update({name for name, dso in frames if dso.endswith(("shares", "tree"))})
    return {name: (own[name], below[name]) for name in below}


@pytest.mark.parametrize("options", [(), ("-g",), ("-z", "-g"), ("-d", "-g", "--sample-cpu"),
                                     ("-e", "task-clock", "-c", "2000000", "-g")],
                         ids=lambda options: " ".join(options) or "plain")
def test_counts_agree(sonde, perf, target, options):
    path = perf("record", *([] if "-c" in options else ["-F", "999"]), *options, "--",
                target("shares"), name=f"shares{'-'.join(options)}.data")
    truth = counted(script(perf, path), "")
    assert sum(own for own, _ in truth.values()) > 300
    assert functions(sonde, path) == truth


def test_perf_report_agrees(sonde, perf, target):
    """The numbers of samples that `perf report` prints beside each function."""
    path = perf("record", "-F", "999", "-g", "--", target("shares"), name="shares-g.data")
    text = perf("report", "-i", path, "--stdio", "-n", "--no-children", "-g", "none", "--sort",
                "dso,symbol")
    rows = re.findall(r"^\s+[\d.]+%\s+(\d+)\s+(\S+)\s+\[\.\] (\S+)", text, re.M)
    truth = {name: int(count) for count, module, name in rows if module == "shares"}
    assert sum(truth.values()) > 300
    assert {name: own for name, (own, _) in functions(sonde, path).items() if own} == truth


def headings(text):
    """(thread, time in µs, event) of every sample of `perf script`."""
    found = re.findall(r"^\S.*?\s+(?:\d+/)?(\d+)\s+(?:\[\d+\]\s+)?(\d+)\.(\d{6})\d*:\s+(?:\d+ )?"
                       r"([\w-]+)", text, re.M)
    return collections.Counter((int(tid), int(s) * 1000000 + int(us), event)
                               for tid, s, us, event in found)


def test_script_as_perf_prints_it(sonde, perf, target):
    """perf reads no text itself; so what we write is held to what it writes, sample by sample."""
    path = perf("record", "-F", "999", "-g", "--", target("shares"), name="shares-g.data")
    ours = sonde("export", path, "-f", "perf-script")
    assert ours.status == 0, ours
    theirs = headings(perf("script", "-i", path))
    mine = headings(ours.stdout)
    assert sum(theirs.values()) > 300
    assert {key[:2] for key in mine} == {key[:2] for key in theirs}
    assert sum(mine.values()) == sum(theirs.values())


def test_several_events(sonde, perf, target):
    path = perf("record", "-F", "499", "-e", "cpu-clock,page-faults", "-g", "--", target("shares"),
                name="events.data")
    samples = script(perf, path)
    assert functions(sonde, path, "--event", "cpu") == counted(samples, "cpu-clock")
    shown = sonde("report", path, "--json", "--event", "page-faults").json
    assert shown["sections"]["totals"]["facts"]["samples"] == \
        sum(event.startswith("page-faults") for _, event, _ in samples)


def test_copied_stacks_are_unwound(sonde, perf, target):
    """perf's own unwinder may stop elsewhere now and then; ours must not know less."""
    path = perf("record", "-F", "499", "--call-graph", "dwarf", "--", target("shares"),
                name="dwarf.data")
    truth, ours = counted(script(perf, path), ""), functions(sonde, path)
    assert {name: own for name, (own, _) in ours.items() if own} == \
        {name: own for name, (own, _) in truth.items() if own}
    for name in ("main", "most", "some", "least"):
        assert abs(ours[name][1] - truth[name][1]) <= 0.01 * truth[name][1], (name, ours, truth)


def test_long_stacks_are_unwound_to_their_end(sonde, perf, target):
    """What lies far behind in a copied stack is found too: 1500 calls need some 48 KB of it."""
    path = perf("record", "-F", "99", "--call-graph", "dwarf,65528", "--", target("deep"), "1500",
                name="deep.data")
    folded = sonde("export", path, "--format", "folded").stdout
    deep = [line.split(";") for line in folded.splitlines() if ";bottom" in line]
    assert deep
    assert all(stack.count("descend") == 1500 and "main" in stack for stack in deep)


def test_long_stacks_with_one_cpu_and_with_more(sonde, sonde_path, perf, target, tmp_path, environment):
    """Fronts of records are read ahead by a thread where there is a CPU for it; nothing else differs: each
    sample has its time and its stack. (Names of modules are looked up at once, and numbered as they come.)"""
    path = perf("record", "-F", "299", "--call-graph", "dwarf,65528", "--", target("deep"), "100",
                name="ahead.data")
    one, more = tmp_path / "one.sonde", tmp_path / "more.sonde"
    subprocess.run(["taskset", "-c", str(min(os.sched_getaffinity(0))), sonde_path, "import", path, "-o", one],
                   check=True, env=environment)
    assert sonde("import", path, "-o", more).status == 0
    texts = [sonde("export", path, "--format", "perf-script", "-o", "-").stdout for path in (one, more)]
    assert texts[0].count("deep") > 100 and texts[0] == texts[1]


@pytest.mark.parametrize("name, how, options", [
    ("chains.data", ("-g",), ("-F", "+srcline")),
    ("chains.data", ("-g",), ("--show-mmap-events", "--show-task-events")),
    ("plain.data", (), ("--show-mmap-events", "--show-task-events"))])
def test_script_with_other_lines(sonde, perf, target, tmp_path, name, how, options):
    """Records between samples are no samples, and take none away."""
    path = perf("record", "-F", "499", *how, "--", target("shares"), name=name)
    text = tmp_path / "x.txt"
    text.write_text(perf("script", "-i", path, *options))
    ours, truth = ({event["name"]: event["samples"]
                    for event in sonde("export", file, "-f", "json").json["events"]} for file in (text, path))
    assert ours == truth and truth["cpu"] > 50


def test_processes_agree(sonde, perf, target):
    path = perf("record", "-F", "999", "-g", "--", target("tree"), name="tree.data")
    truth = collections.Counter(pid for pid, _, _ in script(perf, path))
    rows = sonde("report", path, "--json", "--processes").json["sections"]["processes"]["rows"]
    assert {row["pid"]: row["self_samples"] for row in rows if row["self_samples"]} == truth
    assert functions(sonde, path) == counted(script(perf, path), "")


def test_pipes(sonde, sonde_path, environment, perf, target):
    line = f"perf record -F 499 -g -o - -- {target('shares')} 2>/dev/null | tee P | {sonde_path} "
    folder = perf("record", "-F", "9", "--", "true").parent
    done = subprocess.run(["sh", "-c", line.replace("tee P", f"tee {folder}/piped.data") +
                           "import - -o " + str(folder / "piped.sonde")],
                          env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    assert functions(sonde, folder / "piped.sonde") == \
        counted(script(perf, folder / "piped.data"), "")
    path = perf("record", "-F", "999", "-g", "--", target("shares"), name="shares-g.data")
    through = subprocess.run(["sh", "-c", f"cat {path} | {sonde_path} export - -f folded"],
                             env=environment, capture_output=True, text=True)
    assert through.stdout == sonde("export", path, "-f", "folded").stdout != ""


def test_import_keeps_what_the_file_says(sonde, perf, target, tmp_path):
    path = perf("record", "-F", "999", "-g", "--", target("shares"), name="shares-g.data")
    assert sonde("import", path, "-o", tmp_path / "x.sonde").status == 0
    direct, kept = (sonde("report", file, "--json").json["sections"] for file in
                    (path, tmp_path / "x.sonde"))
    assert direct["functions"] == kept["functions"]
    assert "perf record" in kept["run"]["facts"]["command"]


@pytest.mark.parametrize("options", [("-g",), ("-z", "-g")], ids=["plain", "packed"])
def test_a_cut_file_is_refused(sonde, perf, target, tmp_path, options):
    path = perf("record", "-F", "999", *options, "--", target("shares"),
                name=f"shares{'-'.join(options)}.data")
    whole = path.read_bytes()
    end = int.from_bytes(whole[40:48], "little") + int.from_bytes(whole[48:56], "little")
    chance = random.Random(4)
    for size in [0, 7, 8, 15, 16, 103, 104, *(chance.randrange(end) for _ in range(25))]:
        (tmp_path / "cut.data").write_bytes(whole[:size])
        done = sonde("import", tmp_path / "cut.data", "-o", tmp_path / "cut.sonde")
        assert done.status == 1 and len(done.stderr.splitlines()) == 1, (size, done)
        assert size < 8 or ", byte " in done.stderr, (size, done)
        assert not (tmp_path / "cut.sonde").exists()


def test_a_mark_without_a_build_id_is_no_build_id(sonde, perf, target, tmp_path):
    """As kernels leave it where another profiler, which asked for build-ids, records the same process."""
    path = perf("record", "-e", "cpu-clock", "-c", "1000000", target("shares"), name="marked.data")
    expected = functions(sonde, path)
    data = bytearray(path.read_bytes())
    at, size = (int.from_bytes(data[i:i + 8], "little") for i in (40, 48))
    end, marked = at + size, 0
    while at < end:
        kind, misc, length = struct.unpack_from("<IHH", data, at)
        if kind == 10:  # PERF_RECORD_MMAP2
            struct.pack_into("<H", data, at + 4, misc | 1 << 14)
            marked += 1
        at += length
    (tmp_path / "x.data").write_bytes(data)
    assert marked > 2 and functions(sonde, tmp_path / "x.data") == expected != {}


def written(sonde, recording, path):
    done = sonde("export", recording, "-f", "perf", "-o", path)
    assert done.status == 0 and not done.stderr, done
    return path


@pytest.mark.parametrize("name", ["shares", "tree"])
def test_perf_reads_what_sonde_writes(sonde, perf, target, tmp_path, name):
    recording = tmp_path / "r.sonde"
    assert sonde("run", "--rate", "999", "-o", recording, "--", target(name)).status == 0
    path = written(sonde, recording, tmp_path / "x.data")
    samples = script(perf, path)
    assert functions(sonde, recording) == counted(samples, "cpu-clock")
    assert sum(own for own, _ in counted(samples, "cpu-clock").values()) > 100
    rows = sonde("report", recording, "--json", "--processes").json["sections"]["processes"]["rows"]
    assert {row["pid"]: row["self_samples"] for row in rows if row["self_samples"]} == \
        collections.Counter(pid for pid, _, _ in samples)
    text = perf("report", "-i", path, "--stdio", "-n", "--no-children", "-g", "none", "--sort",
                "dso,symbol")
    found = re.findall(r"^\s+[\d.]+%\s+(\d+)\s+(\S+)\s+\[\.\] (\S+)", text, re.M)
    assert {symbol: int(count) for count, module, symbol in found if module == name} == \
        {symbol: own for symbol, (own, _) in functions(sonde, recording).items() if own}
    ids = perf("buildid-list", "-i", path)
    assert str(target(name)) in ids


def test_what_was_written_is_read_again(sonde, target, tmp_path):
    """The same stacks of the same threads, with the same values and times. That a stack is cut, as those of
    processes that just begin may be, is nothing that perf's files could say."""
    recording = tmp_path / "r.sonde"
    assert sonde("run", "--rate", "999", "-o", recording, "--", target("tree")).status == 0
    path = written(sonde, recording, tmp_path / "x.data")
    again = written(sonde, path, tmp_path / "y.data")
    for options in (("folded", "--by-process", "--by-thread"), ("folded", "--weight", "value")):
        first, second, third = (
            sorted(sonde("export", file, "-f", *options).stdout.replace("[cut];", "").splitlines())
            for file in (recording, path, again))
        assert first == second == third != []
    times = [[line.split()[2] for line in sonde("export", file, "-f", "perf-script").stdout
              .splitlines() if re.match(r"\S+ \d+/\d+ ", line)] for file in (recording, path)]
    assert times[0] == times[1] != []


def test_frames_without_an_address_are_left_out_and_told(sonde, perf, tmp_path):
    (tmp_path / "x.folded").write_text("main;work 3\n")
    done = sonde("export", tmp_path / "x.folded", "-f", "perf", "-o", tmp_path / "x.data")
    assert done.status == 0
    assert "without an address" in done.stderr and done.stderr.count("\n") == 1
    assert [frames for _, _, frames in script(perf, tmp_path / "x.data")] == [[]]
