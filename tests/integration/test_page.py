"""The page: as a file and served, in a real Chromium through web/test, and what the file itself holds."""

import base64
import gzip
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import zlib

import pytest

from browser import find

pytestmark = pytest.mark.needs("graph")
WEIGHT = 200_000  # bytes of the application, compressed


@pytest.fixture(scope="module")
def pages(build, built, sonde_path, tmp_path_factory):
    """A folder of recordings and their pages."""
    folder = tmp_path_factory.mktemp("pages")
    for program in ("heap", "shares"):
        built(f"tests/targets/{program}")

    def sonde(*arguments):
        subprocess.run([sonde_path, *arguments], check=True, stdout=subprocess.DEVNULL)

    for name, recording in (("plain", "plain"), ("hostile", "hostile")):
        subprocess.run([build / "tests/samples/mixed_recording", folder / f"{recording}.sonde", name], check=True)
    sonde("run", "-q", "--heap", "-o", folder / "heap.sonde", "--html", folder / "heap.html", "--",
          build / "tests/targets/heap", "tree")
    sonde("run", "-q", "-o", folder / "other.sonde", "--", build / "tests/targets/shares")
    for name in ("plain", "hostile"):
        sonde("graph", "--kind", "page", "-o", folder / f"{name}.html", folder / f"{name}.sonde")
    sonde("graph", "--kind", "page", "--diff", folder / "other.sonde", "-o", folder / "diff.html",
          folder / "plain.sonde")
    return folder


def in_browser(root, build, sonde_path, pages, test, **more):
    if not find():
        pytest.skip("there is no chromium here")
    environment = {**os.environ, "PAGE_FOLDER": str(pages), "PAGE_SONDE": str(sonde_path),
                   "PAGE_BUILT": str(build / "src/render"), **more}
    done = subprocess.run([root / "tools/webtest", test], env=environment, text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    passed = re.findall(r"^ok \d+", done.stdout, re.M)
    assert done.returncode == 0 and passed, done.stdout


def test_file_page_in_chromium(root, build, sonde_path, pages):
    in_browser(root, build, sonde_path, pages, "page.browser.mjs")


def test_served_page_in_chromium(root, build, sonde_path, pages):
    in_browser(root, build, sonde_path, pages, "live.browser.ts")


def bench_batch(number):
    """A run of each of two variants; the last is an outlier."""
    return {"key": f"bench-{number}", "host": "b1",
            "bench": [{"name": name, "run": {"real": base + number / 100 + (number == 11), "cycles": 1000 + number}}
                      for name, base in (("old", 1.5), ("new", 1.2))]}


def test_jobs_in_chromium(root, build, sonde_path, sonde, serve, pages):
    """The page of a server: jobs made, compared and removed, and a recording that one has kept."""
    server = serve()
    for job, factor in ((2001, 1), (2002, 3)):
        server.ask("/api/jobs", {"id": job, "info": f"<img src=x onerror=alert(1)> {job}"})
        server.ask(f"/api/jobs/{job}/batches", {"key": "counts", "counts": [
            {"executable": "app", "function": name, "events": {"cpu": factor * value, "cache-misses": value // 1000}}
            for name, value in (("parse", 9000000), ("emit", 4000000), ("<b>scan</b>", 1000000))]})
    for number in range(12):
        server.ask("/api/jobs/2001/batches", bench_batch(number))
    pushed = sonde("push", "--server", server.url, "--job", "2001", "--keep", pages / "plain.sonde")
    assert pushed.status == 0, pushed
    in_browser(root, build, sonde_path, pages, "jobs.browser.mjs", PAGE_URL=server.url)


def document(path):
    """The head of a page's document, and its columns as lists: those that come later are in a part of their own."""
    packed = re.search(r'<script type="application/x-sonde" id="data">([^<]*)</script>', path.read_text())[1]
    first, rest = (zlib.decompress(base64.b64decode(part, validate=True), -15) for part in packed.split("\n"))
    assert first[:4] == b"SPD1"
    length = struct.unpack("<I", first[4:8])[0]
    head = json.loads(first[8:8 + length])
    parts, at, columns = {False: first, True: rest}, {False: 8 + length, True: 0}, {}
    for column in head["columns"]:
        later = column.get("later", False)
        columns[column["name"]] = rows(parts[later][at[later]:at[later] + column["bytes"]], column["coding"])
        assert len(columns[column["name"]]) == column["rows"]
        at[later] += column["bytes"]
    assert at == {False: len(first), True: len(rest)}
    return head, columns


def rows(data, coding):
    out, value, shift, last = [], 0, 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            if coding != "plain":
                value = value >> 1 ^ -(value & 1)
            last = last + value if coding == "delta" else value
            out.append(last)
            value = shift = 0
    return out


def test_sums_over_time_are_those_of_the_whole(pages):
    for name in ("plain", "heap", "hostile"):
        head, c = document(pages / f"{name}.html")
        for event, of in enumerate(head["events"]):
            whole = sum(v + n * of["period"] for e, n, v in zip(c["cell.event"], c["cell.count"], c["cell.value"])
                        if e == event)
            assert whole == of["value"]
            if event in c["time.event"]:
                timed = sum(v + n * of["period"] for e, n, v in
                            zip(c["time.event"], c["time.count"], c["time.value"]) if e == event)
                assert timed == of["value"]
        assert max(c["stack.frame"]) < len(c["frame.at"])
        assert max(c["step.symbol"]) < len(c["symbol.name"])


def test_a_long_recording_stays_small(built, sonde_path, tmp_path):
    """Rows over time are bounded, and what is folded together still adds up."""
    subprocess.run([built("bench/make_recording"), tmp_path / "r.sonde", "700000", "40000"], check=True)
    subprocess.run([sonde_path, "graph", "--kind", "page", "-o", tmp_path / "r.html", tmp_path / "r.sonde"],
                   check=True)
    head, c = document(tmp_path / "r.html")
    assert head["buckets"]["cut"] is True
    assert 10_000 < len(c["time.event"]) <= 400_000
    assert sum(c["time.count"]) == sum(c["cell.count"]) == 700_000
    assert any(stack & 1 for stack in c["time.stack"])


def test_policy_holds_the_script_and_the_style(pages):
    text = (pages / "hostile.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    script = re.search(r"<script>(.*)</script>\n</body>", text, re.S)[1]
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    for part in (script, style):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org/)", text)


def test_the_application_is_light(build):
    page = build / "src/render"
    size = sum(len(gzip.compress((page / name).read_bytes(), 9)) for name in ("page.js", "page.css"))
    assert size < WEIGHT


def test_pages_say_what_does_not_go_with_them(sonde, pages, tmp_path):
    for options, sentence in ((["--kind", "page", "-o", tmp_path / "x.svg"], "a page is HTML"),
                              (["--kind", "page", "-o", tmp_path / "x.html", "--pid", "1"], "leave --event"),
                              (["-o", tmp_path / "x.html", "--diff", pages / "other.sonde"], "goes with --kind page")):
        made = sonde("graph", pages / "plain.sonde", *options)
        assert made.status == 2 and sentence in made.stderr
        assert not list(tmp_path.iterdir())


def test_a_page_goes_anywhere(sonde, pages):
    made = sonde("graph", pages / "plain.sonde", "--kind", "page", "-o", "-")
    assert made.status == 0 and made.stdout.lstrip().lower().startswith("<!doctype html"), made.stdout[:100]


def test_a_page_that_cannot_be_written_does_not_spoil_the_recording(sonde, target, tmp_path):
    made = sonde("run", "-q", "-o", tmp_path / "r.sonde", "--html", tmp_path / "no/x.html", "--", target("short"))
    assert (tmp_path / "r.sonde").exists()
    assert made.status == 0 and "cannot create" in made.stderr


def test_registry_hosts_are_not_in_the_lockfile(root):
    lock = json.loads((root / "web/package-lock.json").read_text())
    assert all("resolved" not in package for package in lock["packages"].values())
    assert shutil.which("npm")
