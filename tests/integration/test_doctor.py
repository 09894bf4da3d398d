"""`sonde doctor`: what it finds agrees with what then happens."""

import pytest

from runs import run


def findings(done):
    return {row["subject"]: row for row in done.json["sections"]["findings"]["rows"]}


def test_the_machine(sonde):
    found = findings(sonde("doctor", "--json"))
    counted = sonde("stat", "--json", "-o", "-", "-e", "cycles", "--", "true").json
    works = counted["sections"]["events"]["rows"][0]["value"] is not None
    assert (found["PMU"]["state"] == "well") == works
    for row in found.values():
        assert row["why"]
        assert row["state"] == "well" or (row["instead"] and row["cure"]), row


def test_a_filter_is_found(sonde_path, environment, target):
    found = findings(run([target("deny"), "perf", sonde_path, "doctor", "--json"],
                         env=environment))
    assert found["perf events"]["state"] == "missing" and found["seccomp"]["state"] == "limited"


def test_an_ordinary_user(nobody):
    found = findings(nobody("doctor", "--json"))
    assert found["control groups"]["state"] == "limited"
    assert nobody("run", "--cpu-limit", "1", "--", "true").status == 125


def test_programs(sonde, target, tmp_path):
    good = findings(sonde("doctor", "--json", target("shares")))
    assert good["debug information"]["state"] == good["stacks"]["state"] == "well"
    assert len(good["build-id"]["why"]) == 40 and good["linking"]["state"] == "well"
    stripped = tmp_path / "stripped"
    assert run(["strip", "--remove-section=.note.gnu.build-id", "-o", stripped,
                target("shares")]).status == 0
    stripped.chmod(0o4755)
    found = findings(sonde("doctor", "--json", stripped))
    assert found["debug information"]["state"] == "limited"
    assert found["build-id"]["why"] == "none" and found["setuid"]["state"] == "limited"
    python = findings(sonde("doctor", "--json", "/usr/bin/python3"))
    assert "Python" in python


def test_a_process(sonde, started, target):
    process = started([target("sleeper")])
    found = findings(sonde("doctor", "--json", process.pid))
    assert str(process.pid) in found["process"]["why"]
    assert found["program"]["why"] == str(target("sleeper"))


@pytest.mark.parametrize("target_text, status", [
    ("/no/such", 1), ("no-such-program", 1), ("/etc/passwd", 1), ("/", 1), ("999999999", 1),
    ("0", 2), ("-1", 2)])
def test_what_is_not_there(sonde, target_text, status):
    done = sonde("doctor", target_text)
    assert done.status == status and len(done.stderr.splitlines()) == 1, done


def test_damaged_programs(sonde, target, tmp_path):
    whole = target("shares").read_bytes()
    for cut in (10, 64, 100, 1000, 4096, len(whole) - 100):
        path = tmp_path / f"cut{cut}"
        path.write_bytes(whole[:cut])
        assert sonde("doctor", path).status in (0, 1)
    for at in range(16, 64):
        path = tmp_path / "flipped"
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xff]) + whole[at + 1:])
        assert sonde("doctor", path).status in (0, 1)
