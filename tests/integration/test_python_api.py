"""`import sonde`: recordings that a program makes of itself, spans and counters, lines, the magics of
IPython, the pytest plug-in, `python -m sonde`, and the package itself."""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

from pythons import folded
from runs import Recording, run, wait_until
from test_python_lines import lines
from test_trace import FOUND, calls, count, name_of, trace_of

pytestmark = pytest.mark.skipif(not FOUND, reason="no interpreter was found")


@pytest.fixture(params=FOUND, ids=name_of)
def python(request):
    return request.param


def has_module(python, name, **more):
    return subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False,
                          **more).returncode == 0


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
    python = FOUND[0]
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


TREE = """
    import os, sonde, subprocess, sys
    import other
    def mine(n):
        return sum(range(n))
    with sonde.profile("made.sonde", trace=True, **eval(sys.argv[1])):
        other.theirs(mine(10))
        child = os.fork()
        if not child:
            for _ in range(100):
                other.theirs(mine(100))
            os._exit(0)
        os.waitpid(child, 0)
        subprocess.run([sys.executable, "-c", "import other; other.theirs(3)"], check=True)
"""


def test_filter_and_children(app, python, recording, tmp_path):
    """Whose calls are traced, and whether those of children are, forked or run."""
    (tmp_path / "other.py").write_text("def theirs(n):\n    return n\n")
    for options, mine, theirs, processes in ((dict(), 101, 102, 3),
                                             (dict(filter="*/other.py"), 0, 102, 3),
                                             (dict(filter=["*/app.py", "*/no.py"]), 101, 0, 3),
                                             (dict(follow_forks=False), 1, 1, 1)):
        app(python, TREE, repr(options))
        made = recording(tmp_path / "made.sonde")
        table = calls(made)
        found = [count(table, "mine"), count(table, "theirs")]
        assert found == [mine, theirs], (options, found)
        assert len(made.report(status=None).processes) == processes, options


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


ODD = """
    import os, sonde, sys, threading
    def leaf(n):
        return n + 1
    def says(what):
        try:
            print(what())
        except (RuntimeError, ValueError, TypeError) as error:
            print(type(error).__name__, error)
    def nested():
        with sonde.profile("nested.sonde"), sonde.profile("inner.sonde"):
            pass
    def closed():
        with sonde.profile("closed.sonde"):
            yield 1
    def leaves():
        with sonde.profile("forked.sonde", trace=True):
            child = os.fork()
            leaf(1)
            if not child:
                with sonde.profile("never.sonde"):
                    leaf(2)
                return None
            status = os.waitpid(child, 0)[1]
        return status
    says(nested)
    says(sonde.Profiler("x.sonde").stop)
    says(sonde.Profiler("no/such/x.sonde").start)
    one = sonde.Profiler("twice.sonde").start()
    says(one.start)
    says(lambda: one.stop() + one.stop())
    for options in ({"what": "all"}, {"rss_hz": "a"}, {"filter": 3}):
        says(lambda: sonde.Profiler(**options))
    generator = closed()
    next(generator)
    generator.close()
    threads = [threading.Thread(target=one.start), threading.Thread(target=one.stop)]
    for thread in threads:
        thread.start()
        thread.join()
    says(lambda: sonde.span(3))
    says(lambda: sonde.profile_lines(len)([1]))
    status = leaves()
    if status is None:
        os._exit(7)
    print(status >> 8)
    sonde.Profiler("left.sonde", trace=True).start()
    for i in range(1000):
        leaf(i)
"""


def test_odd_uses(app, python, recording, tmp_path):
    """One within another, started or stopped twice, left by a fork or an exit: a sentence, or the
    recording that was asked for, whole when the program ends; warnings are none."""
    said = app(python, "import warnings\nwarnings.simplefilter('error')\n" + textwrap.dedent(ODD))
    assert said.stderr == "" and said.stdout.splitlines() == [
        "RuntimeError a profiler is running already", "RuntimeError this profiler was not started",
        "NotAvailable sonde attach: cannot create the recording no/such/x.sonde: No such file or "
        "directory", "RuntimeError a profiler is running already", "twice.sondetwice.sonde",
        "ValueError what is one of python, native, both, not 'all'",
        "ValueError rss_hz is a whole number up to 1000, not 'a'",
        "ValueError filter is a pattern of files or a list of them, not 3",
        "TypeError a name is text, not 3", "1", "7"], said
    assert count(calls(recording(tmp_path / "left.sonde")), "leaf") == 1000
    forked = recording(tmp_path / "forked.sonde")
    assert count(calls(forked), "leaf") == 3 and count(calls(forked), "never.sonde") == 1
    assert len(forked.report(status=None).processes) == 2
    assert not (tmp_path / "never.sonde").exists() and not (tmp_path / "inner.sonde").exists()
    for name in ("nested", "twice", "closed", "forked", "left"):
        assert recording(tmp_path / f"{name}.sonde").report(status=None).facts("run")["complete"] == "yes"


def test_parts_of_a_traced_run(app, python, sonde_path, recording, tmp_path):
    """Profiles within a recording trace their part, the outermost to its end; a run that is traced as a
    whole stays so. Spans cover what coroutines and generators do."""
    text = USE + """
    import asyncio
    @sonde.span("slow")
    async def slow():
        await asyncio.sleep(0.05)
    @sonde.span("rows")
    def rows():
        time.sleep(0.05)
        yield 1
    def inside(): pass
    def outside(): pass
    with sonde.profile(trace=True):
        with sonde.profile(trace=True):
            inside()
        inside()
    outside()
    asyncio.run(slow())
    list(rows())
    """
    for options, expected in (([], 0), (["--trace"], 1)):
        app(python, text, under=[sonde_path, "run", "-q", "-f", "-o", tmp_path / "x.sonde", *options,
                                 "--"])
        made = recording(tmp_path / "x.sonde")
        table = calls(made)
        assert count(table, "inside") == 2
        assert sum(name == "outside" for _, _, name in table) == expected
        took = {event["name"]: event["dur"] for event in trace_of(made)
                if event.get("cat") == "span" and event["ph"] == "X"}
        assert took["slow"] > 45000 and took["rows"] > 45000, took


def test_main_module(app, python, environment, root, sonde_path, recording, tmp_path):
    (tmp_path / "app.py").write_text("import sys\ndef f(): return sys.argv[1]\nprint(f())\n")
    done = run([python, "-m", "sonde", "run", "-q", "--trace", "-o", tmp_path / "m.sonde",
                tmp_path / "app.py", "-x"],
               env={**environment, "PYTHONPATH": str(root / "python"), "SONDE": str(sonde_path)})
    assert done.status == 0 and done.stdout == "-x\n", done
    assert count(calls(recording(tmp_path / "m.sonde")), "f") == 1


SHELLS = {
    # What the magics need of IPython's shell, as that does it.
    "stand-in": """
        import codeop
        class Compiler(codeop.Compile):
            def cache(self, text, number):
                return f"<ipython-input-{number}>"
            def __call__(self, source, name, mode):
                return compile(source, name, mode)
        class Shell:
            execution_count, compile = 1, Compiler()
            def __init__(self):
                self.magics, self.user_ns = {}, {}
            def register_magic_function(self, function, kind, name):
                self.magics[kind, name] = function
            def transform_cell(self, text):
                return text
            def should_run_async(self, text, transformed_cell):
                return False
            def run_line_magic(self, name, line):
                return self.magics["line", name](line)
            def run_cell_magic(self, name, line, cell):
                return self.magics["cell", name](line, cell)
        shell = Shell()
        sonde.load_ipython_extension(shell)
        """,
    "IPython": """
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance(colors="NoColor")
        shell.run_line_magic("load_ext", "sonde")
        """,
}
CELLS = """
        exec("def twice(n): return 2 * n", shell.user_ns)
        shell.run_line_magic("sonde", "--trace [twice(i) for i in range(50)]")
        shell.run_cell_magic("sonde", "--trace", "for i in range(20):\\n    twice(i)\\n")
        print("value", shell.run_line_magic("sonde", "-o 'my file.sonde' twice(3) * 7"))
        print("value", shell.run_line_magic("sonde", "-3 * twice(1)"))
        for line in ("--nope 3", "", "-o"):
            try:
                shell.run_line_magic("sonde", line)
            except Exception as error:
                print(type(error).__name__, error)
        try:
            shell.run_line_magic("sonde", "1 / 0")
        except ZeroDivisionError:
            print("not hidden")
        with sonde.profile("other.sonde"):
            try:
                shell.run_line_magic("sonde", "3")
            except Exception as error:
                print(error)
"""


@pytest.mark.parametrize("shell", SHELLS)
def test_magics(app, python, tmp_path, shell):
    """In IPython's shell where an interpreter has it, and in one that does what that does."""
    if shell == "IPython":
        if not has_module(python, "IPython"):
            pytest.skip("this interpreter has no IPython")
    said = app(python, "import os, sonde\nos.environ['IPYTHONDIR'] = os.getcwd()\n"
               + textwrap.dedent(SHELLS[shell]) + textwrap.dedent(CELLS)).stdout
    rows = [line.split() for line in said.splitlines() if line.endswith("(twice)")]
    assert [row[0] for row in rows] == ["50", "20"], said
    traced = said.partition("still running")[0]
    assert "magics.py" not in traced and "interactiveshell" not in traced, said
    assert "value 42\n" in said and "value -6\n" in said and (tmp_path / "my file.sonde").exists()
    assert said.count("Next\n") <= 1, said  # nothing to do with files that are gone
    error = "UsageError" if has_module(python, "IPython") else "ValueError"
    assert f"{error} %sonde knows [--trace] [-o FILE], not --nope" in said, said
    assert f"{error} usage: %sonde" in said and f"{error} %sonde knows [--trace] [-o FILE], not -o" in said
    assert "not hidden\n" in said and "a profiler is running already\n" in said, said


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
@pytest.mark.limit_leaks("much")
def test_mistaken(): pass
@pytest.mark.limit_memory("24 MB")
def test_wrong(): assert False
def test_left_as_it_was():
    import tracemalloc
    assert not tracemalloc.is_tracing()
"""


@pytest.fixture
def pytest_path(python, root, tmp_path):
    """Where the interpreter finds sonde, and the pytest that runs here, with what that needs."""
    folder = tmp_path / "packages"
    folder.mkdir()
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "attr", "py"):
        origin = pathlib.Path(importlib.util.find_spec(name).origin)
        origin = origin.parent if origin.name == "__init__.py" else origin
        (folder / origin.name).symlink_to(origin)
    if not has_module(python, "builtins; builtins.ExceptionGroup"):
        (folder / "exceptiongroup.py").write_text(
            "class BaseExceptionGroup(BaseException): pass\n"
            "class ExceptionGroup(BaseExceptionGroup, Exception): pass\n")
    path = f"{root / 'python'}:{folder}"
    if not has_module(python, "pytest", env={**os.environ, "PYTHONPATH": path}):
        pytest.skip("this pytest does not run there")
    return path


@pytest.mark.parametrize("under", ["alone", "heap"])
def test_pytest_plugin(python, pytest_path, environment, sonde_path, recording, tmp_path, under):
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "sonde.pytest_plugin",
               "--strict-markers", tmp_path / "test_it.py"]
    made = tmp_path / "tests.sonde"
    if under == "alone":
        command.append(f"--sonde={made}")
    else:
        command = [sonde_path, "run", "-q", "--heap", "-o", made, "--", *command]
    done = run(command, cwd=tmp_path,
               env={**environment, "PYTHONPATH": pytest_path, "SONDE": str(sonde_path)})
    assert done.status == 1 and "4 failed, 3 passed" in done.stdout, done
    assert "a limit is a size such as '24 MB' or '1.5 MiB', not 'much'" in done.stdout, done
    held = re.search(r"test_large held ([\d.]+) MiB at once", done.stdout)
    assert 47.68 <= float(held[1]) < 47.75 and "test_leak left" in done.stdout, done
    names = {event["name"] for event in trace_of(recording(made))}
    assert {"test_it.py::test_small", "test_it.py::test_leak"} <= names


def test_pip_install(python, root, tmp_path):
    """From the source tree, without a network and without setuptools."""
    if not has_module(python, "pip"):
        pytest.skip("this interpreter has no pip")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "meson.build", "python"):
        (source / name).symlink_to(root / name)
    done = subprocess.run([python, "-m", "pip", "install", "--no-index", "--no-deps",
                           "--disable-pip-version-check", "--target", tmp_path / "site", str(source)],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done
    installed = pathlib.Path(tmp_path / "site")
    assert (installed / "sonde/__init__.py").exists()
    entry = next(installed.glob("sonde-*.dist-info/entry_points.txt")).read_text()
    assert "pytest11" in entry
    said = subprocess.run([python, "-c", "import sonde; print(sonde.is_recorded())"],
                          capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(installed)}).stdout
    assert said == "False\n"
