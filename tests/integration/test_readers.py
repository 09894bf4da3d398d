"""Files of other profilers, made here by those profilers, against what their own tools print."""

import json
import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.needs("import")
PROFILER = "libprofiler.so.0"


def functions(sonde, path, *options):
    done = sonde("report", path, "--json", "--top", "0", *options)
    assert done.status == 0, done
    return done.json["sections"]["functions"]["rows"]


def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip(f"there is no {', '.join(missing)} here")


def pprof_text(program, path, *options):
    """{function: (own, with callees)} as google-pprof prints."""
    text = subprocess.run(["google-pprof", "--text", *options, program, path], text=True,
                          capture_output=True, check=True, timeout=60).stdout
    rows = re.findall(r"^\s*(\d+)\s+[\d.]+%\s+[\d.]+%\s+(\d+)\s+[\d.]+%\s+(\S+)", text, re.M)
    return {name: (int(own), int(total)) for own, total, name in rows}


def test_gperftools_cpu(sonde, target, tmp_path, environment):
    needs("google-pprof")
    path = tmp_path / "cpu.prof"
    subprocess.run([target("shares")], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL,
                   env={**environment, "LD_PRELOAD": PROFILER, "CPUPROFILE": str(path),
                        "CPUPROFILE_FREQUENCY": "500"})
    if not path.exists():
        pytest.skip("gperftools' profiler is not here")
    truth = pprof_text(target("shares"), path)
    ours = {row["name"]: (row["self_samples"], row["total_samples"])
            for row in functions(sonde, path) if row["module"] == "shares"}
    assert ours["main"] == truth["main"]
    for name in ("most", "some", "least"):
        assert ours[name] == truth[name], (ours, truth)


@pytest.fixture
def heap(tmp_path):
    needs("cc")
    (tmp_path / "heap.c").write_text("""
        #include <stdlib.h>
        #define KEEP __attribute__((noinline, noclone))
        void *volatile kept;
        KEEP void small(void) { kept = malloc(100); }
        KEEP void large(void) { kept = malloc(100000); }
        int main(void) {
            for (int i = 0; i < 1000; i++) { small(); if (i % 2) free(kept); }
            for (int i = 0; i < 50; i++) large();
            return 0; }""")
    subprocess.run(["cc", "-g", "-O1", "-o", tmp_path / "heap", tmp_path / "heap.c"], check=True)
    return tmp_path / "heap"


def test_gperftools_heap(sonde, heap, tmp_path, environment):
    needs("google-pprof")
    subprocess.run([heap], check=True, stderr=subprocess.DEVNULL,
                   env={**environment, "LD_PRELOAD": "libtcmalloc.so.4",
                        "HEAPPROFILE": str(tmp_path / "hp")})
    files = sorted(tmp_path.glob("hp.*.heap"))
    if not files:
        pytest.skip("tcmalloc is not here")
    for options, event in ((["--show_bytes"], "inuse_space"),
                           (["--show_bytes", "--alloc_space"], "alloc_space")):
        truth = pprof_text(heap, files[-1], *options)
        ours = {row["name"]: (row["self"], row["total"])
                for row in functions(sonde, files[-1], "--event", event)}
        for name in ("small", "large", "main"):
            assert ours[name] == truth[name], (event, ours, truth)


@pytest.mark.parametrize("kind", ["heap_v2/524288", "heap/1048576", "heap/262144"])
def test_sampled_heaps(sonde, heap, tmp_path, environment, kind):
    """What was sampled is scaled up, to the byte as Go's pprof does."""
    needs("go")
    subprocess.run([heap], check=True, stderr=subprocess.DEVNULL,
                   env={**environment, "LD_PRELOAD": "libtcmalloc.so.4", "HEAPPROFILE": str(tmp_path / "hp")})
    files = sorted(tmp_path.glob("hp.*.heap"))
    if not files:
        pytest.skip("tcmalloc is not here")
    path = tmp_path / "sampled.heap"
    path.write_text(re.sub(r"@ heapprofile", f"@ {kind}", files[-1].read_text(), count=1))
    text = subprocess.run(["go", "tool", "pprof", "-top", "-unit=b", heap, path], text=True, check=True,
                          capture_output=True, env={**environment, "PPROF_TMPDIR": str(tmp_path)}).stdout
    truth = {name: int(own) for own, name in re.findall(r"^\s*(\d+)B?\s.*\s(small|large)$", text, re.M)}
    ours = {row["name"]: row["self"] for row in functions(sonde, path, "--event", "inuse_space")}
    assert truth and {name: ours[name] for name in truth} == truth


def test_jemalloc_heap(sonde, heap, tmp_path):
    """As jemalloc writes it; addresses are the program's own."""
    symbols = subprocess.run(["nm", heap], check=True, text=True, capture_output=True).stdout
    at = {name: int(value, 16) for value, kind, name in re.findall(r"^(\w+) (\w) (\w+)$", symbols, re.M)}
    base, offset = 0x555555554000, 0x1000
    small, large, main = (base + at[name] + 2 for name in ("small", "large", "main"))
    path = tmp_path / "je.heap"
    path.write_text(f"""heap_v2/1
  t*: 550: 5050000 [1050: 5100000]
  t0: 550: 5050000 [1050: 5100000]
@ {small:#x} {main:#x}
  t*: 500: 50000 [1000: 100000]
  t0: 500: 50000 [1000: 100000]
@ {large:#x} {main:#x}
  t*: 50: 5000000 [50: 5000000]
  t0: 50: 5000000 [50: 5000000]

MAPPED_LIBRARIES:
{base + offset:x}-{base + 2 * offset:x} r-xp {offset:08x} 08:01 42 {heap}
""")
    ours = {row["name"]: (row["self"], row["total"]) for row in functions(sonde, path, "--event", "inuse_space")}
    assert ours == {"small": (50000, 50000), "large": (5000000, 5000000), "main": (0, 5050000)}


def test_callgrind(sonde, heap, tmp_path):
    needs("valgrind", "callgrind_annotate")
    path = tmp_path / "cg.out"
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={path}", heap],
                   check=True, capture_output=True, timeout=60)
    text = subprocess.run(["callgrind_annotate", "--threshold=100", path], check=True, text=True,
                          capture_output=True).stdout
    total = int(re.search(r"([\d,]+) \(100.0%\)  PROGRAM TOTALS", text)[1].replace(",", ""))
    truth = {}
    for cost, name in re.findall(r"^\s*([\d,]+) \([ \d.]+%\)  \S+?:(small|large|main)\b", text, re.M):
        truth[name] = truth.get(name, 0) + int(cost.replace(",", ""))
    rows = functions(sonde, path)
    assert sum(row["self"] for row in rows) == total
    assert {row["name"]: row["self"] for row in rows if row["name"] in truth} == truth != {}
    process, = sonde("report", path, "--json").json["sections"]["processes"]["rows"]
    assert process["name"] == heap.name and f"pid: {process['pid']}\n" in path.read_text()
    assert "cut short" not in sonde("report", path).stdout
    half = path.read_text().splitlines(keepends=True)
    path.write_text("".join(half[:len(half) // 2]))
    assert "cut short" in sonde("report", path).stdout


def test_callgrind_lines(sonde, heap, tmp_path):
    """Code of another file inside a function (fi=, fe=) is that file's."""
    needs("valgrind")
    path = tmp_path / "cg.out"
    subprocess.run(["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no",
                    f"--callgrind-out-file={path}", heap], check=True, capture_output=True, timeout=60)
    truth, file, called = {}, "", False
    for line in path.read_text().splitlines():
        if line.startswith(("fl=", "fi=", "fe=")):
            file = line[3:]
        elif costs := re.match(r"(\d+) (\d+)$", line):
            place = (file, int(costs[1]))
            if not called and place[1] and file != "???":
                truth[place] = truth.get(place, 0) + int(costs[2])
            called = False
        called |= line.startswith("calls=")
    done = sonde("report", path, "--lines", "--json", "--top", "0")
    ours = {}
    for row in done.json["sections"]["lines"]["rows"]:
        place = (row["file"], row["line"])
        ours[place] = ours.get(place, 0) + row["self"]
    assert len(truth) > 100 and {place: ours.get(place) for place in truth} == truth


def test_node(sonde, tmp_path):
    needs("node")
    (tmp_path / "x.js").write_text("function hot(){let s=0;for(let i=0;i<3e7;i++)s+=i%7;return s}\n"
                                   "for(let i=0;i<5;i++)hot();\n")
    subprocess.run(["node", "--cpu-prof", "--cpu-prof-name=x.cpuprofile",
                    f"--cpu-prof-dir={tmp_path}", tmp_path / "x.js"], check=True, timeout=60)
    made = json.loads((tmp_path / "x.cpuprofile").read_text())
    idle = {node["id"] for node in made["nodes"] if node["callFrame"]["functionName"] == "(idle)"}
    rows = functions(sonde, tmp_path / "x.cpuprofile")
    assert sum(row["self_samples"] for row in rows) == \
        sum(node not in idle for node in made["samples"])
    hot = next(row for row in rows if row["name"] == "hot")
    assert hot["self_percent"] > 50 and hot["module"] == "x.js" and hot["line"] == 1


def test_a_trace_is_a_timeline(sonde, tmp_path):
    events = [{"ph": "X", "name": "outer", "pid": 7, "tid": 1, "ts": 0, "dur": 1000},
              {"ph": "X", "name": "inner", "pid": 7, "tid": 1, "ts": 200, "dur": 300}]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    rows = {row["name"]: (row["self"], row["total"]) for row in functions(sonde, tmp_path / "t.json")}
    assert rows == {"outer": (700000, 1000000), "inner": (300000, 300000)}
    assert sonde("graph", tmp_path / "t.json", "-o", tmp_path / "t.svg", "--kind",
                 "flamechart").status == 0


def test_a_trace_lasts_from_its_first_span(sonde, tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([{"ph": "X", "name": "a", "ts": 5, "dur": 100, "pid": 1, "tid": 1},
                                {"ph": "X", "name": "b", "ts": 15, "dur": 30, "pid": 1, "tid": 1}]))
    facts = sonde("report", path, "--json").json["sections"]["run"]["facts"]
    assert facts["duration"] == 100_000, facts
    early = sonde("report", path, "--json", "--to", "60us").json["sections"]["functions"]["rows"]
    assert {row["name"]: row["self"] for row in early} == {"a": 10_000, "b": 30_000}


@pytest.mark.parametrize("end", ["", ",", ",\n", "\n]", "]\n"])
def test_a_trace_may_lack_its_end(sonde, tmp_path, end):
    events = [{"ph": "X", "ts": 5, "dur": 10, "pid": 1, "tid": 2, "name": "outer"},
              {"ph": "X", "ts": 6, "dur": 2, "pid": 1, "tid": 2, "name": "inner"}]
    text = "[" + ",\n".join(map(json.dumps, events))
    path = tmp_path / "trace"
    path.write_text(text + end)
    assert {row["name"]: row["self"] for row in functions(sonde, path)} == {"outer": 8000,
                                                                            "inner": 2000}
    shown = " ".join(sonde("report", path).stdout.split())
    assert ("has no end" in shown) == ("]" not in end), shown
    path.write_text(text[:-1])
    assert sonde("report", path).status == 1


@pytest.mark.parametrize("name", ["speedscope", "callgrind", "chrome-trace"])
def test_what_we_write_we_read(sonde, target, tmp_path, name):
    assert sonde("run", "-o", tmp_path / "r.sonde", "--", target("shares")).status == 0
    assert sonde("export", tmp_path / "r.sonde", "-f", name, "-o", tmp_path / "x").status == 0
    before = functions(sonde, tmp_path / "r.sonde")
    after = {row["name"]: row for row in functions(sonde, tmp_path / "x")}
    for row in before:
        if row["self_percent"] > 5:
            assert after[row["name"]]["self"] == row["self"], (row, after)


def test_values_without_samples_come_back(sonde, target, tmp_path):
    """What a heap held at its peak is no sample."""
    made, trace, back = (tmp_path / name for name in ("x.sonde", "x.json", "back.sonde"))
    assert sonde("run", "--heap", "-q", "-o", made, "--", target("heap"), "chain").status == 0
    assert sonde("export", made, "-f", "chrome-trace", "-e", "heap:peak", "-o", trace).status == 0
    assert sonde("import", trace, "-o", back).status == 0
    there, here = (sonde("export", path, "-f", "folded", "-e", "heap:peak").stdout for path in (made, back))
    assert sorted(there.splitlines()) == sorted(here.splitlines()) and there


@pytest.mark.parametrize("name", ["pprof", "speedscope", "callgrind"])
def test_lines_and_inlined_functions_come_back(sonde, target, tmp_path, name):
    """Of a format that has them: each line with its function, file and cost."""
    def lines(path):
        rows = sonde("report", path, "--lines", "--json", "--top", "0").json["sections"]
        return {(row["function"], row["file"], row["line"]): row["self"]
                for section in rows.values() for row in section.get("rows", [])
                if row.get("line") and row["self"]}
    assert sonde("run", "-o", tmp_path / "r.sonde", "--", target("inline")).status == 0
    assert sonde("export", tmp_path / "r.sonde", "-f", name, "--event", "cpu", "-o",
                 tmp_path / "x").status == 0
    before = lines(tmp_path / "r.sonde")
    assert {function for function, _, _ in before} >= {"inner"}
    assert lines(tmp_path / "x") == before
