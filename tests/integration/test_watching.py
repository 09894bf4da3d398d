"""A tree of 17 Python processes is watched as people do: CPU and heap together, a process picked, its heap
snapshotted, the browser closed and opened again; and nothing of it holds the tree up, by its own clocks."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

from browser import find
from live import Session
from runs import wait_until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ROOT / "bench/programs"
sys.path.insert(0, str(ROOT / "bench"))
from held import read_rounds  # noqa: E402

pytestmark = [pytest.mark.needs("graph"), pytest.mark.alone]
PROCESSES = 17
PAUSE = 10  # ms that no process may stand still beyond twice what it does in a tree that nobody looks at


def longest(folder):
    """How long a process was held at most, in ms: it neither ran, nor waited for a CPU, nor slept as it had asked."""
    assert len(list(folder.glob("*.json"))) == PROCESSES
    held = [row[2] for row in read_rounds(folder)]
    assert len(held) > 20 * PROCESSES
    return max(held) / 1e6


@pytest.fixture
def control(tmp_path):
    """The same tree beside it, that nobody looks at: what the machine itself holds up at the same time."""
    folder = tmp_path / "alone"
    folder.mkdir()
    process = subprocess.Popen(tree(folder), start_new_session=True)
    yield folder, process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def witness(tmp_path):
    """Notes when the machine itself was away; where it may not, the comparison has to do."""
    folder = tmp_path / "under"
    folder.mkdir()
    process = subprocess.Popen(["/usr/bin/python3", PROGRAMS / "witness.py", folder], stderr=subprocess.DEVNULL,
                               start_new_session=True)
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def tree(folder):
    return ["/usr/bin/python3", PROGRAMS / "rounds.py", folder, str(PROCESSES)]


def test_a_tree_is_watched_and_never_held_up(root, build, sonde_path, sonde, tmp_path, control, witness):
    if not find():
        pytest.skip("there is no chromium here")
    folder, path, errors = tmp_path / "under", tmp_path / "tree.sonde", tmp_path / "errors"
    with open(errors, "w", encoding="utf-8") as file:
        process = subprocess.Popen([sonde_path, "run", "--live", "--heap", "-o", path, "--", *tree(folder)],
                                   stderr=file, start_new_session=True)
    try:
        session = Session(process, errors, path)
        wait_until(lambda: session.ask("GET", "/api/status")[0] == 200 and
                   json.loads(session.get("/api/status"))["running"] == PROCESSES, seconds=60)
        watch(root, build, sonde_path, tmp_path, f"http://{session.host}:{session.port}/?token={session.token}")
        for one in (folder, control[0]):
            (one / "enough").touch()
        assert process.wait(60) == 0, errors.read_text()
        assert control[1].wait(60) == 0
        witness.wait(60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    for path_away in folder.glob("*.away"):
        shutil.copy(path_away, control[0])
    held, without = longest(folder), longest(control[0])
    print(f"longest time held up: {held:.1f} ms watched, {without:.1f} ms alone")
    assert held < 2 * without + PAUSE
    # The same run as a file that needs no server.
    made = sonde("graph", "--kind", "page", "-o", tmp_path / "tree.html", path)
    assert made.status == 0, made
    watch(root, build, sonde_path, tmp_path, f"file://{tmp_path}/tree.html")


def watch(root, build, sonde_path, folder, address):
    environment = {**os.environ, "PAGE_FOLDER": str(folder), "PAGE_SONDE": str(sonde_path), "PAGE_URL": address,
                   "PAGE_BUILT": str(build / "src/render"), "PAGE_PROCESSES": str(PROCESSES)}
    done = subprocess.run([root / "tools/webtest", "watch.browser.mjs"], env=environment, text=True, timeout=240,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
