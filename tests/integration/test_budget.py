"""--budget, and what it rests on: samples stand for what they stand for, whatever the rate."""

import math

import pytest

from runs import wait_until

pytestmark = pytest.mark.alone


def agrees(say, path, counted=None):
    """The samples' sum is the CPU time that was counted, as far as chance lets it: each sample may
    have been one more or one less, so the sum's spread is at most the root of their squares."""
    data = say("export", "--format", "json", path, "-o", "-").json
    rows = say("report", "--threads", "--json", path).json["sections"]["threads"]["rows"]
    counted = counted or sum(row["cpu_counted"] or 0 for row in rows)
    weights = [sample["value"] for sample in data["samples"]
               if data["events"][sample["event"]]["name"] == "cpu"]
    assert len(weights) > 5
    spread = math.sqrt(sum(weight ** 2 for weight in weights))
    assert abs(sum(weights) - counted) < 4.5 * spread + 0.1 * counted, (sum(weights), counted)


def notes_of(recording, path):
    return " ".join(recording(path).report("--notes").notes)


@pytest.fixture
def rates(sonde):
    """rates(path, curve) -> its values."""
    def read(path, curve):
        series = sonde("export", "--format", "json", path, "-o", "-").json["series"]
        return [point[1] for one in series if one["name"] == curve for point in one["points"]]
    return read


def test_fewer_samples_stand_for_the_same(sonde, target, recording, rates, tmp_path):
    """A budget that must be kept by few samples, of CPU and of the heap: sums stay what they are."""
    path = tmp_path / "b.sonde"
    made = sonde("run", "-q", "-o", path, "--budget", "0.3%", "--heap", "--heap-interval", "16K",
                 "--", target("allocates"))
    assert made.status == 0, made
    bytes_of = dict(zip(("site_a", "site_b"), map(int, made.stdout.split())))
    agrees(sonde, path)
    rows = sonde("report", "-e", "heap:allocated", "--json", path).json
    for row in rows["sections"]["functions"]["rows"]:
        if row["name"] in bytes_of:
            assert row["self"] == pytest.approx(bytes_of.pop(row["name"]), rel=0.25)
    assert not bytes_of
    said = notes_of(recording, path)
    assert "budget: 0.3 % of the target's CPU time; measured: " in said
    assert "given up for the budget: of 499 samples a second" in said
    assert "samples of the heap were to be 16.0 KiB apart" in said
    taken, apart = rates(path, "sampling rate"), rates(path, "heap interval")
    assert taken[0] == 499 and min(taken) < 250 and apart[0] == 16384 and max(apart) > 32768


def test_a_budget_that_is_wide_gives_up_nothing(sonde, target, recording, tmp_path):
    path = tmp_path / "b.sonde"
    assert sonde("run", "-q", "-o", path, "--budget", "100%", "--", target("shares"), 300000).status == 0
    assert "nothing was given up for the budget" in notes_of(recording, path)


def test_python_too(sonde, recording, rates, tmp_path):
    """Samples are taken inside the process there, by clocks of its own threads."""
    path, script = tmp_path / "b.sonde", tmp_path / "hot.py"
    script.write_text("import time\ndef hot():\n    sum(range(20000))\n"
                      "while time.process_time() < 1.5: hot()\nprint(time.process_time())\n")
    made = sonde("run", "-q", "-o", path, "--budget", "0.3%", "--", "/usr/bin/python3", script)
    assert made.status == 0, made
    agrees(sonde, path, float(made.stdout) * 1e9)
    assert min(rates(path, "sampling rate")) < 499
    functions = sonde("report", "--json", path).json["sections"]["functions"]["rows"]
    hot, = (row for row in functions if row["name"] == "hot")
    assert hot["total_percent"] > 75


def test_where_each_task_has_its_clock(nobody, target, tmp_path):
    """An ordinary user's samples are thinned by chance."""
    made = nobody("run", "-q", "-o", "b.sonde", "--budget", "0.1%", "--", target("shares"))
    assert made.status == 0, made
    agrees(nobody, "b.sonde")
    assert "given up for the budget" in nobody("report", "--notes", "b.sonde").stdout


def test_a_rate_that_is_changed_by_hand(sonde, sonde_path, started, target, tmp_path):
    """What was sampled at one rate and at another adds up to the time that went by."""
    path = tmp_path / "r.sonde"
    session = started([sonde_path, "run", "-q", "-o", path, "--rate", "1000", "--",
                       target("shares"), "1500000"])
    wait_until(lambda: path.exists() and path.stat().st_size > 0)
    wait_until(lambda: sonde("ctl", session.pid, "rate", "100").status == 0)
    assert session.wait(60) == 0
    agrees(sonde, path)


@pytest.mark.parametrize("budget", ["0", "200%", "little"])
def test_bad_budgets(sonde, budget):
    done = sonde("run", "--budget", budget, "--", "true")
    assert done.status == 2 and "--budget" in done.stderr
