"""speedscope itself, fetched for the test, opens what sonde writes; without a network it is skipped."""

import base64
import shutil
import subprocess
import tarfile

import pytest

from browser import Browser, find
from test_export import recording  # noqa: F401 (a fixture)


@pytest.fixture(scope="module")
def speedscope(tmp_path_factory):
    """The folder of speedscope's page."""
    folder = tmp_path_factory.mktemp("speedscope")
    if not find():
        pytest.skip("there is no chromium here")
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


def test_speedscope_opens_it(sonde, recording, speedscope, tmp_path):  # noqa: F811
    made = sonde("export", recording, "-f", "speedscope")
    assert made.status == 0, made
    data = base64.b64encode(made.stdout.encode()).decode()
    (tmp_path / "load.js").write_text(
        f"speedscope.loadFileFromBase64('sonde.speedscope.json', '{data}')")
    with Browser(tmp_path) as browser:
        page = browser.open(speedscope / "index.html",
                            query=f"#localProfilePath={tmp_path / 'load.js'}",
                            wait="document.querySelectorAll('canvas').length > 0")
        page.until("document.body.innerText.includes('main 42 of app 42')")
        complaints = [text for text in page.complaints() if "favicon" not in text]
    assert not complaints
