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


PROGRAM = """
#include <time.h>
{above}
namespace work {{
volatile unsigned long sum;
// In a register and aligned: how long a round takes would depend on where a build puts it.
#define ROUNDS(n) unsigned long s = sum; while (n--) {{ s = s * 31 + 7; asm("" : "+r"(s)); }} sum = s
__attribute__((noinline, aligned(64))) void steady(int n) {{ ROUNDS(n); }}
{functions}
}}
int main() {{
    timespec t;
    int size = 1; // rounds of changing length: none runs in step with the clock that samples
    do {{
        size = size * 421 % 1009;
        work::steady(1200 * size);
        {calls}
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    }} while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < {milliseconds});
}}
"""
BURN = "__attribute__((noinline, aligned(64))) void {}(int n) {{ ROUNDS(n); }}"


@pytest.fixture(scope="module")
def builds(sonde_path, tmp_path_factory):
    """One program in two builds, in other folders, at other addresses, with its lines moved: what
    `before` did is gone, `after` is new, and the second ran twice as long."""
    if not shutil.which("c++"):
        pytest.skip("there is no compiler here")
    folder, made = tmp_path_factory.mktemp("builds"), []
    for name, gone, above, flag, milliseconds in (
            ("one", "before", "", "-pie", 500),
            ("two", "after", "// moved\n// down\nint spare[4096] = {1};", "-no-pie", 1000)):
        place = folder / name / "bin"
        place.mkdir(parents=True)
        (place / "app.cc").write_text(PROGRAM.format(
            above=above, functions=BURN.format(gone), calls=f"work::{gone}(600 * size);",
            milliseconds=milliseconds))
        subprocess.run(["c++", "-g", "-O1", flag, "-o", place / "app", place / "app.cc"], check=True)
        made.append(folder / f"{name}.sonde")
        subprocess.run([sonde_path, "run", "-o", made[-1], "--", place / "app"], check=True,
                       capture_output=True, timeout=120,
                       env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "SONDE_CONF": ""})
    return made


def rows_of(sonde, builds, kind, *options):
    done = sonde("diff", *builds, "--json", *options)
    assert done.status == 0, done
    return [row for row in done.json["sections"][kind]["rows"] if row.get("module") == "app"]


def test_two_builds_by_function(sonde, builds):
    rows = {row["name"]: row for row in rows_of(sonde, builds, "functions")}
    assert rows["work::before(int)"]["state"] == "gone"
    assert rows["work::after(int)"]["state"] == "new"
    steady = rows["work::steady(int)"]
    assert not steady.get("state") and not rows["main"].get("state")
    # Two thirds of either run, however long it was: durations differ, so shares are compared.
    assert abs(steady["self_points"]) < 10, steady
    assert steady["samples_before"] > 50 and steady["samples_after"] > 100, steady


def test_builds_of_two_names(sonde, target, tmp_path):
    """app-1.0 and app-1.1 are one program; what a library has in both stays where it is."""
    for name in ("app-1.0", "app-1.1"):
        shutil.copy(target("shares"), tmp_path / name)
        assert sonde("run", "-o", tmp_path / f"{name}.sonde", "--", tmp_path / name).status == 0
    done = sonde("diff", tmp_path / "app-1.0.sonde", tmp_path / "app-1.1.sonde", "--json")
    assert done.status == 0, done
    rows = {row["name"]: row for row in done.json["sections"]["functions"]["rows"]}
    for name in ("main", "most", "some", "least"):
        assert not rows[name].get("state"), rows[name]
        assert rows[name]["module"] == "app-1.0"
    said = sonde("diff", tmp_path / "app-1.0.sonde", tmp_path / "app-1.1.sonde").stdout
    assert "app-1.0 and app-1.1 are taken for two builds of one program" in said


def test_two_builds_by_line_and_stack(sonde, builds):
    lines = [row for row in rows_of(sonde, builds, "lines", "--lines") if "steady" in row["name"]]
    assert lines and all(not row.get("state") for row in lines), lines
    stacks = {row["name"].rpartition(";main;")[2]: row.get("state") or "both"
              for row in rows_of(sonde, builds, "stacks", "--stacks")}
    assert {name: stacks.get(name) for name in
            ("work::steady(int)", "work::before(int)", "work::after(int)")} == \
        {"work::steady(int)": "both", "work::before(int)": "gone", "work::after(int)": "new"}


def test_measures(sonde, builds):
    """As recorded the second has twice as much; per second, and as shares, they are alike."""
    change = {}
    for per in ("run", "second", "share"):
        rows = {row["name"]: row for row in rows_of(sonde, builds, "functions", "--per", per)}
        change[per] = rows["work::steady(int)"]["self_relative"]
    assert change["run"] > 60 and abs(change["share"]) < 20, change
    automatic = sonde("diff", *builds).stdout
    assert "share" in automatic, automatic


def test_refuses_other_events_and_modes(sonde, builds, folded, tmp_path):
    done = sonde("diff", builds[0], folded("x.folded", main__hot=5))
    assert done.status == 1 and "counts cpu" in done.stderr and "counts samples" in done.stderr
    heap = sonde("diff", builds[0], builds[1], "--event", "heap:live")
    assert heap.status == 1 and not heap.stdout, heap
    assert f"{builds[0]}: no event" in heap.stderr, heap
    anyway = sonde("diff", builds[0], folded("x.folded", main__hot=5), "--anyway")
    assert anyway.status == 0 and "hardly compare" in anyway.stdout, anyway


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


def test_heaps_that_were_recorded_otherwise_do_not_compare(sonde, target, tmp_path):
    ways = {"exact": ["--heap"], "coarse": ["--heap=sampled", "--heap-interval", "4K"],
            "fine": ["--heap=sampled", "--heap-interval", "1K"]}
    paths = {way: tmp_path / f"{way}.sonde" for way in ways}
    for way, options in ways.items():
        assert sonde("run", *options, "-o", paths[way], "--", target("heap"), "simple").status == 0
    for way, words in (("exact", "every allocation and"), ("fine", "every 1.0 KiB")):
        two = paths[way], paths["coarse"], "-e", "heap:allocated"
        done = sonde("diff", *two)
        assert done.status == 1 and words in done.stderr and "4.0 KiB" in done.stderr, done
        assert sonde("diff", *two, "--anyway").status == 0
    assert sonde("diff", paths["exact"], paths["exact"], "-e", "heap:allocated").status == 0
