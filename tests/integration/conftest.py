"""What integration tests start from: the built sonde, target programs, runs with a time-out.

    def test_shares(sonde, target, tmp_path):
        made = sonde("run", "-o", tmp_path / "r.sonde", "--", target("shares"))
        assert made.status == 0
"""

import fcntl
import functools
import os
import pathlib
import pwd
import shutil
import signal
import subprocess

import pytest

from runs import Harness, Recording, Run, children_of, clean_environment, run, wait_until

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def pytest_configure(config):
    config.addinivalue_line("markers", "needs(*commands): skip until sonde has these commands")
    config.addinivalue_line("markers", "alone: it measures, or changes the machine; nothing may run "
                                       "beside it")
    # Background jobs and nohup leave these ignored, and programs inherit that.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT
                          else signal.SIG_DFL)


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def build():
    return ROOT / os.environ.get("SONDE_BUILD", "build")


@pytest.fixture(scope="session")
def sonde_path(build):
    """$SONDE, or the one in the build folder."""
    path = pathlib.Path(os.environ.get("SONDE") or build / "src/cmd/sonde")
    if not path.exists():
        pytest.fail(f"there is no {path}: build first, or name one in $SONDE")
    return path


@pytest.fixture
def without_asan(sonde_path):
    """For what AddressSanitizer itself cannot bear."""
    if b"__asan_init" in sonde_path.read_bytes():
        pytest.skip("sonde is built with AddressSanitizer")


@pytest.fixture(scope="session")
def commands(sonde_path):
    """The names of the commands that sonde has."""
    lines = run([sonde_path, "--help"]).stdout.partition("Commands:\n")[2].splitlines()
    return [line.split()[0] for line in lines if line.startswith("  ")]


@pytest.fixture(autouse=True)
def needed_commands(request):
    marker = request.node.get_closest_marker("needs")
    if marker:
        missing = set(marker.args) - set(request.getfixturevalue("commands"))
        if missing:
            pytest.skip(f"sonde has no command {', '.join(sorted(missing))}")


@pytest.fixture
def environment(tmp_path):
    return clean_environment(tmp_path)


@pytest.fixture
def sonde(sonde_path, environment):
    """sonde("report", "x.sonde", timeout=30) -> Run"""
    def call(*arguments, env=None, **more):
        return run([sonde_path, *arguments], env={**environment, **(env or {})}, **more)
    return call


@pytest.fixture(scope="session")
def built(build):
    """built("bench/make_recording") -> path of what the build folder holds, built if need be: once, and not
    while the other half of the tests builds."""
    @functools.cache
    def find(product):
        with open(build / "integration.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = subprocess.run(["ninja", "-C", build, "--quiet", product], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        return build / product
    return find


@pytest.fixture(scope="session")
def target(built):
    """target("shares") -> path of the program."""
    def find(name):
        return built(f"tests/targets/{name}")
    return find


@pytest.fixture
def harness(sonde_path, environment, target, tmp_path):
    """harness("exits", "3").check(): the same with sonde and without; see runs.Harness.

    The program is a target's name, or a path.
    """
    def make(name, *arguments, options=(), output="harness.sonde", **more):
        program = name if "/" in str(name) else target(name)
        return Harness(sonde_path, environment, tmp_path / output, [program, *arguments], options,
                       **more)
    return make


@pytest.fixture
def recording(sonde_path, environment):
    """recording(path) -> Recording of a file that is there."""
    def find(path):
        return Recording(sonde_path, environment, path)
    return find


@pytest.fixture
def started(environment):
    """started([program, ...]) -> Popen; ended with the test, whatever happens."""
    running = []

    def start(command, **more):
        process = subprocess.Popen([str(word) for word in command],
                                   **{"env": environment, "stdin": subprocess.DEVNULL,
                                      "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                                      "text": True, **more})
        running.append(process)
        return process
    yield start
    for process in running:
        if process.poll() is None:
            kill_tree(process.pid)
        process.communicate()


@pytest.fixture
def overrun(started, sonde_path, target, recording, tmp_path):
    """overrun(count) -> the recording of so many page faults, none of which the collector could take
    while they came: it was stopped."""
    def record(count):
        path = tmp_path / "overrun.sonde"
        collector = started([sonde_path, "run", "-e", "page-faults@1", "-o", path, "--", target("faults"),
                             count, "waits"], stdin=subprocess.PIPE)
        assert collector.stdout.readline() == "ready\n"
        (child,) = children_of(collector.pid)
        os.kill(collector.pid, signal.SIGSTOP)
        collector.stdin.write("go\n")
        collector.stdin.flush()
        wait_until(lambda: pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        os.kill(collector.pid, signal.SIGCONT)
        out, err = collector.communicate(timeout=60)
        made = recording(path)
        made.made = Run(["faults"], collector.returncode, out, err, 0)
        return made
    return record


def kill_tree(pid):
    """A process and all that it started: what lives on would hold its pipes open."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(pid, signal.SIGKILL)
    except (FileNotFoundError, ProcessLookupError):
        return
    for child in children:
        kill_tree(int(child))


@pytest.fixture
def nobody(environment, sonde_path):
    """nobody(command) -> Run, as an ordinary user with a folder of its own."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("only root can become another user here")
    user = pwd.getpwnam("nobody")
    folder = pathlib.Path(subprocess.run(["mktemp", "-d"], stdout=subprocess.PIPE, text=True,
                                         check=True).stdout.strip())
    copy = folder / "sonde"
    shutil.copy(sonde_path, copy)
    folder.chmod(0o755)
    os.chown(folder, user.pw_uid, user.pw_gid)

    def call(*arguments, env=None, **more):
        everything = {**environment, "HOME": str(folder), **(env or {})}
        return run(["setpriv", "--reuid", user.pw_uid, "--regid", user.pw_gid, "--clear-groups",
                    copy, *arguments], cwd=folder, **more,
                   env={key: value for key, value in everything.items() if value is not None})
    call.folder = folder
    yield call
    shutil.rmtree(folder)


@pytest.fixture
def public_target(nobody, target):
    """As target, where that user can read it."""
    def find(name):
        copy = nobody.folder / name
        shutil.copy(target(name), copy)
        copy.chmod(0o755)
        return copy
    return find


@pytest.fixture
def serve(sonde_path, environment, tmp_path):
    """serve("--rate", 10, store=url) -> engines.Serve, a server of jobs; ended with the test."""
    from engines import Serve
    running = []

    def start(*options, **more):
        running.append(Serve(sonde_path, environment, tmp_path / f"serve{len(running)}", *options,
                             **more))
        return running[-1]
    yield start
    for server in running:
        server.kill()
