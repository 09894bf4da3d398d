"""pprof files as tools of other languages write them: the same sums as `go tool pprof` prints."""

import re
import subprocess

import pytest

from protobuf import Pprof
from test_go import top
from test_pprof import pprof  # noqa: F401 (a fixture)
from test_readers import PROFILER, functions, needs, pprof_text

pytestmark = pytest.mark.needs("import")


def ours(sonde, path, event, *options):
    return {row["name"]: (row["self"], row["total"])
            for row in functions(sonde, path, "--event", event, *options)}


@pytest.fixture
def java(tmp_path):
    """No mappings, no addresses, no linkage names; some lines are unknown; threads as labels."""
    p = Pprof(("cpu", "nanoseconds"), ("wall", "milliseconds"))
    run = p.function("java.lang.Thread.run", file="Thread.java")
    work = p.function("com.example.Worker$1.work", file="Worker.java", start=10)
    native = p.function("Unsafe_Park")
    outer, inner, park = p.location((run, 829)), p.location((work, 14)), p.location((native, None))
    both = p.location((work, 17), (run, 840))
    p.sample([inner, outer], 50000000, 60, thread="worker-1", pid=77)
    p.sample([both], 10000000, 10, thread="worker-2", pid=77)
    p.sample([park, outer], 0, 500, thread="worker-2", pid=77)
    p.sample([], 1000000, 1)
    return p.write(tmp_path / "java.pb.gz")


def test_java(sonde, pprof, java, tmp_path):  # noqa: F811
    for event, unit in (("cpu", "ns"), ("wall", "ns")):
        truth = {name: row for name, row in top(pprof, java, event, unit, "-noinlines=false").items()
                 if any(row)}
        mine = ours(sonde, java, event)
        assert {name: mine.get(name) for name in truth} == truth
    assert ours(sonde, java, "cpu")["java.lang.Thread.run"] == (0, 60000000)
    lines = sonde("report", java, "--lines", "--json", "--event", "cpu").json["sections"]["lines"]
    assert {(row["file"], row["line"]) for row in lines["rows"]} >= \
        {("Worker.java", 14), ("Worker.java", 17), ("Thread.java", 829)}
    rows = sonde("report", java, "--json", "--threads").json["sections"]["threads"]["rows"]
    assert {row["name"] for row in rows} >= {"worker-1", "worker-2"}
    assert sonde("import", java, "-o", tmp_path / "j.sonde").status == 0
    assert ours(sonde, tmp_path / "j.sonde", "wall") == ours(sonde, java, "wall")


@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
def test_odd_but_legal(sonde, tmp_path, packed):
    """Mangled names, a function with nothing but a linkage name, addresses without a mapping."""
    p = Pprof(("samples", "count"), ("cpu", "microseconds"))
    mangled = p.function("_ZN2ns4workEi", "_ZN2ns4workEi", "w.cc", 3)
    linkage = p.function("", "_ZN2ns5otherEv")
    library = p.mapping("/nowhere/libgone.so", 0x7f0000000000, 0x7f0000010000, 0x2000)
    known = p.location((mangled, 5), address=0x1234)
    bare = p.location(mapping=library, address=0x7f0000000100)
    homeless = p.location(address=0xdead00)
    named = p.location((linkage, 0), mapping=library)
    p.sample([known, named], 3, 3000)
    p.sample([bare, known], 2, 2000)
    p.sample([homeless], 1, 1000)
    path = p.write(tmp_path / "odd.pb", packed)
    rows = {row["name"]: (row["self_samples"], row["total_samples"], row["self"])
            for row in functions(sonde, path)}
    assert rows == {"ns::work(int)": (3, 5, 3000000), "ns::other()": (0, 3, 0),
                    "[libgone.so]": (2, 2, 2000000), "[unknown]": (1, 1, 1000000)}


@pytest.mark.parametrize("pie", ["-pie", "-no-pie"])
def test_cpp(sonde, pprof, tmp_path, environment, pie):  # noqa: F811
    """A C++ program under gperftools, made a pprof file without names by pprof itself."""
    needs("c++", "google-pprof")
    (tmp_path / "hot.cc").write_text("""
        #include <cstdio>
        #include <ctime>
        namespace ns {
        struct Worker { unsigned long sum = 1;
            __attribute__((noinline)) void hot(int n) { while (n--) sum = sum * 31 + n; }
            __attribute__((noinline)) void outer(int n) { hot(n); asm volatile(""); } };
        }
        int main() { ns::Worker w; for (clock_t end = clock() + CLOCKS_PER_SEC; clock() < end;)
            w.outer(200000); std::printf("%lu\\n", w.sum); }""")
    subprocess.run(["c++", "-g", "-O1", "-fno-omit-frame-pointer", pie, "-o", tmp_path / "hot", tmp_path / "hot.cc"], check=True)
    subprocess.run([tmp_path / "hot"], check=True, capture_output=True,
                   env={**environment, "LD_PRELOAD": PROFILER,
                        "CPUPROFILE": str(tmp_path / "hot.prof")})
    if not (tmp_path / "hot.prof").exists():
        pytest.skip("gperftools' profiler is not here")
    made = tmp_path / "hot.pb.gz"
    pprof("-proto", "-symbolize=none", f"-output={made}", tmp_path / "hot", tmp_path / "hot.prof")
    truth = pprof_text(tmp_path / "hot", tmp_path / "hot.prof")
    rows = {re.sub(r"\(.*", "", row["name"]): (row["self_samples"], row["total_samples"])
            for row in functions(sonde, made, "--no-inline") if row["module"] == "hot"}
    assert rows["ns::Worker::hot"][0] > 20
    assert {name: rows[name] for name in truth if name in rows} == \
        {name: truth[name] for name in rows if name in truth}
    assert rows["ns::Worker::hot"] == truth["ns::Worker::hot"]
