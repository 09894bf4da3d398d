"""What `-o` may name, alike for every command that has it: files, pipes, devices, open descriptors."""

import os
import stat
import subprocess

import pytest

from runs import run

COMMANDS = {
    "export": ("export", "A", "-f", "folded"),
    "graph": ("graph", "A", "--format", "svg"),
    "graph, page": ("graph", "A", "--kind", "page", "--format", "html"),
    "diff": ("diff", "A", "B", "--anyway", "--format", "html"),
    "import": ("import", "A"),
    "merge": ("merge", "A", "B"),
}


@pytest.fixture(scope="module")
def recordings(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("output")
    for name in ("A", "B"):
        assert run([build / "tests/unit/formats/make_recording", folder / name]).status == 0
    return folder


@pytest.fixture(params=COMMANDS)
def command(request, sonde_path, environment, recordings):
    """command(output, ...) -> what it did and, as bytes, wrote to standard output."""
    def call(output, **more):
        words = [str(recordings / word) if word in ("A", "B") else word for word in COMMANDS[request.param]]
        return subprocess.run([sonde_path, *words, "-o", str(output)], timeout=60, env=environment, check=False,
                              **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})
    return call


@pytest.fixture
def whole(command, tmp_path):
    path = tmp_path / "whole"
    done = command(path)
    assert done.returncode == 0 and not done.stdout, done
    assert not list(tmp_path.glob("*.part"))
    return path.read_bytes()


def same(made, whole):
    """Pages and recordings may hold when they were made."""
    return made == whole or (abs(len(made) - len(whole)) < 100 and made[:8] == whole[:8])


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output(command, whole, name, tmp_path):
    done = command(name)
    assert done.returncode == 0 and same(done.stdout, whole), done
    path = tmp_path / "redirected"
    with open(path, "wb") as file:
        file.write(b"before\n")
        file.flush()
        assert command(name, stdout=file).returncode == 0
    kept = path.read_bytes()
    assert kept.startswith(b"before\n") and same(kept[7:], whole)


def test_descriptors_and_pipes(command, whole, tmp_path):
    reads, writes = os.pipe()
    pipe, kept = tmp_path / "pipe.svg", tmp_path / "kept"
    os.mkfifo(pipe)
    for source, name in ((reads, f"/dev/fd/{writes}"), (None, pipe)):
        with open(kept, "wb") as file, \
                subprocess.Popen(["cat", *([pipe] if source is None else [])], stdin=source, stdout=file) as reader:
            done = command(name, pass_fds=[writes] if source else [])
            if source:
                os.close(reads)
                os.close(writes)
            reader.wait(timeout=60)
        assert done.returncode == 0 and same(kept.read_bytes(), whole), (name, done)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_devices(command):
    done = command("/dev/null")
    assert done.returncode == 0 and not done.stdout and not done.stderr, done
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    full = command("/dev/full")
    assert full.returncode == 1 and b"No space left" in full.stderr, full
    closed = command("/dev/fd/77")
    assert closed.returncode == 1 and b"/dev/fd/77" in closed.stderr, closed


def test_what_is_refused(command, tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "link.svg"
    victim.write_text("mine")
    link.symlink_to(victim)
    done = command(link)
    assert done.returncode == 1 and b"symbolic link" in done.stderr and victim.read_text() == "mine"
    done = command(tmp_path)
    assert done.returncode == 1 and b"folder" in done.stderr
    done = command(tmp_path / "none" / "x")
    assert done.returncode == 1 and b"No such file" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.svg", "victim"]
