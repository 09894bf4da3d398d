"""Exports for viewers: accepted by the tool itself where it runs here, and true to the samples."""

import collections
import csv
import io
import re
import shutil

import pytest

from runs import run
from test_export import TOTAL, recording  # noqa: F401 (a fixture)

# Self samples of cpu by function, as tests/unit/formats/sample.c makes them.
SELF = {"ns::work(int)": 60, "sin": 25, "small;odd?name": 10, "[libm.so.6+0x2468]": 4,
        "[unknown+0x7fffdead0000]": 1}


@pytest.fixture
def export(sonde, recording):  # noqa: F811
    def call(name, *options):
        done = sonde("export", recording, "-f", name, *options)
        assert done.status == 0 and not done.stderr, done
        return done
    return call


def test_speedscope(export):
    file = export("speedscope").json
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = file["shared"]["frames"]
    assert all(isinstance(frame["name"], str) for frame in frames)
    leaves, total = collections.Counter(), 0
    for profile in file["profiles"]:
        assert profile["type"] == "sampled" and profile["unit"] == "nanoseconds"
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] - profile["startValue"] == sum(profile["weights"])
        total += sum(profile["weights"])
        for stack in profile["samples"]:
            assert all(0 <= frame < len(frames) for frame in stack)
            if stack:
                leaves[frames[stack[-1]]["name"]] += 1
    assert total == TOTAL * 1000000
    assert leaves == SELF
    assert [profile["name"] for profile in file["profiles"]] == \
        ["main 42 of app 42", "worker 43 of app 42", "thread 77 of python3 77"]
    assert {"name": "main", "file": "/src/main.c", "line": 12} in frames


def test_chrome_trace(export):
    events = export("chrome-trace").json["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {"main", "worker", ""}
    for tid in {span["tid"] for span in spans}:
        # Spans of a thread nest: one that begins inside another ends inside it.
        open_until = []
        mine = sorted((s for s in spans if s["tid"] == tid), key=lambda s: (s["ts"], -s["dur"]))
        for span in mine:
            while open_until and open_until[-1] <= span["ts"] + 1e-6:
                open_until.pop()
            end = span["ts"] + span["dur"]
            assert not open_until or end <= open_until[-1] + 1e-6
            open_until.append(end)
    assert {span["name"] for span in spans} >= {"main", "ns::work(int)", "sin", "handle"}


def test_gecko(export):
    file = export("gecko").json
    assert file["meta"]["version"] == 24 and file["meta"]["interval"] == 1
    leaves = collections.Counter()
    for thread in file["threads"]:
        frames, stacks = thread["frameTable"]["data"], thread["stackTable"]["data"]
        for index, (prefix, frame) in enumerate(stacks):
            assert prefix is None or prefix < index
            assert frame < len(frames)
        times = [row[1] for row in thread["samples"]["data"]]
        assert times == sorted(times)
        for stack, _, _ in thread["samples"]["data"]:
            if stack is not None:
                name = thread["stringTable"][frames[stacks[stack][1]][0]]
                leaves[name.partition(" (in ")[0]] += 1
    assert leaves == SELF


def test_callgrind(export, tmp_path):
    if not shutil.which("callgrind_annotate"):
        pytest.skip("callgrind_annotate is not installed")
    path = tmp_path / "out.callgrind"
    path.write_text(export("callgrind").stdout)
    for options in [], ["--tree=both"], ["--inclusive=yes"]:
        done = run(["callgrind_annotate", "--auto=no", *options, path])
        assert done.status == 0 and not done.stderr, done
    assert re.search(r"95,000,000 \(93\.1%\)\s+/src/main\.c:main|95,000,000.*main", done.stdout)
    plain = run(["callgrind_annotate", "--auto=no", "--threshold=100", path]).stdout
    assert f"{TOTAL * 1000000:,} (100.0%)  PROGRAM TOTALS" in plain
    assert re.search(r"60,000,000 \(58\.82%\)\s+/src/w\.cc:ns::work\(int\)", plain)
    assert re.search(r"25,000,000 \(24\.51%\)\s+\?\?\?:sin", plain)


def test_dot(export):
    if not shutil.which("dot"):
        pytest.skip("dot is not installed")
    done = run(["dot", "-Tplain"], input=export("dot").stdout)
    assert done.status == 0 and not done.stderr, done
    nodes = [line for line in done.stdout.splitlines() if line.startswith("node")]
    assert len(nodes) == 7
    few = run(["dot", "-Tplain"], input=export("dot", "--min", "10%").stdout)
    assert len([line for line in few.stdout.splitlines() if line.startswith("node")]) == 3


def test_csv(export):
    rows = list(csv.DictReader(io.StringIO(export("csv").stdout)))
    assert sum(int(row["samples"]) for row in rows if row["event"] == "cpu") == TOTAL
    assert {row["thread"] for row in rows} == {"main", "worker", ""}
    assert sum(int(row["value"]) for row in rows if row["event"] == "alloc_space") == 12488


def test_json(export):
    file = export("json").json
    assert [event["samples"] for event in file["events"]] == [TOTAL, 7, 5]
    assert len(file["samples"]) == TOTAL + 12
    names = [f["name"] for f in file["functions"]]
    assert "ns::work(int)" in names
    assert sum(c["samples"] for c in file["cells"]) == TOTAL + 12


def test_perf_script_back(sonde, export, recording, tmp_path):  # noqa: F811
    path = tmp_path / "script.txt"
    path.write_text(export("perf-script").stdout)
    back = sonde("export", path, "-f", "folded", "--event", "cpu")
    there = sonde("export", recording, "-f", "folded", "--event", "cpu")
    assert sorted(back.stdout.splitlines()) == sorted(there.stdout.splitlines())


def test_script_elements(sonde, tmp_path):
    """Names that mean something in HTML, quotes and escapes stay text in every format."""
    hostile = tmp_path / "hostile.folded"
    hostile.write_text('a"b\\;</script><b>;\x1b[31mred;=1+1 5\n')
    for name in ("speedscope", "chrome-trace", "gecko", "json"):
        done = sonde("export", hostile, "-f", name)
        assert "</script>" not in done.stdout and "\x1b" not in done.stdout
        assert done.json
    for name in ("folded", "callgrind", "dot", "csv", "perf-script"):
        done = sonde("export", hostile, "-f", name)
        assert done.status == 0 and "\x1b" not in done.stdout
