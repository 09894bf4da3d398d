"""sonde monitor: what it says of processes, files and sockets is what the kernel and other tools say."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from runs import children_of, wait_until


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


def test_a_tree_by_name_shows_each_once_below_its_parent(monitor, started):
    """The child bears the name too, and uses more, so that it would stand first by itself."""
    mark = f"mark-{os.getpid()}-tree"
    shell = started(["/bin/sh", "-c", "/bin/sh -c 'while :; do :; done' $0 & wait", mark])
    wait_until(lambda: len(children_of(shell.pid)) == 1)
    child = int(children_of(shell.pid)[0])
    try:
        for _ in range(2):
            rows = rows_of(monitor("--tree", mark))
            assert [(row["depth"], row["pid"]) for row in rows] == [(0, shell.pid), (1, child)]
    finally:
        os.kill(child, signal.SIGKILL)


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


@pytest.mark.skipif(not shutil.which("lsof"), reason="no lsof")
def test_files_are_those_that_lsof_lists(sonde, started, tmp_path):
    """Descriptors, names and sizes of a process that holds some of each kind."""
    (tmp_path / "data").write_bytes(b"x" * 1000)
    process = started(["/usr/bin/python3", "-c", "import os, socket, sys, time\n"
                       "held = [open(sys.argv[1]), open(sys.argv[1], 'ab'), socket.socket(),\n"
                       "        socket.create_server(('127.0.0.1', 0)), *os.pipe(),\n"
                       "        os.open('/tmp', os.O_RDONLY), os.open('/dev/zero', os.O_RDWR)]\n"
                       "print(1, flush=True); time.sleep(600)", tmp_path / "data"])
    assert process.stdout.readline() == "1\n"
    listed = subprocess.run(["lsof", "-nP", "-a", "-p", str(process.pid), "-F", "ftn"],
                            capture_output=True, text=True).stdout
    theirs = dict(re.findall(r"^f(\d+)\n(?:a.*\n)?(?:l.*\n)?t(?:REG|DIR|CHR)\nn(.*)$", listed, re.M))
    numbers = set(re.findall(r"^f(\d+)$", listed, re.M))
    rows = {row["fd"]: row for row in rows_of(
        sonde("monitor", "--files", process.pid, "--json").json["sections"], "files")}
    assert numbers == {fd for fd in rows if fd.isdigit()} and len(theirs) >= 4
    for fd, name in theirs.items():
        assert rows[fd]["name"] == name
    assert {row["size"] for row in rows.values() if row["name"].endswith("/data")} == {1000}


@pytest.mark.skipif(not shutil.which("ss"), reason="no ss")
def test_connections_are_those_that_ss_lists(sonde):
    """Both ends of a connection, a datagram socket, and a listening one, with who holds them."""
    with socket.create_server(("127.0.0.1", 0)) as server, \
            socket.create_connection(server.getsockname()), server.accept()[0], \
            socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        listed = subprocess.run(["ss", "-tuanpH"], capture_output=True, text=True).stdout
        theirs = {(line.split()[0], line.split()[4], line.split()[5].replace("0.0.0.0:*", "*:*"))
                  for line in listed.splitlines() if f"pid={os.getpid()}," in line}
        rows = rows_of(sonde("monitor", "--sockets", os.getpid(), "--json").json["sections"],
                       "sockets")
        ours = {(row["protocol"], row["local"], row["remote"]) for row in rows
                if row["protocol"] in ("tcp", "udp")}
        assert theirs and ours == theirs
        assert {row["pid"] for row in rows} == {os.getpid()}
        states = sorted(row["state"] for row in rows if row["protocol"] == "tcp")
        assert states == ["ESTABLISHED", "ESTABLISHED", "LISTEN"]


SENDER = """
import socket, sys, threading, time
RATE = 4_000_000
server = socket.create_server(("127.0.0.1", 0))
out = socket.create_connection(server.getsockname())
into = server.accept()[0]
threading.Thread(target=lambda: [None for _ in iter(lambda: into.recv(1 << 20), b"")],
                 daemon=True).start()
sent, start = 0, time.monotonic()
print(1, flush=True)
while True:  # behind, it catches up
    due = int((time.monotonic() - start) * RATE) - sent
    out.sendall(bytes(due))
    sent += due
    time.sleep(0.02)
"""


def test_bytes_over_the_network(monitor, started):
    """Of both ends in one process, what it sends it receives; one without sockets has none."""
    sender = started(["/usr/bin/python3", "-c", SENDER])
    assert sender.stdout.readline() == "1\n"
    idle = started(["sleep", "60"])
    row, = rows_of(monitor("--interval", "1500ms", sender.pid))
    assert row["net_out_rate"] == pytest.approx(4e6, rel=0.4)
    assert row["net_in_rate"] == pytest.approx(4e6, rel=0.4)
    other, = rows_of(monitor(idle.pid))
    assert other["net_in_rate"] == other["net_out_rate"] == 0
    busiest = rows_of(monitor("--sort", "net"))[0]
    assert busiest["net_in_rate"] >= row["net_in_rate"] / 4


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


@pytest.fixture
def screen(sonde_path, environment, tmp_path):
    """screen(width, height, *options) -> tmux(*words) with the monitor in it; .shows(text) waits."""
    server = ["tmux", "-S", str(tmp_path / "tmux")]

    def tmux(*words):
        return subprocess.run([*server, *words], env={**environment, "LC_ALL": "C.UTF-8"},
                              capture_output=True, text=True, timeout=30).stdout

    def shows(text):
        wait_until(lambda: text in tmux("capture-pane", "-p"))

    def start(width, height, *options):
        tmux("-u", "new-session", "-d", "-x", str(width), "-y", str(height),
             f"{sonde_path} monitor --interval 500ms {' '.join(map(str, options))}; "
             "echo ended; sleep 60")
        tmux.shows = shows
        return tmux
    yield start
    tmux("kill-server")


def test_nice_and_cpus_are_set_on_the_screen(screen, started):
    """For a process, which is all its threads."""
    process = started(
        ["/usr/bin/python3", "-c", "import threading, time\n"
         "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\ntime.sleep(600)"])
    wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 2)
    threads = [int(tid) for tid in os.listdir(f"/proc/{process.pid}/task")]
    tmux = screen(120, 30, process.pid)
    tmux.shows(f"{process.pid}")
    tmux("send-keys", "n")
    tmux.shows("nice, from -20 to 19")
    tmux("send-keys", "7", "Enter")
    wait_until(lambda: all(os.getpriority(os.PRIO_PROCESS, tid) == 7 for tid in threads))
    tmux.shows("nice done")
    tmux("send-keys", "a")
    tmux.shows("CPUs that it may run on")
    tmux("send-keys", "0", "Enter")
    wait_until(lambda: all(os.sched_getaffinity(tid) == {0} for tid in threads))
    tmux("send-keys", "a")
    tmux.shows("CPUs that it may run on")
    tmux("send-keys", "9999", "Enter")
    tmux.shows("CPUs are numbers such as")
    tmux("send-keys", "n")
    tmux.shows("nice, from -20 to 19")
    tmux("send-keys", "70", "Enter")
    tmux.shows("nice is a number from -20 to 19")


@pytest.mark.parametrize("size", [(80, 24), (160, 50)], ids=str)
def test_on_a_screen(screen, started, size):
    """In tmux: it starts, shows itself, filters, shows a page, kills what it is told to, ends."""
    victim = started(["sleep", "4242"])
    tmux = screen(*size)
    tmux.shows("command (by cpu)")
    lines = tmux("capture-pane", "-p").splitlines()
    assert all(len(line) <= size[0] for line in lines)
    assert lines[1].startswith("cpu") and lines[2].startswith("memory")
    assert ("out/s" in lines[4]) == (size[0] >= 145)
    tmux("send-keys", "/")
    tmux.shows("show commands that hold:")
    tmux("send-keys", "sleep 4242", "Enter")
    wait_until(lambda: str(victim.pid) in tmux("capture-pane", "-p"))
    tmux("send-keys", "f")
    tmux.shows("Open files")
    tmux("send-keys", "x")
    tmux.shows("command (by cpu)")
    tmux("send-keys", "k")
    tmux.shows("signal to send")
    tmux("send-keys", "15", "Enter")
    assert victim.wait(20) == -signal.SIGTERM
    tmux("send-keys", "q")
    tmux.shows("ended")
