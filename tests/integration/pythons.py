"""The interpreters that are to be had here, and what the tests of Python have in common."""

import concurrent.futures
import glob
import os
import pathlib
import subprocess
import textwrap

import pytest

from runs import Harness, clean_environment

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


@pytest.fixture(scope="module")
def everywhere(sonde_path, tmp_path_factory):
    """everywhere(text, options)[python] -> the recording of a program that mostly waits, made by all
    interpreters at the same time."""
    made = {}
    tmp_path_factory.getbasetemp()  # which threads do not make one by one

    def record(path, text, options):
        folder = tmp_path_factory.mktemp(name_of(path))
        app = folder / "app.py"
        app.write_text(SPIN + textwrap.dedent(text))
        return Harness(sonde_path, clean_environment(folder), folder / "x.sonde", [path, app],
                       options).record()

    def recordings(text, *options):
        if (text, options) not in made:
            with concurrent.futures.ThreadPoolExecutor(len(FOUND)) as pool:
                made[text, options] = dict(zip(FOUND, pool.map(
                    lambda path: record(path, text, options), FOUND)))
        return made[text, options]
    return recordings


def folded(recording, *options):
    """[(frames, outermost first, samples)]"""
    lines = recording.show("--format", "folded", "-o", "-", *options, command="export").stdout
    return [(stack.split(";"), int(count)) for stack, _, count in
            (line.rpartition(" ") for line in lines.splitlines())]


def slept(recording):
    """{function: ns}: sleep() is select() up to 3.10."""
    rows = recording.report("--event", "off-cpu:sleep", "--event", "off-cpu:io", "-n", "0").rows("functions")
    return {row["name"]: row["total"] for row in rows}


def held(recording, event="heap:peak"):
    """{function: bytes} with what it called."""
    rows = recording.report("--event", event, "-n", "0").rows("functions")
    return {row["name"]: row["total"] for row in rows}


EMBEDDED = r"""
#include <Python.h>
#include <pthread.h>

static void *other(void *unused)
{
    PyGILState_STATE s = PyGILState_Ensure();
    PyRun_SimpleString("from_c()");
    PyGILState_Release(s);
    return unused;
}

int main(void)
{
    setenv("PYTHONHOME", HOME, 1);
    Py_Initialize();
    PyRun_SimpleString("def spin(n):\n    t = 0\n    for i in range(n):\n        t += i & 7\n    return t\n"
                       "def inside():\n    for _ in range(30):\n        spin(100000)\n"
                       "def from_c():\n    for _ in range(30):\n        spin(100000)\n");
    PyRun_SimpleString("inside()");
    PyThreadState *main_thread = PyEval_SaveThread();
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
    PyEval_RestoreThread(main_thread);
    return Py_FinalizeEx() < 0;
}
"""


hosts = {}  # by interpreter


def embedded(python, folder):
    """The path of a program with this interpreter in it, built once."""
    if python not in hosts or not hosts[python].exists():
        hosts[python] = build_host(python, folder)
    return hosts[python]


def build_host(python, folder):
    asked = subprocess.run([python, "-c", "import sysconfig as s; print(s.get_path('include'), "
                            "s.get_config_var('LIBDIR'), s.get_config_var('LDVERSION'))"],
                           capture_output=True, text=True, check=True).stdout.split()
    source, program = folder / "host.c", folder / "host"
    source.write_text(EMBEDDED)
    home = pathlib.Path(python).parent.parent
    built = subprocess.run(["cc", "-O1", f'-DHOME="{home}"', f"-I{asked[0]}", source, f"-L{asked[1]}",
                            f"-Wl,-rpath,{asked[1]}", f"-lpython{asked[2]}", "-lpthread", "-lm",
                            "-o", program], capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"{name_of(python)} cannot be embedded here: {built.stderr.splitlines()[0]}")
    return program


def check_quiet(report):
    assert report.profiler["lost"] == 0 and not report.share("[python code gone]"), report.profiler
