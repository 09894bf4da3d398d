"""`import sonde`: recordings that a program makes of itself, spans and counters, lines, the magics of
IPython, the pytest plug-in, `python -m sonde`, and the package itself."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from pythons import folded
from runs import Recording, run, wait_until
from test_python_lines import lines
from test_trace import FOUND, calls, count, name_of, trace_of

SOME = [path for path in FOUND if name_of(path).startswith(("debian", "3.8", "3.13"))]
pytestmark = pytest.mark.skipif(not SOME, reason="no interpreter was found")


@pytest.fixture(params=SOME, ids=name_of)
def python(request):
    return request.param


@pytest.fixture
def app(tmp_path, root, environment, sonde_path):
    """app(python, text) -> Run of it, with the package on its path."""
    def start(python, text, *arguments, status=0, under=()):
        script = tmp_path / "app.py"
        script.write_text(textwrap.dedent(text).lstrip("\n"))
        done = run([*under, python, script, *arguments], cwd=tmp_path,
                   env={**environment, "PYTHONPATH": str(root / "python"), "SONDE": str(sonde_path)})
        assert done.status == status, done
        return done
    return start


USE = """
    import sonde, sys, time
    def leaf(n):
        return n + 1
    @sonde.profile_lines
    def work(n):
        total = 0
        for i in range(n):
            total += leaf(i)
        return total
    @sonde.span("part")
    def part():
        sonde.mark("here")
        return work(10)
    def main(path):
        with sonde.profile(path, trace=True) as profiler:
            for i in range(3):
                sonde.counter("queue", i)
                part()
        return profiler
"""


def test_recordings_of_itself(app, python, recording, tmp_path):
    """One after another, each with its own calls, spans, counters and lines."""
    app(python, USE + """
    work(5)
    print(main("one.sonde").path)
    work(7)
    assert not sonde.is_recorded()
    main("two.sonde")
    """)
    for name in ("one.sonde", "two.sonde"):
        made = recording(tmp_path / name)
        table = calls(made)
        assert count(table, "leaf") == 30 and count(table, "work") == 3, name
        assert count(table, "part") == 6  # the function and its span
        assert {line: row["hits"] for line, row in lines(made).items()} == {6: 3, 7: 33, 8: 30, 9: 3}
        events = trace_of(made)
        assert sum(event["ph"] == "i" and event["name"] == "here" for event in events) == 3
        assert [event["args"]["value"] for event in events
                if event["ph"] == "C" and event["name"] == "queue"] == [0, 1, 2]
        spans = [event for event in events if event["name"] == "part" and event["cat"] == "span"]
        inner = [event for event in events if event["name"] == "work"]
        assert len(spans) == 3 and len(inner) == 3
        assert all(s["ts"] <= w["ts"] and w["ts"] + w["dur"] <= s["ts"] + s["dur"]
                   for s, w in zip(spans, inner))


def test_under_run(app, python, sonde_path, recording, tmp_path):
    """There is a recording already: the same calls put all of it there."""
    app(python, USE + """
    assert sonde.is_recorded()
    assert main("mine.sonde").path is None
    leaf(0)
    """, under=[sonde_path, "run", "-q", "-o", tmp_path / "outer.sonde", "--"])
    assert not (tmp_path / "mine.sonde").exists()
    made = recording(tmp_path / "outer.sonde")
    table = calls(made)
    assert count(table, "leaf") == 30 and count(table, "mine.sonde") == 1
    assert {line: row["hits"] for line, row in lines(made).items()} == {6: 3, 7: 33, 8: 30, 9: 3}


def test_without_sonde(app, python, environment, root, tmp_path):
    """Neither the command nor the library: spans and lines do nothing, a profile says why."""
    (tmp_path / "app.py").write_text(textwrap.dedent(USE) + textwrap.dedent("""
    part()
    try:
        main("x.sonde")
    except sonde.NotAvailable as error:
        print(error)
    """))
    done = run([python, tmp_path / "app.py"],
               env={**environment, "PYTHONPATH": str(root / "python"), "PATH": "/nowhere"})
    assert done.status == 0 and "not on the PATH" in done.stdout, done


def test_samples_and_snapshot(app, python, recording, tmp_path):
    app(python, """
        import sonde, time
        def spin(seconds):
            end = time.process_time() + seconds
            while time.process_time() < end:
                sum(range(100))
        profiler = sonde.Profiler("spin.sonde", what="python").start()
        spin(0.6)
        profiler.snapshot("early.sonde")
        spin(0.3)
        profiler.stop()
    """)
    assert recording(tmp_path / "spin.sonde").report().share("spin") > 60
    assert recording(tmp_path / "early.sonde").report().share("spin") > 60


OPTIONS = """
    import sonde, sys, zlib
    def busy_part():
        for _ in range(20):
            zlib.compress(bytes(range(256)) * 1200, 9)
        kept.append(bytearray(b"x") * (40 << 20))
    kept = []
    with sonde.profile("made.sonde", **eval(sys.argv[1])):
        busy_part()
"""


def curves(recording):
    """{name: values} of what is drawn over time."""
    found = {}
    for event in trace_of(recording):
        if event["ph"] == "C":
            found.setdefault(event["name"], []).append(event["args"]["value"])
    return found


def test_options(app, recording, tmp_path):
    """Which frames, whether there are samples at all, and how often memory is looked at."""
    python = SOME[0]
    stacks = {}
    for what in ("python", "native", "both"):
        app(python, OPTIONS, f"dict(what={what!r}, rss_hz=0)")
        made = recording(tmp_path / "made.sonde")
        stacks[what] = folded(made)
        assert "rss" not in curves(made)

    def share(what, name):
        return sum(count for frames, count in stacks[what]
                   if any(frame.startswith(name) for frame in frames))
    assert share("both", "busy_part") > 5 and share("both", "deflate") > 5, stacks["both"]
    assert share("python", "busy_part") > 5 and not share("python", "deflate"), stacks["python"]
    assert share("native", "deflate") > 5 and not share("native", "busy_part"), stacks["native"]

    app(python, OPTIONS, "dict(stacks=False, rss_hz=200, trace=True)")
    made = recording(tmp_path / "made.sonde")
    assert count(calls(made), "busy_part") == 1
    assert {row["event"] for row in made.report(status=None).rows("accounting")} == {"calls"}
    resident = curves(made)["rss"]
    assert max(resident) - min(resident) > 35 << 20, resident
    said = app(python, "import sonde\nsonde.Profiler(rss_hz=5000)\n", status=1)
    assert "rss_hz is a whole number up to 1000" in said.stderr


@pytest.mark.parametrize("trace", [False, True])
def test_killed_at_once(app, python, recording, tmp_path, trace):
    """The recording of a program that does not live to end it is whole."""
    app(python, f"""
        import os, signal, sonde
        def f():
            return 1
        sonde.Profiler("killed.sonde", trace={trace}).start()
        f()
        os.kill(os.getpid(), signal.SIGKILL)
    """, status=137)
    made = recording(tmp_path / "killed.sonde")
    wait_until(lambda: made.report(status=None).facts("run")["complete"] == "yes")
    report = made.report(status=None)
    assert len(report.processes) == 1 and report.processes[0]["status"] is not None
    if trace:
        assert count(calls(made), "f") == 1


def test_main_module(app, python, environment, root, sonde_path, recording, tmp_path):
    (tmp_path / "app.py").write_text("import sys\ndef f(): return sys.argv[1]\nprint(f())\n")
    done = run([python, "-m", "sonde", "run", "-q", "--trace", "-o", tmp_path / "m.sonde",
                tmp_path / "app.py", "-x"],
               env={**environment, "PYTHONPATH": str(root / "python"), "SONDE": str(sonde_path)})
    assert done.status == 0 and done.stdout == "-x\n", done
    assert count(calls(recording(tmp_path / "m.sonde")), "f") == 1


def test_magics(app, python):
    """With a shell that does what IPython's does."""
    said = app(python, """
        import sonde
        class Shell:
            def __init__(self):
                self.magics, self.space = {}, {}
            def register_magic_function(self, function, kind, name):
                self.magics[kind, name] = function
            def run_cell(self, text):
                exec(text, self.space)
        shell = Shell()
        sonde.load_ipython_extension(shell)
        shell.run_cell("def twice(n): return 2 * n")
        shell.magics["line", "sonde"]("--trace [twice(i) for i in range(50)]")
        shell.magics["cell", "sonde"]("--trace", "for i in range(20):\\n    twice(i)\\n")
    """).stdout
    rows = [line.split() for line in said.splitlines() if line.endswith("(twice)")]
    assert [row[0] for row in rows] == ["50", "20"], said


TESTS = """
import pytest
@pytest.mark.limit_memory("24 MB")
def test_small(): bytearray(10 ** 6)
@pytest.mark.limit_memory("24 MB")
def test_large(): bytearray(50 * 10 ** 6)
kept = []
@pytest.mark.limit_leaks("1 MB")
def test_leak(): kept.append(bytearray(5 * 10 ** 6))
@pytest.mark.limit_leaks("1 MiB")
def test_clean(): kept.append(bytearray(10 ** 4))
"""


@pytest.mark.parametrize("under", ["alone", "heap"])
def test_pytest_plugin(environment, root, sonde_path, recording, tmp_path, under):
    python = "/usr/bin/python3"
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "sonde.pytest_plugin",
               "--strict-markers", tmp_path / "test_it.py"]
    made = tmp_path / "tests.sonde"
    if under == "alone":
        command.append(f"--sonde={made}")
    else:
        command = [sonde_path, "run", "-q", "--heap", "-o", made, "--", *command]
    done = run(command, cwd=tmp_path,
               env={**environment, "PYTHONPATH": str(root / "python"), "SONDE": str(sonde_path)})
    assert done.status == 1 and "2 failed, 2 passed" in done.stdout, done
    assert "test_large held 47.68 MiB at once" in done.stdout and "test_leak left" in done.stdout, done
    names = {event["name"] for event in trace_of(recording(made))}
    assert {"test_it.py::test_small", "test_it.py::test_leak"} <= names


def test_pip_install(root, tmp_path):
    """From the source tree, without a network and without setuptools."""
    with_pip = next((path for path in FOUND if subprocess.run(
        [path, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0), None)
    if not with_pip:
        pytest.skip("no interpreter has pip")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "meson.build", "python"):
        (source / name).symlink_to(root / name)
    done = subprocess.run([with_pip, "-m", "pip", "install", "--no-index", "--no-deps",
                           "--disable-pip-version-check", "--target", tmp_path / "site", str(source)],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done
    installed = pathlib.Path(tmp_path / "site")
    assert (installed / "sonde/__init__.py").exists()
    entry = next(installed.glob("sonde-*.dist-info/entry_points.txt")).read_text()
    assert "pytest11" in entry
    said = subprocess.run([with_pip, "-c", "import sonde; print(sonde.is_recorded())"],
                          capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(installed)}).stdout
    assert said == "False\n"
