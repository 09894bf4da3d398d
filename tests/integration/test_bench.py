"""`sonde bench`: what it measures, what it calls a change, and what it does not."""

import csv
import io

import pytest

pytestmark = pytest.mark.alone


def rows(done, section):
    return done.json["sections"][section]["rows"]


def test_one_command(sonde, target):
    done = sonde("bench", "--json", "-n", "4", "-w", "0", "-e", "page-faults", "--",
                 target("mixture"), "60000")
    assert done.status == 0, done
    measured = {row["name"]: row for row in rows(done, "summary")}
    assert measured["real"]["runs"] == 4
    assert measured["real"]["min"] <= measured["real"]["median"] <= measured["real"]["max"]
    assert measured["real"]["mean_low"] <= measured["real"]["mean"] <= measured["real"]["mean_high"]
    assert measured["page-faults"]["mean"] > 20
    functions = {row["name"]: row["mean"] for row in rows(done, "functions")}
    whole = sum(functions.values())
    for name, percent in (("reading", 30), ("suspect", 50), ("writing", 20)):
        assert 100 * functions[name] / whole == pytest.approx(percent, abs=8)


def test_a_slower_function_is_found_and_named(sonde, target):
    """One function 30 % slower, in few runs: the figure of 3 % takes more, see bench/compare."""
    mixture = target("mixture")
    done = sonde("bench", "--json", "-n", "10", "-w", "0", "--rate", "9999", "--fail-above", "5%",
                 "--compare", f"old={mixture} 60000", f"new={mixture} 60000 1300", timeout=300)
    changed = {row["name"]: row for row in rows(done, "functions")}
    assert changed["suspect"]["verdict"] == "more", done
    assert changed["suspect"]["change_percent"] == pytest.approx(30, abs=12)
    assert changed["reading"]["verdict"] == "no change"
    assert changed["writing"]["verdict"] == "no change"
    assert done.status == 3 and "suspect of new is" in done.stderr


def test_the_same_program_is_no_change(sonde, target):
    mixture = target("mixture")
    done = sonde("bench", "--csv", "-n", "10", "-w", "0", "--no-functions", "--fail-above", "2%",
                 "--compare", f"A={mixture} 30000", f"B={mixture} 30000", timeout=300)
    assert done.status == 0, done
    table = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["name"] for row in table} >= {"real", "user", "page faults"}
    assert {row["verdict"] for row in table if row["name"] in ("real", "user")} == {"no change"}


def test_too_few_runs_are_said_to_be(sonde):
    for runs, few in ((4, True), (10, False)):
        done = sonde("bench", "-n", runs, "-w", "0", "--no-functions", "--compare", "A=true", "B=sleep 0.05")
        assert ("too few runs" in done.stdout) == few, done


def test_more_memory_is_a_change(sonde):
    done = sonde("bench", "--markdown", "-n", "10", "-w", "0", "--no-functions", "--compare",
                 "A=python3 -c 'bytearray(30000000)'", "B=python3 -c 'bytearray(60000000)'",
                 timeout=200)
    line = next(line for line in done.stdout.splitlines() if "maximum memory" in line)
    assert line.startswith("| **maximum memory** |") and "**more**" in line


def test_prepare_comes_before_each_run(sonde, tmp_path):
    mark = tmp_path / "mark"
    done = sonde("bench", "-q", "-n", "3", "-w", "1", "--no-functions", "--prepare",
                 f"echo x >> {mark}", "--", "true")
    assert done.status == 0 and mark.read_text() == "x\n" * 4
    assert sonde("bench", "-n", "1", "--prepare", "false", "--", "true").status == 1


def test_output_and_failures(sonde):
    done = sonde("bench", "-n", "2", "-w", "0", "--no-functions", "--", "sh", "-c", "echo loud")
    assert "loud\n" not in done.stdout
    failed = sonde("bench", "-n", "2", "--no-functions", "--", "sh", "-c", "exit 7")
    assert failed.status == 1 and "status 7" in failed.stderr
    assert sonde("bench", "-n", "2", "-i", "--no-functions", "--", "sh", "-c", "exit 7").status == 0
    assert sonde("bench", "-n", "2", "--", "/no/such").status == 1


@pytest.mark.parametrize("options", [
    ["--compare", "A=true"], ["--compare", "true", "false"], ["--fail-above", "2%", "--", "true"],
    ["--json", "--csv", "--", "true"], ["-n", "0", "--", "true"], []])
def test_bad_options(sonde, options):
    done = sonde("bench", *options)
    assert done.status == 2 and len(done.stderr.splitlines()) == 1, done
