"""tools/setup, with stand-ins for dpkg-query, apt-get and id so that nothing is installed."""

import functools
import os
import pathlib
import subprocess
import tempfile

import pytest

SETUP = "tools/setup"


@pytest.fixture
def stage(root):
    """stage(installed, "test") -> a finished run of tools/setup, and what apt-get was asked for."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        yield functools.partial(play, root, folder)


def play(root, folder, installed, *arguments, user=None):
    asked = folder / "asked"
    asked.write_text("")
    asked.chmod(0o666)
    listing = "\\n".join(f"{package} installed" for package in installed)
    for name, body in (("dpkg-query", f"printf '{listing}\\n'; exit 1"),
                       ("apt-get", f'echo "$*" >> {asked}')):
        stand_in = folder / name
        stand_in.write_text(f"#!/bin/sh\n{body}\n")
        stand_in.chmod(0o755)
    command = ["bash", "-s", "--", *arguments]
    if user:
        command = ["setpriv", f"--reuid={user}", "--clear-groups", *command]
    done = subprocess.run(command, env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
                          text=True, input=(root / SETUP).read_text(), cwd=folder,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done, asked.read_text()


def wanted(root, which):
    text = (root / SETUP).read_text().partition(f"\n{which}=(")[2].partition(")")[0]
    return text.split()


@pytest.fixture
def as_root():
    if os.geteuid() != 0:
        pytest.skip("needs root, or it would not get as far as apt-get")


def test_nothing_is_done_when_all_is_there(stage, root):
    done, asked = stage(wanted(root, "build") + wanted(root, "test"), "test")
    assert (done.returncode, done.stderr, asked) == (0, "", "")


def test_root_gets_what_is_missing(stage, root, as_root):
    done, asked = stage(wanted(root, "build")[1:], "build")
    assert done.returncode == 0
    update, install = asked.splitlines()
    assert update.startswith("update")
    assert install.split()[-1] == wanted(root, "build")[0]


def test_others_get_the_command_to_run(stage, root, as_root):
    done, asked = stage(wanted(root, "build"), "test", user=65534)
    assert (done.returncode, asked) == (1, "")
    assert "run 'sudo tools/setup test', then try again" in done.stderr
    assert "libcmocka-dev" in done.stderr


def test_another_word_is_refused(stage):
    done, _ = stage([], "everything")
    assert done.returncode == 2
    assert "takes 'build' or 'test', not 'everything'" in done.stderr
