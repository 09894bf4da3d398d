"""`sonde export` against the tools its files are for: what they read must be what was recorded."""

import os
import re
import shutil
import signal
import stat
import subprocess

import pytest

from runs import run

# Samples of cpu that tests/unit/formats/sample.c makes.
TOTAL = 60 + 25 + 10 + 4 + 1 + 2


@pytest.fixture
def recording(build, tmp_path):
    path = tmp_path / "sample.sonde"
    done = run([build / "tests/unit/formats/make_recording", path])
    assert done.status == 0, done
    return path


@pytest.fixture
def pprof(tmp_path):
    if not shutil.which("go"):
        pytest.skip("go tool pprof is not installed")

    def call(file, *options):
        done = run(["go", "tool", "pprof", *options, file],
                   env={"PATH": "/usr/bin:/bin:/usr/lib/go/bin", "HOME": str(tmp_path),
                        "PPROF_TMPDIR": str(tmp_path), "PPROF_BINARY_PATH": str(tmp_path)})
        assert done.status == 0 and not done.stderr, done
        return done.stdout
    return call


def raw_samples(text):
    """{(values, location ids): labels} and the sample types of `pprof -raw`."""
    types = re.search(r"^Samples:\n(.*)$", text, re.M)[1].replace("[dflt]", "").split()
    body = text[text.index("Samples:"):text.index("Locations\n")]
    return types, [[int(v) for v in line.split(":")[0].split()]
                   for line in body.splitlines()[2:] if re.match(r"\s+\d+[\s\d]*:", line)]


@pytest.fixture
def exported(sonde, recording, tmp_path):
    path = tmp_path / "out.pb.gz"
    done = sonde("export", recording, "-o", path)
    assert done.status == 0 and not done.stderr, done
    return path


def test_pprof_sums(pprof, exported):
    types, samples = raw_samples(pprof(exported, "-raw"))
    assert types == ["samples/count", "cpu/nanoseconds", "page-faults/count",
                     "alloc_objects/count", "alloc_space/bytes"]
    sums = [sum(column) for column in zip(*samples)]
    assert sums == [TOTAL, TOTAL * 1000000, 7, 5, 3 * 4096 + 200]


def test_pprof_top(pprof, exported):
    flat, cumulative = {}, {}
    for line in pprof(exported, "-top", "-sample_index=samples", "-nodefraction=0").splitlines():
        found = re.match(r"\s+(\d+)\s+\S+%\s+\S+%\s+(\d+)\s+\S+%\s+(.*)", line)
        if found:
            flat[found[3]], cumulative[found[3]] = int(found[1]), int(found[2])
    assert flat["ns::work(int)"] == 60 and cumulative["ns::work(int)"] == 95
    assert flat["main"] == 0 and cumulative["main"] == 95
    assert flat["sin"] == 25
    assert flat["[libm.so.6]"] == 4 and cumulative["handle"] == 4
    assert flat["small;odd?name (inline)"] == 10
    assert flat["[unknown]"] == 2


def test_pprof_traces_and_labels(pprof, exported):
    text = pprof(exported, "-traces", "-sample_index=samples")
    assert "Type: samples" in text
    assert re.search(r"pid:\s+42\n.*tid:\s+43\n|tid:\s+43", text)
    assert re.search(r"thread:\s+worker", text)
    assert re.search(r"25\s+sin\n\s+ns::work\(int\)\n\s+main\n", text)


@pytest.mark.parametrize("view", ["-peek=sin", "-tree", "-tags", "-comments", "-dot"])
def test_pprof_views(pprof, exported, view):
    text = pprof(exported, view)
    assert {"-peek=sin": "ns::work(int)", "-tree": "sin", "-tags": "worker",
            "-comments": "sampled with cpu-clock", "-dot": "digraph"}[view] in text


def test_pprof_mappings(pprof, exported):
    lines = pprof(exported, "-raw").split("Mappings\n")[1].splitlines()
    ranges = [re.match(r"(\d+): 0x(\w+)/0x(\w+)/0x(\w+) (\S+)", line) for line in lines if line]
    assert ranges[0][5] == "/usr/bin/app"
    assert "deadbeef05060708" in lines[0]
    spans = sorted((int(r[2], 16), int(r[3], 16)) for r in ranges)
    assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:]))
    assert "[FN][FL][LN][IN]" in lines[0]


def test_folded(sonde, recording):
    done = sonde("export", recording, "--format", "folded")
    lines = done.stdout.splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == TOTAL
    assert "main;ns::work(int);small:odd?name 10" in lines
    done = sonde("export", recording, "-f", "folded", "--by-process", "--by-thread")
    assert "app-42;worker-43;main;ns::work(int);small:odd?name 10" in done.stdout.splitlines()
    done = sonde("export", recording, "-f", "folded", "--weight", "value")
    assert sum(int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()) == TOTAL * 1000000
    done = sonde("export", recording, "-f", "folded", "--event", "page-faults")
    assert done.stdout == "main;ns::work(int);small:odd?name;do_page_fault 7\n"


def test_refusals(sonde, recording, tmp_path):
    done = sonde("export", recording)
    assert done.status == 2 and "which format" in done.stderr
    done = sonde("export", recording, "-f", "nonsense")
    assert done.status == 2 and "pprof" in done.stderr
    done = sonde("export", recording, "-f", "folded", "-e", "nonsense")
    assert done.status == 1 and "it has: cpu, page-faults, alloc_space" in done.stderr
    done = sonde("export", tmp_path / "none", "-f", "folded")
    assert done.status == 1 and "cannot open" in done.stderr
    taken = tmp_path / "taken.folded"
    taken.write_text("mine")
    done = sonde("export", recording, "-o", taken)
    assert done.status == 1 and "--force" in done.stderr and taken.read_text() == "mine"
    assert sonde("export", recording, "-o", taken, "--force").status == 0
    assert taken.read_text().startswith("[unknown] 2\n")
    assert not list(tmp_path.glob("taken.folded.*"))


def test_streams(sonde, recording, tmp_path):
    """A pipe or a device with a name is written to as it is."""
    whole = sonde("export", recording, "-f", "folded").stdout
    pipe = tmp_path / "pipe.folded"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        done = sonde("export", recording, "-o", pipe)
        assert done.status == 0 and reader.communicate()[0] == whole, done
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    for options in ([], ["--force"]):
        assert sonde("export", recording, "-f", "json", "-o", "/dev/null", *options).status == 0
        assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    done = sonde("export", recording, "-f", "json", "-o", "/dev/full")
    assert done.status == 1 and "No space left" in done.stderr


def spend(command, most):
    """Memory in MB and seconds of CPU that it takes until `most` bytes are read from it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    while most > 0:
        piece = process.stdout.read1(1 << 20)
        most -= len(piece) or most
    process.stdout.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 128 + signal.SIGPIPE)
    return used.ru_maxrss / 1024, used.ru_utime + used.ru_stime


@pytest.fixture(scope="module")
def synthetic(built, tmp_path_factory):
    """synthetic(samples) -> recording of as many on the same stacks."""
    def make(samples):
        path = tmp_path_factory.mktemp("synthetic") / "r.sonde"
        assert run([built("bench/make_recording"), path, samples, 200000, 5000]).status == 0
        return path
    return make


def test_memory_is_constant(sonde_path, synthetic, without_asan):
    """Thirty times the samples on the same stacks take no more memory but for what is read ahead."""
    few, many = synthetic(100000), synthetic(3000000)
    for kind in ("pprof", "folded", "speedscope", "chrome-trace", "gecko", "callgrind", "dot",
                 "perf-data", "perf-script", "json", "csv"):
        least, most = (spend([sonde_path, "export", "-f", kind, path], 50 << 20)[0]
                       for path in (few, many))
        assert most < least + 32, (kind, least, most)


@pytest.mark.parametrize("kind", ["csv", "folded", "json", "gecko", "perf-script"])
def test_stops_when_nobody_reads(sonde_path, synthetic, kind):
    """Nothing is made for a reader that has gone."""
    command = [sonde_path, "export", "-f", kind, synthetic(300000)]
    assert spend(command, 1)[1] < spend(command, 1 << 40)[1] * 0.7


@pytest.fixture
def waiting(sonde, target, tmp_path):
    """A recording of a program that runs and waits, and its wall time in ns."""
    path = tmp_path / "waiting.sonde"
    assert sonde("run", "--wall", "-o", path, "--", "sh", "-c", f"sleep 0.3; exec {target('shares')} 30000").status == 0
    total = sonde("report", path, "--event", "wall", "--json").json["sections"]["totals"]["facts"]
    if total["event"] != "wall":
        pytest.skip("waits cannot be recorded here")
    return path, total["value"]


@pytest.mark.needs("report")
def test_wall_time_is_one_event(sonde, pprof, waiting, tmp_path):
    path, total = waiting
    lines = sonde("export", path, "--format", "folded", "--event", "wall").stdout.splitlines()
    weights = {stack: int(weight) for stack, weight in (line.rsplit(" ", 1) for line in lines)}
    assert sum(weights.values()) == total
    slept = sum(weight for stack, weight in weights.items() if stack.endswith(";off-cpu:sleep"))
    assert 0.3e9 <= slept < 0.4e9
    for name in ("pb.gz", "speedscope.json", "trace.json", "callgrind"):
        out = tmp_path / f"wall.{name}"
        form = {"pb.gz": "pprof", "trace.json": "chrome-trace"}.get(name, name.removesuffix(".json"))
        assert sonde("export", path, "-f", form, "-e", "wall", "-o", out).status == 0
        rows = sonde("report", out, "--json").json["sections"]["functions"]["rows"]
        assert sum(row["self"] for row in rows) == total, name
    assert "Type: wall" in pprof(tmp_path / "wall.pb.gz", "-top")


def test_wall_time_of_what_never_waits(sonde, recording):
    done = sonde("export", recording, "--format", "folded", "--event", "wall")
    assert done.status == 1 and "has no event 'wall'" in done.stderr
