"""Programs without symbols: their functions are still told apart, by where they begin."""

import subprocess

import pytest

SHARES = {"most": 60, "some": 30, "least": 10}


@pytest.fixture
def stripped(target, tmp_path):
    """A program without its symbols, and where its functions were."""
    whole, path = target("shares"), tmp_path / "bare"
    subprocess.run(["strip", "-o", path, whole], check=True)
    lines = subprocess.run(["nm", whole], capture_output=True, text=True, check=True).stdout.split("\n")
    starts = {words[2]: int(words[0], 16) for words in map(str.split, lines) if len(words) == 3}
    return path, {name: f"[bare+{starts[name]:#x}]" for name in SHARES}


def test_functions_have_their_places(harness, stripped):
    path, places = stripped
    report = harness(path, 2000000, 50000).report()
    for name, percent in SHARES.items():
        assert abs(report.share(places[name]) - percent) < 4, (name, report.rows("functions")[:6])


def test_two_builds_are_not_compared_by_places(harness, stripped, sonde, tmp_path):
    """The same addresses in another program are other functions."""
    path, places = stripped
    a = harness(path, 300000, 50000, output="a.sonde").record()
    b = harness(path, 300000, 50000, output="b.sonde").record()
    rows = sonde("diff", a.path, b.path, "--json", "-n", "0").json["sections"]["functions"]["rows"]
    names = {row["name"] for row in rows}
    assert "[bare]" in names and not names & set(places.values()), names


def test_the_names_come_back(harness, stripped, target, sonde, recording, tmp_path):
    """With the file that has them at hand."""
    path, places = stripped
    made = harness(path, 300000, 50000).record()
    root = tmp_path / "root"
    there = root / str(path).lstrip("/")
    there.parent.mkdir(parents=True)
    there.write_bytes(open(target("shares"), "rb").read())
    assert sonde("symbolize", made.path, "--sysroot", root).status == 0
    names = {row["name"] for row in recording(made.path).report("-n", "0").rows("functions")}
    assert set(SHARES) <= names and not names & set(places.values()), names
