"""Flame graphs of a recording with known shape: as files, and in a real browser."""

import re
import shutil
import stat
import subprocess
import time
import xml.etree.ElementTree

import pytest

from browser import Browser, find

pytestmark = pytest.mark.needs("graph")
READY = "document.documentElement?.dataset.ready"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def recordings(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for name in ("plain", "hostile"):
        subprocess.run([build / "tests/samples/mixed_recording", folder / f"{name}.sonde", name], check=True)
    return folder


@pytest.fixture
def graph(sonde, recordings, tmp_path):
    """graph("plain", "x.svg", ...options) -> path"""
    def draw(recording, name, *options):
        made = sonde("graph", recordings / f"{recording}.sonde", "-o", tmp_path / name, *options)
        assert (made.status, made.stdout, made.stderr) == (0, "", "")
        return tmp_path / name
    return draw


@pytest.fixture
def browser(tmp_path):
    if not find():
        pytest.skip("there is no chromium here")
    with Browser(tmp_path) as started:
        yield started


def boxes(path):
    """(name, details, depth) of every box of an SVG."""
    root = xml.etree.ElementTree.parse(path).getroot()
    frames = [g for g in root.iter(SVG + "g") if "f" in g.get("class", "").split()]
    return [(*g.find(SVG + "title").text.split("\n", 1), int(g.get("data-d"))) for g in frames]


@pytest.mark.parametrize("recording", ["plain", "hostile"])
@pytest.mark.parametrize("kind", ["flame", "icicle", "flamechart"])
def test_svg_is_well_formed(graph, recording, kind):
    path = graph(recording, "x.svg", "--kind", kind, "--event", "wall", "--title", "a<b>&\"'\1]]>")
    if not shutil.which("xmllint"):
        pytest.skip("there is no xmllint here")
    done = subprocess.run(["xmllint", "--noout", "--nonet", path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_svg_tells_the_truth(graph):
    drawn = boxes(graph("plain", "x.svg"))
    shares = {}
    for name, details, _ in drawn:
        shares.setdefault(name, []).append(details.split("\n")[0])
    assert shares["all"] == ["2.00 s (100.0 %), self 0 ns, 2,000 samples"]
    # 71 % of the samples come from handle_request, in one place.
    assert shares["handle_request"] == ["1.42 s (71.0 %), self 0 ns, 1,420 samples"]
    # Recursion: render_block on render_block, as two boxes.
    assert len(shares["render_block"]) == 2
    # An inlined function is a box on the one it was put into.
    at = next(i for i, box in enumerate(drawn) if box[0] == "sqlite3GetVarint")
    assert drawn[at - 1][0] == "sqlite3BtreeMovetoUnpacked" and "inlined" in drawn[at][1]


def test_filters(graph):
    names = {box[0] for box in boxes(graph("plain", "x.svg", "--function", "^query$"))}
    assert "query" in names and "render" not in names
    names = {box[0] for box in boxes(graph("plain", "y.svg", "--pid", "4200"))}
    assert "clone3" in names and "handle_request" not in names
    levels = [box[0] for box in boxes(graph("plain", "z.svg", "--by-process", "--by-thread"))
              if box[2] in (1, 2)]
    assert set(levels) == {"shop (4100)", "http (4100)", "http (4101)", "packer (4200)",
                           "worker (4200)", "worker (4201)"}
    half = boxes(graph("plain", "h.svg", "--to", "1s"))
    assert half[0][1].startswith("999.0 ms (100.0 %)")


def test_standard_output_and_formats(sonde, recordings):
    page = sonde("graph", recordings / "plain.sonde", "-o", "-", "--format", "html")
    assert page.status == 0 and page.stdout.startswith("<!DOCTYPE html>")
    unclear = sonde("graph", recordings / "plain.sonde", "-o", "x.png")
    assert unclear.status == 2 and "end it in .svg or .html" in unclear.stderr
    missing = sonde("graph", recordings / "plain.sonde")
    assert missing.status == 2 and "say where to write" in missing.stderr


def test_files_of_other_tools(sonde, tmp_path):
    folded = tmp_path / "x.folded"
    folded.write_text("main;work;leaf 3\nmain;idle 1\n")
    made = sonde("graph", folded, "-o", tmp_path / "x.svg")
    assert (made.status, made.stderr) == (0, "")
    shares = {name: details for name, details, _ in boxes(tmp_path / "x.svg")}
    assert shares["work"].startswith("3 (75.0 %), self 0, 3 samples")
    chart = sonde("graph", folded, "-o", tmp_path / "y.svg", "--kind", "flamechart")
    assert chart.status == 1 and "does not say when its samples were taken" in chart.stderr


def test_only_plain_files_are_replaced(sonde, recordings, tmp_path):
    recording = recordings / "plain.sonde"
    victim, link = tmp_path / "victim", tmp_path / "link.svg"
    victim.write_text("mine")
    link.symlink_to(victim)
    refused = sonde("graph", recording, "-o", link)
    assert refused.status == 1 and "symbolic link" in refused.stderr
    assert victim.read_text() == "mine"
    plain = tmp_path / "old.svg"
    plain.write_text("x" * 1000000)
    plain.chmod(0o640)
    assert sonde("graph", recording, "-o", plain).status == 0
    assert plain.read_text().endswith("</svg>\n") and stat.S_IMODE(plain.stat().st_mode) == 0o640


def test_unknown_choices_say_what_there_is(sonde, recordings, tmp_path):
    recording, out = recordings / "plain.sonde", tmp_path / "x.svg"
    event = sonde("graph", recording, "-o", out, "--event", "cycles")
    assert event.status == 1 and "its events: cpu, off-cpu:lock" in event.stderr
    pid = sonde("graph", recording, "-o", out, "--pid", "1")
    assert pid.status == 1 and "4100 (shop), 4200 (packer)" in pid.stderr
    assert not out.exists()


def test_page_asks_for_nothing(graph):
    page = graph("hostile", "x.html").read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy and "http" not in policy
    assert page.count("<script") == 2 and page.count("</script") == 2
    assert page.count("<img") == 0


def test_page_in_a_browser(graph, browser):
    page = browser.open(graph("plain", "x.html"), wait=READY)
    drawn = int(page.value(READY))
    assert drawn == len(boxes(graph("plain", "all.svg", "--min", "0")))
    assert page.value("document.querySelector('h1').textContent") == "shop serve --port 8080"
    facts = page.value("document.getElementById('facts').textContent")
    assert "2,000 samples" in facts and "3 lost" in facts and "0.45 % of one CPU" in facts
    assert "Python" in page.value("document.getElementById('legend').textContent")

    # Something is painted: the root at the bottom is not the paper's colour.
    painted = page.value(
        "(() => { const c = document.getElementById('graph');"
        " const p = c.getContext('2d').getImageData(200, c.height - 15, 1, 1).data;"
        " const q = c.getContext('2d').getImageData(200, 5, 1, 1).data;"
        " return [...p].join() !== [...q].join(); })()")
    assert painted

    page.key("/", "/")
    page.type("^(query|render)$")
    assert page.value("document.getElementById('matched').textContent") == "44.5 % in 2 frames"
    page.key("Escape")
    assert page.value("document.getElementById('matched').textContent") == ""
    page.key("/", "/")
    page.type("serve(int")
    assert "taken literally" in page.value("document.getElementById('matched').textContent")
    page.key("Escape")

    # The fifth row: a click zooms, the details and the path follow.
    box = page.value("(() => { const r = document.getElementById('graph').getBoundingClientRect();"
                     " return [r.left + 100, r.bottom - 90]; })()")
    page.hover(*box)
    assert "handle_request" in page.value("document.getElementById('tip').textContent")
    page.click(*box)
    time.sleep(0.4)
    assert page.value("document.querySelector('#panel h2').textContent") == "handle_request"
    assert page.value("document.getElementById('crumbs').textContent") == \
        "all›_start›main›serve›handle_request"
    assert not page.value("document.getElementById('reset').disabled")
    page.key("ArrowUp")
    assert page.value("document.querySelector('#panel h2').textContent") == "parse_body"
    assert "26.5 %" in page.value("document.getElementById('live').textContent")
    page.key("r", "r")
    time.sleep(0.4)
    assert page.value("document.getElementById('reset').disabled")
    assert page.complaints() == []
    assert [url for url in page.requests() if not url.startswith("file:")] == []


@pytest.mark.parametrize("name", ["x.html", "x.svg"])
def test_names_never_run(graph, browser, name):
    path = graph("hostile", name, "--event", "wall", "--by-process", "--by-thread")
    ready = READY if name.endswith("html") else "document.readyState === 'complete'"
    page = browser.open(path, wait=ready)
    if name.endswith("html"):
        page.value("for (let i = 0; i < boxes.n; i++) { choose(i); showTip(i, 5, 5); zoomTo(i); }")
        page.key("/", "/")
        page.type("<")
        page.key("Enter")
    assert page.value("document.querySelectorAll('img, iframe, object').length") == 0
    assert page.value("document.querySelectorAll('script').length") == 1
    assert page.value("document.documentElement.dataset.broken === undefined")
    assert page.dialogs() == []
    assert page.complaints() == []
    assert len(page.requests()) == 1
    text = page.value("document.documentElement.textContent")
    assert "</script><img src=x onerror=alert(1)>" in text


def test_chart_in_a_browser(graph, browser):
    page = browser.open(graph("plain", "x.html", "--kind", "flamechart"), wait=READY)
    assert page.value("document.getElementById('crumbs').textContent") == "all threads"
    assert page.value("document.getElementById('direction').hidden")
    page.key("ArrowDown")
    assert page.value("document.querySelector('#panel h2').textContent").startswith("shop (4100)")
    assert page.complaints() == []


def test_svg_in_a_browser(graph, browser):
    page = browser.open(graph("plain", "x.svg"))
    page.key("/", "/")
    page.type("^(query|render)$")
    assert page.value("document.getElementById('details').textContent") == \
        "2 boxes match: 44.50 % of the graph"
    page.key("Escape")
    x, y = page.value("(() => { const r = [...document.querySelectorAll('.f')].find("
                      "(g) => g.querySelector('title').textContent.startsWith('query'))"
                      ".getBoundingClientRect(); return [r.left + 9, r.top + 5]; })()")
    page.click(x, y)
    wide = page.value("[...document.querySelectorAll('.f')].filter((g) => g.style.display !== "
                      "'none').map((g) => Number(g.querySelector('rect').getAttribute('width')))")
    assert max(wide) == pytest.approx(1176)
    assert len(wide) < len(boxes(graph("plain", "again.svg")))
    page.key("Escape")
    assert page.complaints() == []
