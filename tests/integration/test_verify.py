"""sonde verify: programs that know their truth, and other tools' files measured by it."""

import json
import os
import shutil
import signal
import subprocess

import pytest

from runs import run, wait_until

pytestmark = pytest.mark.alone


def kinds(done):
    return {row["kind"]: row for row in done.json["sections"]["kinds"]["rows"]}


def claims(done):
    return {row["name"]: row for row in done.json["sections"]["claims"]["rows"]}


@pytest.fixture
def program(sonde):
    return sonde("verify", "--program").stdout.strip()


@pytest.fixture
def shares(program, sonde, environment, tmp_path):
    """shares(*recorder) -> the truth of a run of the program for CPU time under that recorder."""
    def record(*recorder):
        truth = tmp_path / "truth.txt"
        done = run([*recorder, program, "cpu", truth], env=environment)
        assert done.status == 0, done
        return truth
    return record


def test_what_is_exact_is_exact(sonde, tmp_path):
    """Sums and counts, which no load can change; costs are told, and are numbers."""
    done = sonde("verify", "-n", "1", "--json", "heap", "calls", timeout=120,
                 env={"TMPDIR": str(tmp_path)})
    found = kinds(done)
    assert set(found) == {"heap", "peak", "leaks", "calls"}
    for row in found.values():
        assert row["error_percent"] <= row["bound_percent"], row
        assert row["verdict"] in ("true", "dear") and row["collector_cpu"] > 0
        assert row["cost_bound_percent"] > 0 and row["cost_noise_percent"] >= 0
    assert all(row["verdict"] == "true" for row in claims(done).values())
    assert done.status == (5 if any(row["verdict"] == "dear" for row in found.values()) else 0)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("sonde-verify")]


def test_shares_of_a_recording(sonde, sonde_path, shares, tmp_path):
    """What the program says of itself and what sonde saw of it, at any load of the machine."""
    path = tmp_path / "r.sonde"
    truth = shares(sonde_path, "run", "-q", "--rate", "1997", "-o", path, "--")
    text = truth.read_text()
    truth.write_text(text.replace("bound 3%", "bound 5%"))
    done = sonde("verify", "--file", path, "--truth", truth, "--json")
    assert done.status == 0, done
    found = claims(done)
    assert set(found) == {"truth_most", "truth_some", "truth_least"}
    assert found["truth_most"]["expected"] == pytest.approx(60, abs=5)
    truth.write_text(text.replace("truth_some", "truth_none"))
    wrong = sonde("verify", "--file", path, "--truth", truth)
    assert wrong.status == 5 and "wrong" in wrong.stdout
    truth.write_text(text.replace("event cpu", "event cache-misses"))
    assert "unknown" in sonde("verify", "--file", path, "--truth", truth).stdout


@pytest.mark.skipif(not shutil.which("perf"), reason="no perf")
def test_another_tools_file(sonde, shares, tmp_path):
    data = tmp_path / "perf.data"
    truth = shares("perf", "record", "-q", "-e", "cpu-clock", "-F", "1997", "-o", data, "--")
    truth.write_text(truth.read_text().replace("bound 3%", "bound 5%"))
    done = sonde("verify", "--file", data, "--truth", truth, "--json")
    assert done.status == 0, done
    assert {row["verdict"] for row in claims(done).values()} == {"true"}


def test_a_folded_file_by_hand(sonde, tmp_path):
    """The truth need not come from sonde, nor the file."""
    folded, truth = tmp_path / "x.folded", tmp_path / "truth"
    folded.write_text("main;parse;lex 30\nmain;parse 30\nmain;print 40\n")
    truth.write_text("truth 1\nbound 1%\ntotal parse 60%\nself parse 30%\nwithin parse\n"
                     "total lex 50%\nsum 100\n")
    done = sonde("verify", "--file", folded, "--truth", truth, "--csv")
    assert done.status == 0 and done.stdout.splitlines()[0].startswith("kind,truth,measured")
    assert len(done.stdout.splitlines()) == 5


@pytest.mark.parametrize("options, status, sentence", [
    (["nonsense"], 2, "is no kind"), (["--file", "x"], 2, "go together"),
    (["--truth", "x"], 2, "go together"), (["--json", "--csv"], 2, "choose one"),
    (["--file", "/no/such", "--truth", "TRUTH"], 1, "/no/such"),
    (["--file", "TRUTH", "--truth", "/no/such"], 1, "/no/such"),
    (["--file", "BAD", "--truth", "BAD"], 1, "truth 1"),
    (["--file", "x", "--truth", "y", "cpu"], 2, "leave out"), (["--repeat", "0"], 2, "--repeat")])
def test_bad_options(sonde, tmp_path, options, status, sentence):
    good, bad = tmp_path / "truth", tmp_path / "bad"
    good.write_text("truth 1\nsum 3\n")
    bad.write_text("hello\n")
    words = [{"TRUTH": good, "BAD": bad}.get(word, word) for word in options]
    done = sonde("verify", *words)
    assert done.status == status and sentence in done.stderr, done
    assert len(done.stderr.splitlines()) == 1


def test_without_python(sonde, environment, tmp_path):
    """What cannot be measured is said, and is no failure."""
    done = sonde("verify", "-n", "1", "--json", "python lines", env={"PATH": str(tmp_path)})
    assert done.status == 0
    row = kinds(done)["python lines"]
    assert row["verdict"] == "not here" and "python3" in row["why"]
    assert json.loads(done.stdout)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing(sonde_path, environment, tmp_path, number):
    folder = tmp_path / "temporary"
    folder.mkdir()
    running = subprocess.Popen([sonde_path, "verify"], env={**environment, "TMPDIR": str(folder)},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    wait_until(lambda: [path for path in folder.iterdir() if list(path.iterdir())])
    running.send_signal(number)
    assert running.wait(30) == -number
    assert list(folder.iterdir()) == []
