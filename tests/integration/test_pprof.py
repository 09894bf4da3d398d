"""A real recording as pprof sees it: the same samples in the same functions as `sonde report`."""

import re
import shutil

import pytest

from runs import run


@pytest.fixture
def pprof(tmp_path):
    if not shutil.which("go"):
        pytest.skip("go tool pprof is not installed")

    def call(*arguments):
        done = run(["go", "tool", "pprof", *arguments],
                   env={"PATH": "/usr/bin:/bin:/usr/lib/go/bin", "HOME": str(tmp_path),
                        "PPROF_TMPDIR": str(tmp_path), "PPROF_BINARY_PATH": str(tmp_path)})
        assert done.status == 0, done
        return done.stdout
    return call


def test_pprof_and_report_agree(harness, sonde, pprof, tmp_path):
    """To the sample: of the whole, and of every function by itself and with what it calls."""
    recording = harness("tree", 600000).record()
    file = tmp_path / "tree.pb.gz"
    assert sonde("export", "-o", file, recording.path).status == 0
    rows = recording.report("--no-inline").rows("functions")
    raw = pprof("-raw", file)
    body = raw[raw.index("Samples:"):raw.index("Locations\n")]
    counts = [int(found[1]) for found in re.finditer(r"^\s+(\d+)\s+\d+: ", body, re.M)]
    assert sum(counts) == recording.report().facts("totals")["samples"]
    # 'flat flat% sum% cum cum% name', in samples
    top = pprof("-top", "-sample_index=samples", "-nodecount=10000", "-nodefraction=0",
                "-noinlines", file)
    found = {}
    for line in top.splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and words[1].endswith("%"):
            flat, cum = found.get(words[5], (0, 0))
            found[words[5]] = (flat + int(words[0]), cum + int(words[3]))
    ours = {}  # functions of one name are one for pprof, whatever module they are of
    for row in rows:
        if row["module"] != "[kernel]":
            self, total = ours.get(row["name"], (0, 0))
            ours[row["name"]] = (self + row["self_samples"], total + row["total_samples"])
    for name, samples in ours.items():
        if samples[1] >= 3:
            assert found[name] == samples, name
    assert found["in_fork"][1] > 50
