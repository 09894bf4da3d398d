"""A tree of 17 Python processes is watched as people do: CPU and heap together, a process picked, its heap
snapshotted, the browser closed and opened again; and nothing of it holds the tree up, by its own clocks."""

import json
import os
import signal
import subprocess

import pytest

from browser import find
from live import Session
from runs import wait_until

pytestmark = [pytest.mark.needs("graph"), pytest.mark.alone]
PROCESSES = 17
PAUSE = 0.1  # s that no process may stand still beyond twice what the machine does to those nobody looks at

# Works, allocates and sleeps; notes the longest time that passed while it neither ran, nor waited for a CPU, nor
# slept as it had asked to: that somebody held it. schedstat has the first two. How it begins is left out.
PROGRAM = r"""
import json, os, sys, time
folder, processes = sys.argv[1], int(sys.argv[2])
def used():
    with open("/proc/thread-self/schedstat") as file:
        ran, waited, _ = file.read().split()
    return (int(ran) + int(waited)) / 1e9
def crunch(n):
    return sum(i * i for i in range(n))
def serve(number):
    kept, longest, rounds, asked = [], 0.0, 0, 0.01
    wall, own = time.monotonic(), used()
    while not os.path.exists(folder + "/enough"):
        crunch(3000)
        kept.append(bytearray(2048))
        if len(kept) > 400:
            del kept[:200]
        time.sleep(asked)
        rounds += 1
        now, mine = time.monotonic(), used()
        if rounds > 20:
            longest = max(longest, now - wall - (mine - own) - asked)
        wall, own = now, mine
    with open(f"{folder}/{os.getpid()}.json", "w") as file:
        json.dump({"longest": longest, "rounds": rounds}, file)
children = []
for number in range(1, processes):
    pid = os.fork()
    if not pid:
        serve(number)
        os._exit(0)
    children.append(pid)
serve(0)
for pid in children:
    os.waitpid(pid, 0)
"""


def clocks(folder):
    found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    assert len(found) == PROCESSES
    assert all(one["rounds"] > 40 for one in found), found
    return max(one["longest"] for one in found)


@pytest.fixture
def control(tmp_path):
    """The same tree beside it, that nobody looks at: what the machine itself holds up at the same time."""
    folder = tmp_path / "alone"
    folder.mkdir()
    process = subprocess.Popen(["/usr/bin/python3", program(tmp_path), folder, str(PROCESSES)], start_new_session=True)
    yield folder, process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def program(folder):
    script = folder / "serve.py"
    script.write_text(PROGRAM)
    return script


def test_a_tree_is_watched_and_never_held_up(root, build, sonde_path, sonde, tmp_path, control):
    if not find():
        pytest.skip("there is no chromium here")
    folder, path, errors = tmp_path / "under", tmp_path / "tree.sonde", tmp_path / "errors"
    folder.mkdir()
    with open(errors, "w", encoding="utf-8") as file:
        process = subprocess.Popen([sonde_path, "run", "--live", "--heap", "-o", path, "--", "/usr/bin/python3",
                                    program(tmp_path), folder, str(PROCESSES)], stderr=file, start_new_session=True)
    try:
        session = Session(process, errors, path)
        wait_until(lambda: session.ask("GET", "/api/status")[0] == 200 and
                   json.loads(session.get("/api/status"))["running"] == PROCESSES, seconds=60)
        watch(root, build, sonde_path, tmp_path, f"http://{session.host}:{session.port}/?token={session.token}")
        for one in (folder, control[0]):
            (one / "enough").touch()
        assert process.wait(60) == 0, errors.read_text()
        assert control[1].wait(60) == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    held, without = clocks(folder), clocks(control[0])
    print(f"longest time held up: {held * 1e3:.1f} ms watched, {without * 1e3:.1f} ms alone")
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
