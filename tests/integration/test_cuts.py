"""A file that was cut short is never read as if it were whole: it is refused, or standard error and --json
say so, or what is missing is nothing that counts. Files are made here by the tools themselves, where these
are there. What nobody can see (docs/FORMATS.md) is named in the table."""

import gzip
import json
import random
import shutil
import subprocess

import pytest

from runs import run

pytestmark = pytest.mark.needs("export")


def made_by(*programs):
    """Skips without them."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip(f"there is no {', '.join(missing)} here")


class Maker:
    """What the makers of files share."""

    def __init__(self, sonde, build, root, target, environment, folder):
        self.sonde, self.target, self.environment, self.folder = sonde, target, environment, folder
        self.root = root
        self.recording = folder / "sample.sonde"
        assert run([build / "tests/unit/formats/make_recording", self.recording]).status == 0

    def exported(self, form, *options, source=None):
        path = self.folder / "made"
        done = self.sonde("export", source or self.recording, "-f", form, "-o", path, "--force", *options)
        assert done.status == 0, done
        return path.read_bytes()

    def corpus(self, name):
        return (self.root / "tests/fuzz/corpus" / name).read_bytes()

    def output(self, *command, env=None):
        return subprocess.run([str(word) for word in command], capture_output=True, timeout=60, check=False,
                              env={**self.environment, **(env or {})}).stdout

    def perf(self, *options):
        made_by("perf")
        path = self.folder / "perf.data"
        self.output("perf", "record", "-F", "2999", "-o", path, *options, "--", *self.program())
        if not path.exists():
            pytest.skip("perf does not record here")
        return path

    def program(self):
        return [self.target("shares"), 100_000]

    def preloaded(self, library, variable, pattern):
        self.output(*self.program(), env={"LD_PRELOAD": library, "CPUPROFILE_FREQUENCY": "2000",
                                          variable: str(self.folder / "out")})
        files = sorted(self.folder.glob(pattern))
        if not files:
            pytest.skip(f"{library} is not here")
        return files[-1].read_bytes()


def small_callgrind(m):
    stacks = m.folder / "few.folded"
    stacks.write_text("main;a;b 1000\nmain;c 500\nmain 20\n")
    return m.exported("callgrind", source=stacks)


def valgrind(m):
    made_by("valgrind")
    path = m.folder / "cg.out"
    m.output("valgrind", "--tool=callgrind", f"--callgrind-out-file={path}", "/bin/true")
    return path.read_bytes()


def perf_pipe(m):
    made_by("perf")
    return m.output("perf", "record", "-g", "-o", "-", "--", *m.program()) or pytest.skip("no perf")


def perf_text(m):
    return m.output("perf", "script", "-i", m.perf("-g"))


def node(m):
    made_by("node")
    m.output("node", "--cpu-prof", "--cpu-prof-name=x.cpuprofile", f"--cpu-prof-dir={m.folder}", "-e",
             "let s=0;for(let i=0;i<1e7;i++)s+=i%7")
    return (m.folder / "x.cpuprofile").read_bytes()


def trace_list(m):
    events = json.loads(m.exported("chrome-trace"))["traceEvents"]
    return json.dumps(events).encode()


def line_end(data, at):
    return data[at - 1:at] == b"\n"


def sample_end(data, at):
    return data[at - 2:at] == b"\n\n"


def round_end(data, at):
    return data[at - 8:at] == b"\x44\0\0\0\0\0\x08\0"


KINDS = {
    "callgrind, small": (small_callgrind, None, 10_000),
    "callgrind, valgrind's": (valgrind, None, 200),
    "pprof, gzipped": (lambda m: m.exported("pprof"), None, 40),
    "pprof, plain": (lambda m: gzip.decompress(m.exported("pprof")), None, 40),
    "pprof, Go's": (lambda m: m.corpus("pprof/go_heap.pb.gz"), None, 40),
    "perf.data": (lambda m: m.perf("-g").read_bytes(), None, 40),
    "perf.data, stacks": (lambda m: m.perf("--call-graph", "dwarf,4096").read_bytes(), None, 25),
    "perf.data, packed": (lambda m: m.perf("-g", "-z").read_bytes(), None, 40),
    "perf.data, ours": (lambda m: m.exported("perf-data"), None, 40),
    "perf.data, pipe": (perf_pipe, round_end, 40),
    "perf script": (perf_text, sample_end, 40),
    "perf script, ours": (lambda m: m.exported("perf-script"), sample_end, 40),
    "gperftools, CPU": (lambda m: m.preloaded("libprofiler.so.0", "CPUPROFILE", "out"), None, 40),
    "gperftools, heap": (lambda m: m.preloaded("libtcmalloc.so.4", "HEAPPROFILE", "out.*.heap"), None, 40),
    "jemalloc": (lambda m: m.corpus("jemalloc_heap/two.heap"), None, 40),
    "folded": (lambda m: m.exported("folded"), line_end, 40),
    "speedscope": (lambda m: m.exported("speedscope"), None, 40),
    "chrome trace": (lambda m: m.exported("chrome-trace"), None, 40),
    "chrome trace, a list": (trace_list, None, 40),
    "cpuprofile": (node, None, 40),
    "recording": (lambda m: m.recording.read_bytes(), None, 40),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_is_told(sonde, build, root, target, environment, tmp_path, kind):
    make, blind, places = KINDS[kind]
    data = make(Maker(sonde, build, root, target, environment, tmp_path))
    path = tmp_path / "input"
    path.write_bytes(data)
    whole = sonde("export", path, "-f", "csv")
    assert whole.status == 0 and "cut" not in whole.stderr, whole
    chance = random.Random(7)
    cuts = range(len(data)) if len(data) <= places else \
        {*(chance.randrange(len(data)) for _ in range(places)), *range(len(data) - 8, len(data))}
    told = 0
    for at in sorted(cuts):
        path.write_bytes(data[:at])
        done = sonde("export", path, "-f", "csv")
        assert done.status in (0, 1), (at, done)
        if done.status or (blind and blind(data, at)):
            assert done.status == 0 or done.stderr.startswith("sonde export: "), (at, done)
            continue
        if done.stderr:
            told += 1
            if told % 8 == 1:
                notes = sonde("report", path, "--json").json["sections"]["notes"]["notes"]
                assert any(note["level"] == "warning" and note["text"] in done.stderr
                           for note in notes), (at, done, notes)
        else:
            assert done.stdout == whole.stdout, f"{kind} of {len(data)} bytes was cut to {at} in silence"
