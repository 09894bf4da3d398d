"""The interpreters that are to be had here, and what the tests of Python have in common."""

import glob
import os
import pathlib
import textwrap

import pytest

FOUND = sorted(path for path in ["/usr/bin/python3.11", *glob.glob(os.path.join(
    os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions/3.*/bin/python3"))]
    if os.access(path, os.X_OK))


def name_of(path):
    return "debian-3.11" if path == "/usr/bin/python3.11" else pathlib.Path(path).parts[-3]


@pytest.fixture(params=FOUND, ids=name_of)
def python(request):
    return request.param


@pytest.fixture(params=[path for path in FOUND if name_of(path).startswith(("debian", "3.8", "3.13"))],
                ids=name_of)
def some_python(request):
    """For what differs little from version to version."""
    return request.param


def minor(path):
    name = name_of(path)
    return 11 if name == "debian-3.11" else int(name.split(".")[1])


SPIN = """
def spin(n):
    total = 0
    for i in range(n):
        total += i & 7
    return total
"""


@pytest.fixture
def script(tmp_path):
    def write(text, name="app.py"):
        path = tmp_path / name
        path.write_text(SPIN + textwrap.dedent(text))
        return path
    return write


def folded(recording, *options):
    """[(frames, outermost first, samples)]"""
    lines = recording.show("--format", "folded", "-o", "-", *options, command="export").stdout
    return [(stack.split(";"), int(count)) for stack, _, count in
            (line.rpartition(" ") for line in lines.splitlines())]


def check_quiet(report):
    assert report.profiler["lost"] == 0 and not report.share("[python code gone]"), report.profiler
