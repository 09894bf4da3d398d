"""Profiles that Go's own runtime writes, made here: the same counts as `go tool pprof` prints."""

import re
import shutil
import subprocess

import pytest

from protobuf import Pprof
from test_pprof import pprof  # noqa: F401
from test_readers import functions

pytestmark = pytest.mark.needs("import")

PROGRAM = """
package main

import (
    "os"
    "runtime"
    "runtime/pprof"
    "time"
)

var kept [][]byte

//go:noinline
func burn(until time.Time) (x uint64) {
    for time.Now().Before(until) {
        for i := 0; i < 1000; i++ {
            x = x*6364136223846793005 + 1
        }
    }
    return x
}

//go:noinline
func allocate() {
    for i := 0; i < 300; i++ {
        kept = append(kept, make([]byte, 10000))
    }
}

func main() {
    runtime.MemProfileRate = 1
    cpu, _ := os.Create(os.Args[1])
    pprof.StartCPUProfile(cpu)
    burn(time.Now().Add(700 * time.Millisecond))
    allocate()
    pprof.StopCPUProfile()
    cpu.Close()
    heap, _ := os.Create(os.Args[2])
    runtime.GC()
    pprof.WriteHeapProfile(heap)
    heap.Close()
    runtime.KeepAlive(kept)
}
"""


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    if not shutil.which("go"):
        pytest.skip("there is no go here")
    folder = tmp_path_factory.mktemp("go")
    (folder / "main.go").write_text(PROGRAM)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GOCACHE": str(folder / "cache"),
                   "GO111MODULE": "off", "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", folder / "program", folder / "main.go"], check=True,
                   env=environment, timeout=300)
    subprocess.run([folder / "program", folder / "cpu.pb.gz", folder / "heap.pb.gz"], check=True)
    return folder


def top(pprof, path, index, unit, *inlines):  # noqa: F811
    """{function: (flat, cum)}."""
    text = pprof("-top", f"-sample_index={index}", f"-unit={unit}", "-nodecount=100000",
                 "-nodefraction=0", *(inlines or ("-noinlines",)), path)
    rows = re.findall(r"^\s*(-?\d+)\S*\s+\S+%\s+\S+%\s+(-?\d+)\S*\s+\S+%\s+(.+)$", text, re.M)
    return {name.strip(): (int(flat), int(cum)) for flat, cum, name in rows}


def test_cpu(sonde, pprof, profiles):  # noqa: F811
    truth = top(pprof, profiles / "cpu.pb.gz", "samples", "minimum")
    ours = {row["name"]: (row["self_samples"], row["total_samples"])
            for row in functions(sonde, profiles / "cpu.pb.gz", "--no-inline")}
    assert truth["main.burn"][1] > 2
    assert {name: ours.get(name) for name in truth} == truth


def test_heap(sonde, pprof, profiles):  # noqa: F811
    truth = top(pprof, profiles / "heap.pb.gz", "inuse_space", "B")
    ours = {row["name"]: (row["self"], row["total"])
            for row in functions(sonde, profiles / "heap.pb.gz", "--no-inline", "--event",
                                 "inuse_space")}
    assert truth["main.allocate"][0] >= 3000000
    shown = {name: row for name, row in truth.items() if any(row)}
    assert {name: ours.get(name) for name in shown} == shown


def test_what_pprof_shows_is_shown(sonde, pprof, profiles):  # noqa: F811
    """A heap profile of Go names in-use bytes as what to show; one that names nothing is shown by its last type."""
    path = profiles / "heap.pb.gz"
    assert "Type: inuse_space" in pprof("-top", path)
    assert functions(sonde, path) == functions(sonde, path, "--event", "inuse_space")
    assert functions(sonde, path) != functions(sonde, path, "--event", "alloc_space")
    shown = sonde("report", path).stdout
    assert "\nimported from pprof · 2" in shown and "unknown" not in shown  # nor how long, nor how it ended
    done = sonde("report", path, "--heap")
    assert done.status == 1 and done.stderr.endswith("look at them with --event inuse_space\n")


def test_the_last_type_is_shown(sonde, pprof, tmp_path):  # noqa: F811
    p = Pprof(("requests", "count"), ("delay", "nanoseconds"))
    here = p.location((p.function("wait"), 3))
    p.sample([here], 2, 5000)
    path = p.write(tmp_path / "delay.pb.gz")
    assert "Type: delay" in pprof("-top", path)
    assert [row["self"] for row in functions(sonde, path)] == [5000]
