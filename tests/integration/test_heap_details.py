"""What memory is made of: sizes, threads that free, ages, and what was held at any time of a run."""

import re
import shutil

import pytest

from runs import run
from test_heap_report import record  # noqa: F401  the fixture


@pytest.fixture
def phases(record):  # noqa: F811
    return record("phases")


def functions(sections):
    return {row["name"]: row["self"] for row in sections["functions"]["rows"] if row["self"]}


def site(rows, name, column="value"):
    return sum(row[column] for row in rows if row["stack"].startswith(name))


def test_sizes(record):  # noqa: F811
    heap = record("simple")
    sections = heap.report("--sizes")
    count = {row["least"]: row["count"] for row in sections["sizes"]["rows"]}
    assert count[64] == 3010  # 3000 of 100 bytes and 10 of 64
    assert sum(count.values()) == heap.truth["allocations"]
    assert sum(row["count"] for row in sections["stacks"]["rows"]) == heap.truth["allocations"]


def test_sizes_by_name(sonde, tmp_path):
    """The last class has no end."""
    program = tmp_path / "large"
    source = "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(100 << 20), *volatile q = malloc(700); " \
             "*p = *q = 1; return 0; }"
    made = run(["gcc", "-O0", "-x", "c", "-o", program, "-"], input=source)
    assert made.status == 0, made
    assert sonde("run", "-q", "--heap", "-o", tmp_path / "r.sonde", "--", program).status == 0
    told = sonde("report", tmp_path / "r.sonde", "--sizes").stdout
    assert "16 MiB and more" in told and "512 B to 1 KiB" in told, told


def test_each_thread_frees_what_its_neighbour_allocated(record):  # noqa: F811
    heap = record("across")
    rows = heap.report("--ownership")["ownership"]["rows"]
    given = [row for row in rows if row["from_tid"] != row["by_tid"] and row["count"] >= 1000]
    assert sorted(row["count"] for row in given) == [1000] * 4
    assert sum(row["value"] for row in given) == heap.truth["bytes"]
    assert len({row["from_tid"] for row in given}) == len({row["by_tid"] for row in given}) == 4
    stacks = heap.report("--ownership")["stacks"]["rows"]
    assert site(stacks, "site_malloc") == heap.truth["bytes"]


def test_held_at_a_time(phases):
    assert functions(phases.report("--heap", "--at", "1s"))["site_early"] == 1000000
    assert "site_late" not in functions(phases.report("--heap", "--at", "1s"))
    later = functions(phases.report("--heap", "--at", "2500ms"))
    assert later["site_early"] == later["site_late"] == 1000000


def test_grown_in_a_span(phases):
    """What was there before is not in it, what went before its end neither."""
    grown = functions(phases.report("--heap", "--from", "1s", "--to", "2500ms"))
    assert grown == {"site_late": 1000000}
    assert "site_late" not in functions(phases.report("--heap", "--from", "1s"))


def test_calls_under_a_peak(phases):
    peak, = phases.report("--peaks")["peaks"]["rows"]
    assert peak["value"] == 2000000
    rows = phases.report("--peaks", "--event", "1")["calls"]["rows"]
    late = next(row for row in rows if row["call"] == "site_late")
    early = next(row for row in rows if row["call"] == "site_early")
    assert late["total"] == early["total"] == 1000000
    assert early["last"] < 1e9 < late["last"] <= peak["time"]
    assert next(row for row in rows if row["call"] == "phases")["total"] >= 2000000


def test_no_such_peak(phases):
    done = phases.sonde("report", phases.path, "--peaks", "--event", "7")
    assert done.status == 1 and "there is no peak 7" in done.stderr
    done = phases.sonde("report", phases.path, "--peaks", "--event", "cpu")
    assert done.status == 2 and "number of a peak" in done.stderr


def test_ages(phases):
    sections = phases.report("--ages")
    old = next(row for row in sections["stacks"]["rows"] if row["stack"].startswith("site_early"))
    assert old["value"] == 100000
    assert old["half"] > 3e9
    classes = {row["least"]: row["value"] for row in sections["ages"]["rows"]}
    assert classes[10 ** 9] >= 100000


def test_short_lived(record):  # noqa: F811
    """Three rounds of a thousand blocks, freed in milliseconds."""
    rows = record("simple").report("--ages")["short_lived"]["rows"]
    assert site(rows, "site_malloc") >= 300000


def test_tables_of_people(phases):
    for options in (["--sizes"], ["--ownership"], ["--ages"], ["--heap", "--at", "1s"],
                    ["--peaks", "--event", "1"]):
        done = phases.sonde("report", phases.path, *options)
        assert done.status == 0, done
        assert not re.search(r"nan|-1\b|[0-9]{19}", done.stdout), done.stdout


def test_resident_memory_adds_up(phases):
    """Its parts are read one after the other while it runs, so to a few pages."""
    row, = phases.report("--heap")["ledger"]["rows"]
    assert row["rss"] >= 2000000 and row["live"] >= 1900000
    parts = row["live"] + row["kept"] + row["file"] + row["shared"]
    assert parts == pytest.approx(row["rss"], rel=0.15)
    assert 0 < row["pss"] <= 1.15 * row["rss"]


def test_massif_opens_it(phases, tmp_path):
    if not shutil.which("ms_print"):
        pytest.skip("ms_print is not installed")
    file = tmp_path / "x.massif"
    done = phases.sonde("export", "--format", "massif", "-o", file, phases.path)
    assert done.status == 0, done
    printed = run(["ms_print", file]).stdout
    assert re.search(r"49\.\d\d% \(1,000,000B\) 0x[0-9A-F]+: site_late|50\.00% \(1,000,000B\)", printed)
    assert "(peak)" in printed
    heaps = [int(n) for n in re.findall(r"mem_heap_B=(\d+)", file.read_text())]
    assert max(heaps) == phases.truth["peak"]


def test_threads_over_time(record):  # noqa: F811
    heap = record("across")
    rows = heap.report("--heap", "--threads")["threads"]["rows"]
    workers = [row for row in rows if row["tid"] != row["pid"]]  # the first one makes the others
    assert len(workers) == 4
    assert sum(row["allocated"] for row in workers) == heap.truth["bytes"]
    assert sum(row["allocations"] for row in workers) == heap.truth["allocations"]
    done = heap.sonde("report", heap.path, "--leaks", "--threads")
    assert done.status != 0 and "one table at a time" in done.stderr, done


def test_as_heaptrack_tells_it(record, tmp_path):  # noqa: F811
    heap = record("simple")
    file = tmp_path / "x.txt"
    done = heap.sonde("export", "--format", "heaptrack", "-o", file, heap.path)
    assert done.status == 0, done
    text = file.read_text()
    for title in ("MOST CALLS TO ALLOCATION FUNCTIONS", "PEAK MEMORY CONSUMERS",
                  "MOST TEMPORARY ALLOCATIONS", "MEMORY LEAKS"):
        assert f"{title}\n" in text
    assert f"calls to allocation functions: {heap.truth['allocations']} (" in text
    assert f"temporary memory allocations: {heap.truth['temporary']} (" in text
    assert "\nsite_" in text and "\n    simple\n" in text
