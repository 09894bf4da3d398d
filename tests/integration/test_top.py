"""`sonde top` on a terminal of tmux's and without one: what it shows, and what its keys do."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from runs import wait_until

WORK = r"work  \[grows\]"  # site_work, or what is inlined there once debug information has been read


class Terminal:
    """A window of a tmux server of its own."""

    def __init__(self, folder, environment, width=80, height=24):
        self.socket = str(folder / "tmux")
        self.environment = environment
        self.size = (width, height)

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, "-f", "/dev/null", *map(str, words)],
                              env=self.environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.stdout

    def start(self, *command, term="screen"):
        words = " ".join(f"'{word}'" for word in command)
        self.tmux("new-session", "-d", "-x", self.size[0], "-y", self.size[1],
                  f"TERM={term} {words}; echo status $?; sleep 60")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, width, height):
        self.tmux("resize-window", "-x", width, "-y", height)

    @property
    def lines(self):
        return self.tmux("capture-pane", "-p").splitlines()

    @property
    def text(self):
        return "\n".join(self.lines)

    def shows(self, pattern):
        wait_until(lambda: re.search(pattern, self.text, re.M))

    def end(self):
        self.tmux("kill-server")


@pytest.fixture
def terminal(tmp_path, environment):
    if not shutil.which("tmux"):
        pytest.skip("there is no tmux")
    one = Terminal(tmp_path, {**environment, "TERM": "xterm"})
    yield one
    print(one.text)
    one.end()


@pytest.fixture
def session(started, sonde, sonde_path, target, tmp_path):
    """A live session of three processes that lasts; Popen of sonde."""
    process = started([sonde_path, "run", "--live", "--heap", "-o", tmp_path / "top.sonde", "--",
                       target("grows"), 40, 2], stderr=subprocess.DEVNULL, start_new_session=True)
    wait_until(lambda: sonde("ctl", process.pid, "status").status == 0)
    yield process
    os.killpg(process.pid, signal.SIGKILL)


def test_the_screen_and_its_keys(terminal, session, sonde_path):
    terminal.start(sonde_path, "top", session.pid)
    terminal.shows(r"sonde top .* 3 processes")
    terminal.shows(WORK)
    lines = terminal.lines
    assert len(lines) == 24 and all(len(line) <= 80 for line in lines)
    assert re.search(r"PID +CPU% +CPU +RSS +HEAP +THR +COMMAND", terminal.text)
    assert len(re.findall(r"^ +\d+ .*grows 40 2", terminal.text, re.M)) == 3
    assert re.search(r"cpu +[\d.]+% of \d+ .*heap [\d.]+ [KM]iB", lines[1])
    terminal.press("3")
    terminal.shows(r"LIVE +BYTES .*\n.*\+ site_grow < ")
    terminal.press("Tab", "Enter")
    terminal.shows(r"^ +site_grow$")
    terminal.press("4")
    terminal.shows(r"TID +CPU% .*\n +\d+ +[\d.]+ +.* grows")
    terminal.press("2")
    terminal.shows(r"AND WHAT IT CALLS MOST")
    terminal.press("1", "Tab", "Enter")  # the first process with its threads
    terminal.shows(r"└ grows")
    terminal.press("f")
    terminal.shows(r"process \d+ alone")
    terminal.press("Escape")
    wait_until(lambda: "alone" not in terminal.text)
    terminal.press("/", "z", "z", "z")
    terminal.shows("filter: zzz")
    terminal.press("Enter")
    wait_until(lambda: not re.search(WORK, terminal.text))
    terminal.press("Escape")
    terminal.shows(WORK)
    terminal.press("p")
    terminal.shows("PAUSED")
    stood = terminal.lines[0]
    time.sleep(2.5)
    assert terminal.lines[0] == stood
    terminal.press("p", "?")
    terminal.shows("leave; the session goes on")
    terminal.press("q")
    terminal.shows("status 0")
    assert session.poll() is None


def test_other_sizes_and_no_colours(terminal, session, sonde_path):
    terminal.start(sonde_path, "top", session.pid, term="vt100")
    terminal.shows(WORK)
    terminal.resize(160, 50)
    terminal.shows(r"q quit .* r recent")
    wait_until(lambda: len(terminal.lines) == 50 and "grows" in terminal.text)
    terminal.resize(30, 6)
    terminal.shows("too small")
    terminal.resize(80, 24)
    terminal.shows(WORK)
    terminal.press("q")
    terminal.shows("status 0")


def test_tables_without_a_terminal(session, sonde, sonde_path):
    wait_until(lambda: sonde("top", session.pid, "--count", 1).status == 0)
    wait_until(lambda: re.search(WORK, sonde("top", session.pid, "--count", 1).stdout))
    shown = sonde("top", session.pid, "--count", 2, "--rows", 5)
    assert shown.status == 0
    assert shown.stdout.count("COMMAND") == 2
    assert len(re.findall(r"^ +\d+ +[\d.]+ .* 1  grows", shown.stdout, re.M)) == 6, shown.stdout
    assert "site_grow" in shown.stdout
    assert "\033" not in shown.stdout
    # A reader that goes away is no fault.
    cut = subprocess.run(f"'{sonde_path}' top {session.pid} --count 3 | head -n 1", shell=True, capture_output=True,
                         text=True, timeout=60, check=True)
    assert cut.stdout.count("\n") == 1 and cut.stderr == "", cut


def test_a_process_that_nobody_records(started, target, sonde):
    busy = started([target("shares"), 60000000])
    shown = sonde("top", busy.pid, "--count", 2, "--rows", 3)
    assert shown.status == 0, shown
    assert f"{busy.pid} " in shown.stdout and "shares 60000000" in shown.stdout
    assert busy.poll() is None
    assert not [name for name in os.listdir("/tmp") if name.startswith("sonde-top-")]


def test_what_cannot_be_watched(sonde):
    shown = sonde("top", 4194000)
    assert shown.status == 1 and "cannot be watched" in shown.stderr, shown
    assert sonde("top", "http://127.0.0.1:1/?token=x").status == 1
    assert sonde("top", "nonsense").status == 2
