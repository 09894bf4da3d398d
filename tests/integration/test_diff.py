"""What changed between two profiles: real recordings of one program, and files with known sums."""

import csv
import io
import shutil
import subprocess
import xml.etree.ElementTree

import pytest

from browser import Browser, find

pytestmark = pytest.mark.needs("diff")
READY = "document.documentElement?.dataset.ready"


@pytest.fixture
def folded(tmp_path):
    def make(name, **stacks):
        path = tmp_path / name
        path.write_text("".join(f"{stack.replace('__', ';')} {count}\n"
                                for stack, count in stacks.items()))
        return path
    return make


@pytest.fixture
def two(folded):
    return (folded("a.folded", main__hot=600, main__cold=300, main__old=100),
            folded("b.folded", main__hot=900, main__cold=60, main__fresh=40))


def test_table_fits_and_marks(sonde, two):
    done = sonde("diff", *two)
    assert done.status == 0, done
    assert all(len(line) <= 80 for line in done.stdout.splitlines()), done
    assert "hot" in done.stdout and "+50.0%" in done.stdout
    assert [line.split()[-1] for line in done.stdout.splitlines()
            if " old " in line or " fresh " in line] == ["gone", "new"]


def test_json_and_csv_agree(sonde, two):
    rows = sonde("diff", *two, "--json").json["sections"]["functions"]["rows"]
    table = list(csv.DictReader(io.StringIO(sonde("diff", *two, "--csv").stdout)))
    assert [row["name"] for row in rows] == [row["name"] for row in table]
    assert {row["name"]: row["self_change"] for row in rows} == \
        {row["name"]: int(row["self_change"]) for row in table}
    assert {row["name"]: row["self_change"] for row in rows} == \
        {"hot": 300, "cold": -240, "old": -100, "fresh": 40, "main": 0}


def test_fail_above(sonde, two):
    done = sonde("diff", *two, "--fail-above", "5%")
    assert done.status == 3 and "hot grew by 30.0 points" in done.stderr, done
    assert sonde("diff", *two, "--fail-above", "29%").status == 0
    assert sonde("diff", two[0], two[0], "--fail-above", "0").status == 0


def test_same_program_twice_does_not_fail(sonde, target, tmp_path):
    for name in ("a", "b"):
        made = sonde("run", "-o", tmp_path / f"{name}.sonde", "--", target("shares"))
        assert made.status == 0, made
    done = sonde("diff", tmp_path / "a.sonde", tmp_path / "b.sonde", "--fail-above", "3%")
    assert done.status == 0, done


def test_refuses_other_rates(sonde, target, tmp_path):
    for name, rate in (("a", "99"), ("b", "499")):
        sonde("run", "-o", tmp_path / f"{name}.sonde", "--rate", rate, "--", target("shares"))
    done = sonde("diff", tmp_path / "a.sonde", tmp_path / "b.sonde")
    assert done.status == 1 and "a sample every" in done.stderr and "--anyway" in done.stderr, done
    assert sonde("diff", tmp_path / "a.sonde", tmp_path / "b.sonde", "--anyway").status == 0


def test_svg(sonde, two, tmp_path):
    assert sonde("diff", *two, "-o", tmp_path / "d.svg").status == 0
    root = xml.etree.ElementTree.parse(tmp_path / "d.svg").getroot()
    kinds = {g.find("{*}title").text.split("\n")[0]: g.get("class").split()[1]
             for g in root.iter("{http://www.w3.org/2000/svg}g")
             if "f" in g.get("class", "").split()}
    assert kinds["fresh"] == "m4" and kinds["old"] == "l4" and kinds["main"] == "m0", kinds
    assert kinds["hot"] == "m3" and kinds["cold"] == "l4", kinds
    if shutil.which("xmllint"):
        subprocess.run(["xmllint", "--noout", "--nonet", tmp_path / "d.svg"], check=True)


def test_page(sonde, two, tmp_path):
    if not find():
        pytest.skip("there is no chromium here")
    assert sonde("diff", *two, "-o", tmp_path / "d.html").status == 0
    with Browser(tmp_path) as browser:
        page = browser.open(tmp_path / "d.html", wait=READY)
        said = page.value("Array.from({length: boxes.n}, (_, i) => "
                          "[nameOf(boxes.symbol[i]), changeOf(i), change(i)])")
        complaints = page.complaints()
    assert not complaints
    assert sorted(map(tuple, said)) == sorted([
        ("all", 0, "+0.0 %"), ("main", 0, "+0.0 %"), ("hot", 3, "+50.0 %"),
        ("cold", -4, "−80.0 %"), ("old", -4, "gone"), ("fresh", 4, "new")]), said
