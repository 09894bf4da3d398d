"""sonde monitor: what it says of processes, files and sockets is what the kernel and other tools say."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

from runs import wait_until


@pytest.fixture
def monitor(sonde):
    """monitor(*options) -> the JSON view of one look."""
    def look(*options, status=0):
        done = sonde("monitor", "--once", "--json", "--interval", "300ms", *options)
        assert done.status == status, done
        return done.json["sections"]
    return look


def rows_of(sections, table="processes"):
    return sections[table]["rows"]


def test_all_processes_are_listed(monitor):
    """As many as /proc has, give or take those that come and go."""
    found = {row["pid"] for row in rows_of(monitor("--kernel"))}
    there = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    assert os.getpid() in found
    assert len(found & there) > 0.9 * len(there)


def test_figures_agree_with_ps(monitor, started, target):
    process = started([target("shares"), 200000000])
    time.sleep(0.3)
    row, = rows_of(monitor(process.pid))
    said = subprocess.run(["ps", "-o", "ppid=,nlwp=,ni=,rss=,comm=", "-p", str(process.pid)],
                          capture_output=True, text=True, check=True).stdout.split()
    assert [row["parent_pid"], row["threads"], int(row["nice"]), row["name"]] == \
        [int(said[0]), int(said[1]), int(said[2]), said[4]]
    assert abs(row["rss"] / 1024 - int(said[3])) < 1024
    assert row["cpu_percent"] > 1 and row["state"] in "RS"


def test_a_tree_of_a_process(monitor, started):
    shell = started(["/bin/sh", "-c", "sleep 60 & sleep 61 & wait"])
    wait_until(lambda: len(children_of(shell.pid)) == 2)
    rows = rows_of(monitor("--tree", shell.pid))
    assert [(row["depth"], row["name"]) for row in rows] == [(0, "sh"), (1, "sleep"), (1, "sleep")]
    named = rows_of(monitor("--tree", "sleep 61"))
    assert {row["command"].split(" ", 1)[1] for row in named} >= {"sleep 61"}


def children_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_threads(monitor, started, target):
    process = started([target("threads"), 100000000])
    wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) > 3)
    names = {row["name"] for row in rows_of(monitor("--threads", process.pid))}
    assert {"heavy", "medium", "light"} <= names


def test_the_busy_port(sonde):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        done = sonde("monitor", "--port", port, "--json")
        row, = rows_of(done.json["sections"], "sockets")
        assert (row["pid"], row["state"], row["local"]) == (os.getpid(), "LISTEN",
                                                            f"127.0.0.1:{port}")
        listed = subprocess.run(["ss", "-ltnH"], capture_output=True, text=True).stdout
        assert f"127.0.0.1:{port}" in listed
    refused = sonde("monitor", "--port", port)
    assert refused.status == 1 and f"nobody holds port {port}" in refused.stderr


def test_sockets_are_those_that_ss_lists(sonde):
    listed = subprocess.run(["ss", "-ltnH"], capture_output=True, text=True).stdout
    wanted = {line.split()[3].rsplit(":", 1)[1] for line in listed.splitlines()}
    rows = rows_of(sonde("monitor", "--sockets", "--listening", "--json").json["sections"],
                   "sockets")
    found = {str(row["port"]) for row in rows if row["protocol"].startswith("tcp")}
    assert wanted - found == set()


def test_open_files(sonde, tmp_path):
    path = tmp_path / "held open"
    with open(path, "w") as held, socket.socketpair()[0]:
        held.write("x" * 100)
        held.flush()
        rows = rows_of(sonde("monitor", "--files", os.getpid(), "--json").json["sections"], "files")
        mine, = (row for row in rows if row["name"] == str(path))
        assert (mine["fd"], mine["access"], mine["kind"], mine["size"]) == \
            (str(held.fileno()), "w", "file", 100)
        known = {row["fd"] for row in rows}
        assert all(str(fd) in known for fd in (0, 1, 2))
        assert {"cwd", "exe", "root"} <= {row["fd"] for row in rows}


def test_a_command_is_watched_to_its_end(sonde):
    done = sonde("monitor", "--once", "--json", "--interval", "200ms", "--",
                 sys.executable, "-c", "import time; time.sleep(0.6); exit(7)")
    assert done.status == 7
    row = rows_of(json.loads(done.stdout)["sections"])[0]
    assert "time.sleep" in row["command"]


def test_curves_are_recorded(sonde, started, target, tmp_path):
    process = started([target("shares"), 200000000])
    path = tmp_path / "curves.sonde"
    done = sonde("monitor", "--record", path, "--interval", "100ms", "--duration", "600ms",
                 process.pid)
    assert done.status == 0 and path.stat().st_mode & 0o777 == 0o600
    shown = sonde("report", path, "--processes", "--json")
    assert str(process.pid) in shown.stdout + shown.stderr or shown.status == 1
    assert sonde("monitor", "--record", path, process.pid).status == 1  # it is there already


@pytest.mark.parametrize("options, status, sentence", [
    (["2147483646"], 1, "there is no process"),
    (["no-such-program-at-all"], 1, "no process has"),
    (["--files", "--sockets"], 2, "one table at a time"),
    (["--json", "--csv"], 2, "choose one"),
    (["one", "two"], 2, "after --"),
    (["--port", "70000"], 2, "--port"),
    (["--", "/no/such/program"], 127, "cannot run"),
])
def test_what_cannot_be_done_is_said(sonde, options, status, sentence):
    done = sonde("monitor", "--once", *options)
    assert done.status == status and sentence in done.stderr, done


def test_files_of_others(nobody):
    done = nobody("monitor", "--files", "1")
    assert done.status == 1 and "process 1" in done.stderr, done


@pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=str)
def test_on_a_screen(sonde_path, environment, started, tmp_path, size):
    """In tmux: it starts, shows itself, filters, shows a page, kills what it is told to, ends."""
    victim = started(["sleep", "4242"])
    server = ["tmux", "-S", str(tmp_path / "tmux")]

    def tmux(*words):
        return subprocess.run([*server, *words], env={**environment, "LC_ALL": "C.UTF-8"},
                              capture_output=True, text=True, timeout=30).stdout

    def shows(text):
        wait_until(lambda: text in tmux("capture-pane", "-p"))

    tmux("-u", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]),
         f"{sonde_path} monitor --interval 500ms; echo ended; sleep 60")
    try:
        shows("command (by cpu)")
        lines = tmux("capture-pane", "-p").splitlines()
        assert all(len(line) <= size[0] for line in lines)
        assert lines[1].startswith("cpu") and lines[2].startswith("memory")
        tmux("send-keys", "/")
        shows("show commands that hold:")
        tmux("send-keys", "sleep 4242", "Enter")
        wait_until(lambda: str(victim.pid) in tmux("capture-pane", "-p"))
        tmux("send-keys", "f")
        shows("Open files")
        tmux("send-keys", "x")
        shows("command (by cpu)")
        tmux("send-keys", "k")
        shows("signal to send")
        tmux("send-keys", "15", "Enter")
        assert victim.wait(20) == -signal.SIGTERM
        tmux("send-keys", "q")
        shows("ended")
    finally:
        tmux("kill-server")
