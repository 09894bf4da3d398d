"""sonde report: what it says adds up, and what it cannot do it says in one sentence."""

import csv
import io
import os
import re
import subprocess

import pytest

from runs import run

SAMPLES, STACKS, FUNCTIONS, THREADS = 20000, 3000, 400, 12
PERIOD = 1_000_000  # ns a sample


@pytest.fixture(scope="module")
def recording(built, tmp_path_factory):
    """A synthetic recording of known size."""
    path = tmp_path_factory.mktemp("report") / "big.sonde"
    made = run([built("bench/make_recording"), path, SAMPLES, STACKS, FUNCTIONS, THREADS])
    assert made.status == 0, made
    return path


@pytest.fixture
def report(sonde, recording):
    """report("--tree") -> the view's sections"""
    def call(*options):
        done = sonde("report", recording, "--json", *options)
        assert done.status == 0, done
        return done.json["sections"]
    return call


def sums(section, column):
    return sum(row[column] for row in section["rows"])


def test_every_table_adds_up_to_the_whole(report):
    overview = report()
    totals = overview["totals"]["facts"]
    assert totals["samples"] == SAMPLES
    assert totals["value"] == SAMPLES * PERIOD
    assert totals["threads"] == THREADS
    tables = [overview["functions"], overview["processes"], report("--threads")["threads"],
              report("--modules")["modules"], report("--lines")["lines"],
              report("--tree", "--min", "0")["tree"], report("--processes")["processes"]]
    for table in tables:
        assert table["omitted"] == 0
        assert sums(table, "self") == SAMPLES * PERIOD
    for table in tables[:5]:
        assert sums(table, "self_samples") == SAMPLES
    accounting = overview["accounting"]["rows"]
    assert [(row["event"], row["recorded"], row["lost"]) for row in accounting] == [
        ("cpu", SAMPLES, 0)]


@pytest.mark.parametrize("options", [("--top", "3"), ("--threads", "--top", "2"),
                                     ("--lines", "--top", "7"), ("--modules", "--top", "1")])
def test_a_limit_leaves_one_row_for_the_rest(report, options):
    sections = report(*options)
    name = options[0][2:] if len(options) > 2 else "functions"
    table, limit = sections[name], int(options[-1])
    assert len(table["rows"]) >= limit + 1
    assert table["rows"][limit]["rest"] is True
    assert table["omitted"] > 0
    assert sums(table, "self") == SAMPLES * PERIOD


def test_callers_and_callees_carry_the_total_of_the_function(report):
    top = max(report()["functions"]["rows"], key=lambda row: row["total"])
    for option in ("--callers", "--callees"):
        rows = report(option, top["name"], "--min", "0")[option[2:]]["rows"]
        assert rows[0]["name"] == top["name"]
        assert rows[0]["total"] == top["total"]
        children = [row for row in rows if row["depth"] == 1]
        below = sum(row["total"] for row in children)
        assert below + (rows[0]["self"] if option == "--callees" else 0) <= top["total"]
        if option == "--callees":
            assert below + rows[0]["self"] == top["total"]


def test_filters_split_the_whole(report):
    threads = report("--threads")["threads"]["rows"]
    part = report("--thread", str(threads[0]["tid"]))["totals"]["facts"]
    assert part["value"] == threads[0]["self"]
    assert part["value_recorded"] == SAMPLES * PERIOD
    half = SAMPLES * PERIOD // 8 // 2  # samples are PERIOD / 8 apart
    first = report("--to", f"{half / 1e9}s")["totals"]["facts"]["samples"]
    second = report("--from", f"{half / 1e9}s")["totals"]["facts"]["samples"]
    assert first + second == SAMPLES
    assert abs(first - second) <= 2


def test_a_part_of_the_time_is_measured_by_its_own_length(sonde, target, tmp_path):
    """Not by that of the whole, and not beside what the kernel counted of the whole."""
    path = tmp_path / "r.sonde"
    assert sonde("run", "-o", path, "--", "sh", "-c", f"sleep 0.5; exec {target('shares')}").status == 0

    def part(*options):
        done = sonde("report", path, "--json", *options).json["sections"]
        return done["totals"]["facts"], done["run"]["facts"]["duration"], \
            [row["cpu_counted"] for row in done["processes"]["rows"]]
    whole, duration, counted = part()
    assert abs(whole["utilization"] - 100 * whole["value"] / duration) < 0.01 and any(counted)
    late, _, counted = part("--from", "600ms")
    assert abs(late["utilization"] - 100 * late["value"] / (duration - 600e6)) < 0.01 and not any(counted)
    middle, _, _ = part("--from", "600ms", "--to", "800ms")
    assert abs(middle["utilization"] - 100 * middle["value"] / 200e6) < 0.01 and middle["value"]


def test_inlined_functions_count_unless_told_otherwise(report):
    inline = {row["name"]: row["self"] for row in report()["functions"]["rows"]}
    outer = {row["name"]: row["self"] for row in report("--no-inline")["functions"]["rows"]}
    assert sum(inline.values()) == sum(outer.values())
    assert inline != outer


@pytest.mark.parametrize("by, key", [
    ("self", lambda row: -row["self"]), ("total", lambda row: -row["total"]),
    ("samples", lambda row: -row["self_samples"]), ("name", lambda row: row["name"])])
def test_orders(report, by, key):
    rows = report("--sort", by)["functions"]["rows"]
    assert [key(row) for row in rows] == sorted(key(row) for row in rows)


def test_csv_has_the_rows_of_json(sonde, recording, report):
    shown = sonde("report", recording, "--csv").stdout
    rows = list(csv.DictReader(io.StringIO(shown, newline="")))
    expected = report()["functions"]["rows"]
    assert [(row["name"], int(row["self"]), int(row["total"])) for row in rows] == [
        (row["name"], row["self"], row["total"]) for row in expected]


def test_the_first_screen_fits(sonde, recording):
    lines = sonde("report", recording).stdout.splitlines()
    assert len(lines) <= 48
    assert not [line for line in lines if len(line) > 80 and not line.startswith("  sonde ")]
    assert "\033" not in "".join(lines)


def test_commands_that_it_suggests_work(sonde, sonde_path, environment, recording, tmp_path):
    lines = sonde("report", recording).stdout.partition("\nNext\n")[2].splitlines()
    assert len(lines) >= 3
    for line in lines:
        command = re.split(r"\s{2,}", line.strip())[0] if "'" not in line else line.strip()
        done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env={
            **environment, "PATH": f"{sonde_path.parent}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0, (command, done.stderr)


@pytest.mark.parametrize("arguments, status, sentence", [
    (["absent.sonde"], 1, "cannot open absent.sonde: No such file or directory"),
    (["/"], 1, "/ is a folder, not a profile"),
    (["/dev/null"], 1, "/dev/null is empty"),
    ([], 2, None),
    (["@", "--tree", "--threads"], 2, "one table at a time"),
    (["@", "--json", "--csv"], 2, "--json and --csv exclude each other"),
    (["@", "another"], 2, '"another" is one too many'),
    (["@", "--pid", "x"], 2, "--pid x: not the number of a process"),
    (["@", "--pid", "7"], 1, "no process 7 in this recording"),
    (["@", "--from", "2s", "--to", "1s"], 2, "--to must be later than --from"),
    (["@", "--event", "cycles"], 1, 'no event "cycles" in this recording; its events: cpu'),
    (["@", "--callers", "no such"], 1, 'no function "no such" in what is selected'),
    (["@", "--from", "1h"], 1, "has no samples to show"),
])
def test_what_cannot_be_done_is_one_sentence(sonde, recording, arguments, status, sentence):
    done = sonde("report", *[recording if word == "@" else word for word in arguments])
    assert done.status == status, done
    if sentence:
        assert sentence in done.stderr
        assert done.stderr.startswith("sonde report: ")
        assert done.stderr.count("\n") == 1


def test_a_misspelt_function_is_met_with_the_nearest(sonde, recording, report):
    name = report()["functions"]["rows"][0]["name"]
    done = sonde("report", recording, "--callers", name.replace("stage", "satge"))
    assert done.status == 1
    assert "did you mean" in done.stderr


def test_a_cut_recording_is_shown_up_to_the_cut(sonde, recording, tmp_path):
    cut = tmp_path / "cut.sonde"
    whole = recording.read_bytes()
    cut.write_bytes(whole[: len(whole) * 2 // 3])
    done = sonde("report", cut)
    assert done.status == 0
    assert "the recording is cut at byte" in done.stdout


def test_a_reader_that_goes_away_is_no_error(sonde_path, environment, recording):
    done = subprocess.run(["bash", "-c", f"'{sonde_path}' report '{recording}' --json | head -c 1;"
                                         "echo ${PIPESTATUS[0]}"],
                          env=environment, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.stdout == "{0\n"
    assert done.stderr == ""


@pytest.mark.needs("run")
def test_a_real_run(harness):
    report = harness("shares").check()
    assert report.facts("run")["ended"] == "exit 0"
    assert report.rows("functions")
    assert sum(row["self"] for row in report.rows("functions")) == report.facts("totals")["value"]
