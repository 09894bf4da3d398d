"""speedscope itself, fetched for the test, opens what sonde writes; without a network it is skipped."""

import base64
import copy
import json
import shutil
import subprocess
import tarfile

import pytest

import speedscope_rules
from browser import Browser, find
from test_export import recording  # noqa: F401 (a fixture)


@pytest.fixture(scope="module")
def speedscope(tmp_path_factory):
    """The folder of speedscope's page."""
    folder = tmp_path_factory.mktemp("speedscope")
    if not shutil.which("npm"):
        pytest.skip("there is no npm here")
    try:
        subprocess.run(["npm", "pack", "speedscope"], cwd=folder, check=True, timeout=60,
                       capture_output=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip("speedscope cannot be fetched here")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extractall(folder)
    return folder / "package/dist/release"


@pytest.fixture
def file(sonde, recording):  # noqa: F811
    return sonde("export", recording, "-f", "speedscope").json


DAMAGES = {
    "schema": lambda file: file.update({"$schema": "https://example.org/"}),
    "no frames": lambda file: file["shared"].pop("frames"),
    "nameless frame": lambda file: file["shared"]["frames"][0].pop("name"),
    "unit": lambda file: file["profiles"][0].update(unit="samples"),
    "type": lambda file: file["profiles"][0].update(type="counted"),
    "weights": lambda file: file["profiles"][0]["weights"].append("1"),
    "stack": lambda file: file["profiles"][0]["samples"].insert(0, 7),
}


@pytest.mark.parametrize("event", ["cpu", "page-faults", "alloc_space"])
def test_rules_of_the_schema(sonde, recording, event):  # noqa: F811
    """Every event, and so every unit, makes a file that keeps the rules."""
    done = sonde("export", recording, "-f", "speedscope", "--event", event)
    assert done.status == 0, done
    speedscope_rules.check(done.json)


@pytest.mark.parametrize("damage", DAMAGES)
def test_rules_can_be_broken(file, damage):
    broken = copy.deepcopy(file)
    DAMAGES[damage](broken)
    with pytest.raises((AssertionError, KeyError, TypeError)):
        speedscope_rules.check(broken)


def test_published_schema(file, speedscope):
    """The schema that speedscope itself ships agrees, and would notice."""
    schema = json.loads((speedscope / "file-format-schema.json").read_text())
    assert speedscope_rules.faults(schema, schema, file) == []
    for damage in DAMAGES.values():
        broken = copy.deepcopy(file)
        damage(broken)
        assert speedscope_rules.faults(schema, schema, broken), damage


@pytest.mark.parametrize("name, file", [("speedscope", "sonde.speedscope.json"),
                                        ("perf-script", "sonde.perf.txt")])
def test_speedscope_opens_it(sonde, recording, speedscope, tmp_path, name, file):  # noqa: F811
    """Its own format, and what it reads of perf's: text as `perf script` prints it."""
    if not find():
        pytest.skip("there is no chromium here")
    made = sonde("export", recording, "-f", name)
    assert made.status == 0, made
    data = base64.b64encode(made.stdout.encode()).decode()
    (tmp_path / "load.js").write_text(f"speedscope.loadFileFromBase64('{file}', '{data}')")
    shown = {"speedscope": "main 42 of app 42", "perf-script": "main pid: 42 tid: 42 (1/3)"}[name]
    with Browser(tmp_path) as browser:
        page = browser.open(speedscope / "index.html",
                            query=f"#localProfilePath={tmp_path / 'load.js'}",
                            wait="document.querySelectorAll('canvas').length > 0")
        page.until(f"document.body.innerText.includes('{shown}')")
        complaints = [text for text in page.complaints() if "favicon" not in text]
    assert not complaints
