"""`sonde run --heap` and what report, graph and export say of it: the truth that the program itself
prints."""

import os
import re
import shutil
import signal
import xml.etree.ElementTree as xml

import pytest

from runs import children_of, run, wait_until

MIB = 1 << 20


class Heap:
    """A recording of tests/targets/heap, and the sums that it printed."""

    def __init__(self, sonde, path, printed):
        self.sonde, self.path = sonde, path
        names = ("allocations", "bytes", "live", "peak", "temporary")
        self.truth = dict(zip(names, map(int, printed.split()), strict=False))

    def report(self, *options, status=0):
        done = self.sonde("report", self.path, "--json", *options)
        assert done.status == status, done
        return done.json["sections"]


@pytest.fixture
def record(sonde, target, tmp_path):
    def make(mode, *options):
        path = tmp_path / f"{mode}.sonde"
        done = sonde("run", "--heap", *options, "-o", path, "--", target("heap"), mode)
        assert done.status == 0, done
        return Heap(sonde, path, done.stdout)
    return make


@pytest.mark.parametrize("mode", ["simple", "chain", "aligned"])
def test_one_process(record, mode):
    heap = record(mode)
    facts = heap.report("--heap")["heap"]["facts"]
    assert facts["allocations"] == heap.truth["allocations"]
    assert facts["allocated"] == heap.truth["bytes"]
    assert facts["live"] == heap.truth["live"]
    assert facts["peak"] == heap.truth["peak"]
    row, = heap.report("--heap")["heaps"]["rows"]
    assert row["temporary_count"] == heap.truth["temporary"]


def test_tables_add_up_and_name_who_asked(record):
    sections = record("simple").report("--heap")
    functions = sections["functions"]["rows"]
    assert functions[0]["name"].startswith("site_")  # the linker may have merged two of them
    assert sum(row["self"] for row in functions) == 100000
    assert sum(row["count"] for row in sections["live"]["rows"]) == 10
    assert sections["live"]["rows"][0]["stack"].startswith("site_")
    profiler = sections["profiler"]["facts"]
    assert profiler["allocations_generated"] == profiler["allocations_recorded"] == 3060
    assert profiler["allocations_lost"] == 0


def test_a_tree_peaks_when_no_process_does(record):
    sections = record("tree").report("--heap")
    facts = sections["heap"]["facts"]
    assert abs(facts["peak"] - 45 * MIB) < 0.01 * 45 * MIB
    assert facts["peaks_sum"] == 89 * MIB
    assert sorted(row["peak"] for row in sections["heaps"]["rows"]) == [
        20 * MIB, 30 * MIB, 39 * MIB]
    assert sum(row["self"] for row in sections["functions"]["rows"]) == 45 * MIB


def test_leaks_and_their_status(record, tmp_path):
    heap = record("simple")
    facts = heap.report("--leaks")["leaks"]["facts"]
    assert (facts["leaked"], facts["blocks"]) == (640, 10)
    heap.report("--leaks", "--fail-on-leak", status=4)
    quiet = tmp_path / "quiet"
    quiet.write_text("# all of them\nsite_*\n")
    facts = heap.report("--leaks", "--fail-on-leak", "--suppress", quiet)["leaks"]["facts"]
    assert (facts["leaked"], facts["suppressed"]) == (0, 640)
    done = heap.sonde("report", heap.path, "--leaks", "--suppress", tmp_path / "absent")
    assert done.status == 1 and "absent" in done.stderr
    assert record("aligned").report("--leaks", "--fail-on-leak")["leaks"]["facts"]["leaked"] == 0


def test_a_killed_process_does_not_leak(sonde, target, tmp_path):
    path = tmp_path / "killed.sonde"
    done = sonde("run", "--heap", "-o", path, "--", "timeout", "-s", "KILL", "0.3",
                 target("heap"), "endless")
    assert done.status == 137, done
    facts = sonde("report", path, "--json", "--leaks", "--fail-on-leak", "--suppress",
                  "/dev/null").json["sections"]["leaks"]["facts"]
    assert facts["held"] > 0


def heap_facts(sonde, path):
    done = sonde("report", path, "--heap", "--json")
    return done.json["sections"]["heap"]["facts"] if done.status == 0 else {}


@pytest.mark.parametrize("before", [[], ["sh", "-c", 'exec "$0" "$@"']], ids=["started", "after exec"])
def test_a_killed_recorder_loses_no_heap(sonde, sonde_path, started, target, tmp_path, before):
    """What a process holds is written when it ends: of one that did not, its history tells. The program
    holds 1,000,000 bytes, then 2,000,000, then 100,000."""
    path = tmp_path / "cut.sonde"
    recorder = started([sonde_path, "run", "--heap", "-o", path, "--", *before, target("heap"), "lasting"])
    wait_until(lambda: path.exists() and heap_facts(sonde, path).get("peak", 0) > 1900000)
    wait_until(lambda: heap_facts(sonde, path)["live"] < 200000)
    (child,) = children_of(recorder.pid)
    recorder.kill()
    recorder.wait()
    os.kill(child, signal.SIGKILL)  # it went on
    facts = heap_facts(sonde, path)
    shell = 10000 if before else 0
    assert 0 <= facts["peak"] - 2000000 < 5000 and 0 <= facts["allocated"] - 2000000 < 5000 + shell, facts
    assert 0 <= facts["live"] - 100000 < 5000 + shell, facts
    sections = sonde("report", path, "--heap", "--json").json["sections"]
    at_peak = {row["name"]: row["self"] for row in sections["functions"]["rows"]}
    assert at_peak["site_early"] == at_peak["site_late"] == 1000000
    assert any("as of the last point" in note["text"] for note in sections["notes"]["notes"])
    leaks = sonde("report", path, "--leaks", "--json").json["sections"]["leaks"]
    assert leaks["facts"]["leaked"] == 0 and leaks["facts"]["held"] >= 100000


def test_a_recorder_that_was_killed_at_once_is_told(sonde, tmp_path):
    """Nothing but the beginning of the file was written."""
    path = tmp_path / "whole.sonde"
    assert sonde("run", "--heap", "-o", path, "--", "true").status == 0
    content = path.read_bytes()
    told = 0
    for size in range(len(content) // 40, len(content), len(content) // 40):
        path.write_bytes(content[:size])
        done = sonde("report", path, "--heap")
        assert done.status in (0, 1), (size, done)
        told += "recorder was killed" in done.stdout + done.stderr
    assert told > 0


def test_lines_hold_bytes(record):
    lines = record("simple").report("--mem-lines")["lines"]["rows"]
    assert sum(row["self"] for row in lines) == 100000
    assert lines[0]["self"] == 100000 and lines[0]["place"].startswith("heap.c:")


def test_peak_is_an_event_as_any_other(record):
    heap = record("simple")
    for event in ("heap:peak", "heap:live", "heap:allocated"):
        sections = heap.report("--event", event)
        value = sections["totals"]["facts"]["value"]
        assert sum(row["self"] for row in sections["functions"]["rows"]) == value > 0
        assert not sections["notes"]["notes"]


def test_first_screens(sonde, record, target, tmp_path):
    """With samples, one line of the heap; without, the heap itself; without a heap, a sentence."""
    path = tmp_path / "cpu.sonde"
    assert sonde("run", "-o", path, "--", target("shares")).status == 0
    done = sonde("report", path, "--heap")
    assert done.status == 1 and done.stderr.count("\n") == 1 and "--heap" in done.stderr
    heap = record("simple")
    sections = heap.report()
    if "totals" in sections:
        assert sections["totals"]["facts"]["heap_peak"] == 100000
    else:
        assert sections["heap"]["facts"]["peak"] == 100000


@pytest.mark.parametrize("part,bytes_", [("peak", "97.7 KiB"), ("live", "640 B"),
                                         ("temporary", "650 B"), ("allocated", "293.9 KiB")])
def test_flame_graphs_of_the_heap(record, tmp_path, part, bytes_):
    heap = record("simple")
    for end in ("svg", "html"):
        picture = tmp_path / f"{part}.{end}"
        assert heap.sonde("graph", heap.path, f"--heap={part}", "-o", picture).status == 0
    root = xml.parse(tmp_path / f"{part}.svg").getroot()
    facts = root.find(".//*[@id='facts']").text
    assert facts.startswith(f"heap:{part} {bytes_}")
    assert "sample" not in facts
    assert '"unit":"bytes"' in (tmp_path / f"{part}.html").read_text()


def test_curves(record, tmp_path):
    heap = record("simple")
    picture = tmp_path / "curves.svg"
    done = heap.sonde("graph", heap.path, "--kind", "threads", "-o", picture)
    assert done.status == 0, done
    words = [text.text for text in xml.parse(picture).getroot().iter() if text.tag.endswith("text")]
    assert any(word.startswith("1: ") and "heap: peak 97.7 KiB" in word for word in words)
    legend = (tmp_path / "curves.txt").read_text().splitlines()
    assert re.fullmatch(r"1: heap>.*heap\.c:\d+:site_\w+=>100000", legend[0]), legend


def test_pprof_has_four_types_and_the_same_bytes(record, tmp_path, environment):
    if not shutil.which("go"):
        pytest.skip("go tool pprof is not installed")
    heap = record("simple")
    file = tmp_path / "heap.pb.gz"
    done = heap.sonde("export", heap.path, "--event", "heap:live", "--format", "pprof", "-o", file)
    assert done.status == 0, done

    def pprof(*arguments):
        done = run(["go", "tool", "pprof", *arguments, file], env=environment)
        assert done.status == 0, done
        return done.stdout
    assert ("alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]\n"
            in pprof("-raw"))
    for index, truth in (("alloc_objects", 3060), ("alloc_space", 300990), ("inuse_objects", 10),
                         ("inuse_space", 640)):
        top = pprof("-top", f"-sample_index={index}", "-unit=B", "-nodefraction=0")
        flat = sum(int(found[1]) for found in re.finditer(r"^\s*(\d+)B?\s.*site_", top, re.M))
        assert flat == truth, top
    rows = heap.report("--event", "heap:live")["functions"]["rows"]
    assert sum(row["self"] for row in rows) == 640
