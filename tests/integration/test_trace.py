"""Traced calls of Python: the same numbers as cProfile gives, for all threads and processes, on every
version; and programs that notice nothing of it."""

import json
import os
import re
import subprocess
import textwrap

import pytest

from pythons import FOUND, embedded, minor, name_of, some_python

FOUND = [path for path in FOUND if minor(path) >= 8]
pytestmark = pytest.mark.skipif(not FOUND, reason="no interpreter was found")


@pytest.fixture(params=FOUND, ids=name_of)
def python(request):
    return request.param


@pytest.fixture
def script(tmp_path):
    def write(text, name="app.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        return path
    return write


def record(harness, command, options=()):
    return harness(*command, options=options).record()


def calls(recording, *options):
    """{(file's name, line, function): row}"""
    rows = recording.show("--calls", "--json", *options).json["sections"]["calls"]["rows"]
    return {(os.path.basename(row["file"] or ""), row["line"] or 0, row["function"]): row
            for row in rows}


def count(table, function):
    return sum(row["calls"] for (_, _, name), row in table.items() if name == function)


FIB = '''
#!/usr/bin/env python
def fib0(): return 0

def fib1(): return 1

s = """def fib{}(): return fib{}() + fib{}()"""

if __name__ == '__main__':

    for n in range(2, 10):
        exec(s.format(n, n-1, n-2))
    #CACHE from functools import lru_cache
    #CACHE for n in range(10):
    #CACHE     exec("fib{} = lru_cache(1)(fib{})".format(n, n))
    print(eval("fib9()"))
'''


def test_lecture_fib(harness, python, script):
    """21 calls of fib0; with the cache, 1."""
    made = record(harness, [python, script(FIB)], options=["--trace"])
    assert made.made.stdout == "34\n"
    table = calls(made)
    assert [count(table, f"fib{n}") for n in range(10)] == [21, 34, 21, 13, 8, 5, 3, 2, 1, 1]
    cached = record(harness, [python, script(FIB.replace("#CACHE ", ""), "cached.py")],
                            options=["--trace"])
    table = calls(cached)
    assert [count(table, f"fib{n}") for n in range(10)] == [1] * 10


VARIED = '''
import collections, math, re

class Point:
    def __init__(self, x):
        self.x = x
    def __add__(self, other):
        return Point(self.x + other.x)
    @property
    def twice(self):
        return 2 * self.x

def fact(n):
    return 1 if n < 2 else n * fact(n - 1)

def even(n):
    return n == 0 or odd(n - 1)

def odd(n):
    return n != 0 and even(n - 1)

def numbers(n):
    for i in range(n):
        yield i

def fails(n):
    if n:
        fails(n - 1)
    raise ValueError(n)

def main():
    total = 0
    for i in numbers(10):
        total += fact(i) + (Point(i) + Point(1)).twice
    for i in range(7):
        try:
            fails(i)
        except ValueError:
            total += 1
    found = []
    for word in re.findall("[a-z]+", "some words to find here"):
        found.append(len(word))
        found.sort(key=lambda n: -n)
    for n in found:
        "".join("aB".swapcase() for _ in range(n))
        math.gcd(n, 12)
        (1.5).is_integer()
    even(20)
    try:
        int.__new__(int, "x")
    except ValueError:
        pass
    return sum(found) + total

if __name__ == "__main__":
    main()
'''

TRUTH = '''
import cProfile, json, os, sys
path = sys.argv[1]
space = {"__name__": "__main__", "__file__": path}
code = compile(open(path).read(), path, "exec")
p = cProfile.Profile()
p.enable()
exec(code, space)
p.disable()
p.create_stats()
print(json.dumps([[f, line, name, n, primitive] for (f, line, name), (primitive, n, _, _, _) in
                  p.stats.items()]))
'''


def test_equal_to_cprofile(harness, python, script):
    """Calls, outermost calls, and C functions by the names that pstats gives them."""
    app, truth = script(VARIED), script(TRUTH, "truth.py")
    answer = subprocess.run([python, truth, app], stdout=subprocess.PIPE, check=True).stdout
    expected = {(line, name): (n, primitive) for file, line, name, n, primitive in
                json.loads(answer) if file == str(app)}
    builtin = {name.replace("<", "{").replace(">", "}"): n for file, _, name, n, _ in
               json.loads(answer) if file == "~"}
    table = calls(record(harness, [python, app], options=["--trace"]))
    found = {(line, name.split(".")[-1]): (row["calls"], row["primitive"])
             for (file, line, name), row in table.items() if file == "app.py"}
    assert found == {(line, name.split(".")[-1]): n for (line, name), n in expected.items()}
    assert found[12, "fact"] == (46, 10)
    for name in ["{method 'swapcase' of 'str' objects}", "{built-in method math.gcd}",
                 "{method 'is_integer' of 'float' objects}", "{method 'findall' of 're.Pattern' objects}"]:
        assert count(table, name) == builtin[name], name


HOT = '''
import functools, math, sys, threading

class Table:
    def __getitem__(self, key):
        return key
    def __call__(self, key):
        return ord(key)

def text(word):
    return word.swapcase() + word.zfill(9) + word.rjust(width)

def ends(n):
    try:
        divmod(n, 0)
    except ZeroDivisionError:
        return chr(n % 64 + 32)

def some(n):
    for i in range(n):
        yield hex(i)

def hot(n):
    table, lock, ordinal = Table(), threading.Lock(), functools.partial(ord)
    pair, one, total = (9, 4), {"ndigits": 1}, 0
    for i in range(n):
        with lock:                       # enters and leaves by no call of ours
            total += abs(i) + table[i] + table[0.5] + math.gcd(i, 12) + int.bit_length(i)
        text("aB"); ends(i); table("b"); ordinal("c"); round(1.26, **one); pow(*pair); oct(i)
        "a".center(5); list(map(bin, pair)); sorted(pair, key=ascii); total.conjugate()
        str.casefold("A"); str.isupper(*("A",)); [x.islower() for x in ("a", "B")]
    for _ in some(n):
        pass
    return total

def watched(n):
    sys.settrace(lambda frame, event, arg: None)
    for i in range(n):
        i.__index__()
        math.factorial(3)
    sys.settrace(None)

width = 12
hot(3000)
watched(500)
threads = [threading.Thread(target=hot, args=(400,)) for _ in range(2)]
if "alone" not in sys.argv:
    [t.start() for t in threads]
    [t.join() for t in threads]
'''


def test_hot_code_hides_no_call(harness, python, script):
    """What interpreters make of code that runs often: instructions that call without a call."""
    app, truth = script(HOT), script(TRUTH, "truth.py")
    answer = subprocess.run([python, truth, app, "alone"], stdout=subprocess.PIPE, check=True).stdout
    once = {name.replace("<", "{").replace(">", "}").split(".")[-1]: n
            for file, _, name, n, _ in json.loads(answer) if file in ("~", str(app))}
    alone = calls(record(harness, [python, app, "alone"], options=["--trace"]))
    table = calls(record(harness, [python, app], options=["--trace"]))
    names = ["{method 'swapcase' of 'str' objects}", "{method 'zfill' of 'str' objects}", "chr}", "hex}", "ord}",
             "{method 'rjust' of 'str' objects}", "divmod}", "abs}", "gcd}", "round}", "pow}", "oct}", "bin}",
             "ascii}", "{method 'bit_length' of 'int' objects}", "{method 'center' of 'str' objects}",
             "{method 'conjugate' of 'int' objects}", "{method 'casefold' of 'str' objects}",
             "{method 'isupper' of 'str' objects}", "{method 'islower' of 'str' objects}", "sorted}", "factorial}",
             "text", "ends", "some", "__getitem__", "__call__", "hot", "watched"]
    assert once["abs}"] == 3000 and once["__getitem__"] == 6000 and once["factorial}"] == 500

    def found(made, name):
        return sum(row["calls"] for (_, _, n), row in made.items() if n.split(".")[-1] == name)
    assert {name: found(alone, name) for name in names} == {name: once.get(name, 0) for name in names}
    for name in ("abs}", "text", "{method 'swapcase' of 'str' objects}", "__getitem__", "oct}"):
        assert found(table, name) == once[name] * 3800 // 3000, name


@pytest.mark.parametrize("path", [path for path in FOUND if minor(path) >= 11], ids=name_of)
def test_deeper_than_the_stack(harness, path, script):
    """From 3.11 on functions of Python may call each other as often as the program says."""
    app = script("""
        import sys, threading
        sys.setrecursionlimit(200000)
        def deep(n):
            abs(n)
            return deep(n - 1) + 1 if n else 0
        print(deep(60000))
        thread = threading.Thread(target=lambda: print(deep(50000)))
        thread.start()
        thread.join()
        """)
    for options in (["--trace"], ["--trace", "--no-trace-c"], ["--lines", "app:deep"]):
        made = record(harness, [path, app], options=options)
        assert made.made.status == 0 and made.made.stdout == "60000\n50000\n", made.made
        if "--trace" in options:
            assert count(calls(made), "deep") == 110002
        if options == ["--trace"]:
            assert count(calls(made), "{built-in method builtins.abs}") == 110002


def test_without_c(harness, python, script):
    """Python's functions alone: the same counts, threads and children too."""
    made = record(harness, [python, script(VARIED + """
    import os, threading
    threads = [threading.Thread(target=fact, args=(9,)) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    pid = os.fork()
    if not pid:
        fact(5)
        os._exit(0)
    os.waitpid(pid, 0)
""")], options=["--trace", "--no-trace-c"])
    assert made.made.status == 0, made.made
    table = calls(made)
    rows = {name.split(".")[-1]: row for (file, _, name), row in table.items() if file == "app.py"}
    assert (rows["fact"]["calls"], rows["fact"]["primitive"]) == (46 + 3 * 9 + 5, 10 + 3 + 1)
    assert (rows["fails"]["calls"], rows["fails"]["primitive"]) == (28, 7)
    assert rows["numbers"]["calls"] == 11 and rows["even"]["calls"] == 11
    assert not any(name.startswith("{") for _, _, name in table)


def test_times(harness, some_python, script):
    """A function's own time, and with what it called."""
    made = record(harness, [some_python, script("""
        import time
        def inner():
            time.sleep(0.1)
        def outer():
            time.sleep(0.05)
            inner()
            inner()
        outer()
    """)], options=["--trace"])
    table = {name: row for (_, _, name), row in calls(made).items()}
    outer, inner = table["outer"], table["inner"]
    assert inner["calls"] == 2 and 0.2e9 <= inner["cumtime"] < 0.6e9
    assert inner["tottime"] < 0.02e9 + inner["cumtime"] / 10
    assert inner["cumtime"] + 0.05e9 <= outer["cumtime"]
    assert table["{built-in method time.sleep}"]["calls"] == 3


def test_threads(harness, python, script):
    """Threads of threading, of threads, and of _thread."""
    made = record(harness, [python, script("""
        import _thread, threading
        def work(n):
            for _ in range(n):
                leaf()
        def leaf():
            pass
        def begin_two(n):
            inner = threading.Thread(target=work, args=(n,))
            inner.start()
            work(n)
            inner.join()
        threads = [threading.Thread(target=begin_two, args=(100,)) for _ in range(4)]
        [t.start() for t in threads]
        done = _thread.allocate_lock()
        done.acquire()
        def bare():
            work(50)
            done.release()
        _thread.start_new_thread(bare, ())
        done.acquire()
        [t.join() for t in threads]
    """)], options=["--trace"])
    table = calls(made)
    assert count(table, "work") == 9 and count(table, "leaf") == 850
    assert count(table, "begin_two") == 4 and count(table, "bare") == 1


def test_processes(harness, python, script):
    """os.fork, and multiprocessing by fork, by spawn and by a server: each in one recording."""
    made = record(harness, [python, script("""
        import multiprocessing, os, sys
        def leaf(n):
            return n + 1
        def work(n):
            return sum(leaf(i) for i in range(n))
        if __name__ == "__main__":
            for _ in range(3):
                pid = os.fork()
                if not pid:
                    work(10)
                    os._exit(0)
                os.waitpid(pid, 0)
            for method in ("fork", "spawn", "forkserver"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    assert pool.map(work, [20] * 5, chunksize=1) == [210] * 5
            work(1)
    """)], options=["--trace"])
    assert made.made.status == 0, made.made
    table = calls(made)
    assert count(table, "work") == 3 + 15 + 1
    assert count(table, "leaf") == 3 * 10 + 15 * 20 + 1
    assert all(row["primitive"] == row["calls"] for (_, _, name), row in table.items()
               if name in ("leaf", "work"))


def test_embedded(harness, python, tmp_path):
    """A program with libpython in it, and a thread that C code started, which alone runs then."""
    program = embedded(python, tmp_path)
    made = record(harness, [program], options=["--trace", "--python"])
    assert made.made.status == 0, made.made
    table = calls(made)
    assert count(table, "inside") == 1 and count(table, "from_c") == 1, table
    assert count(table, "spin") == 60, table


def test_circular(harness, some_python, script):
    """The timeline keeps the latest calls, sums are of all; and all with --trace-all."""
    app = script("""
        def early(): pass
        def late(): pass
        for _ in range(20000): early()
        for _ in range(3000): late()
    """)
    made = record(harness, [some_python, app], options=["--trace", "--trace-entries", "4000"])
    table = calls(made)
    assert count(table, "early") == 20000 and count(table, "late") == 3000
    assert any("earlier ones are in the sums" in note for note in made.report().notes)
    events = trace_of(made)
    names = [event["name"] for event in events if event["ph"] == "X"]
    assert names.count("late") == 3000 and 500 < names.count("early") < 4000
    whole = trace_of(record(harness, [some_python, app], options=["--trace", "--trace-all"]))
    names = [event["name"] for event in whole if event["ph"] == "X"]
    assert names.count("early") == 20000 and names.count("late") == 3000


def trace_of(recording):
    said = recording.show("--format", "chrome-trace", "-o", "-", command="export").stdout
    said = json.loads(said)
    return said["traceEvents"] if isinstance(said, dict) else said


def test_filters(harness, some_python, script):
    script("""
        def helper(): return [len("x") for _ in range(3)]
    """, "other.py")
    app = script("""
        import other
        def inner(): return other.helper()
        def outer(): return inner()
        outer()
    """)
    only = calls(record(harness, [some_python, app], options=["--trace", "--trace-only", "app.py"]))
    assert count(only, "inner") == 1 and count(only, "helper") == 0
    assert count(only, "{built-in method builtins.len}") == 0
    skip = calls(record(harness, [some_python, app],
                                options=["--trace", "--trace-skip", "*/app.py"]))
    assert count(skip, "inner") == 0 and count(skip, "helper") == 1
    deep = calls(record(harness, [some_python, app], options=["--trace", "--trace-depth", "2"]))
    assert count(deep, "outer") == 1 and count(deep, "inner") == 0


def test_own_hook_is_given_back(harness, some_python, script):
    """A program that profiles itself gets what it would get alone, and its hook is the one it set."""
    app = script("""
        import sys
        seen = []
        def hook(frame, event, arg):
            if frame.f_code.co_name == "mine":
                seen.append(event)
        def mine(): pass
        def after(): pass
        assert sys.getprofile() is None
        sys.setprofile(hook)
        assert sys.getprofile() is hook
        mine()
        sys.setprofile(None)
        assert sys.getprofile() is None
        for _ in range(1000): after()
        assert seen == ["call", "return"], seen
    """)
    made = record(harness, [some_python, app], options=["--trace"])
    assert made.made.status == 0, made.made
    table = calls(made)
    assert count(table, "after") >= 990
    told = any("hook of its own" in note for note in made.report().notes)
    assert told == (minor(some_python) < 11)
    if not told:
        assert count(table, "after") == 1000 and count(table, "mine") == 1


def test_own_hook_gets_the_same_events(harness, python, script):
    """Not one more or less than alone; the standard library's profiler fails at one more."""
    app = script("""
        import sys
        def listen(seen):
            return lambda frame, event, arg: seen.append((event, getattr(arg, "__name__", arg)))
        def work():
            return len(sorted([2, 1]))
        first, second = [], []
        sys.setprofile(listen(first))
        work()
        sys.setprofile(listen(second))
        work()
        sys.setprofile(None)
        print(first, second)
        import profile
        profile.Profile().runctx("work()", globals(), globals())
        print("done")
    """)
    alone = subprocess.run([python, app], capture_output=True, text=True, check=True)
    for options in (["--trace"], ["--trace", "--no-trace-c"]):
        made = record(harness, [python, app], options=options)
        assert made.made.stdout == alone.stdout and made.made.status == 0, made.made


@pytest.mark.parametrize("path", [path for path in FOUND if minor(path) >= 12], ids=name_of)
def test_own_hook_of_all_threads(harness, path, script):
    """Set in threads that are in the middle of a call: no end of one whose beginning was not seen."""
    app = script("""
        import sys, threading
        seen = {}
        def hook(frame, event, arg):
            seen.setdefault(threading.get_ident(), []).append((event, getattr(arg, "__name__", arg)))
        ready, held = threading.Semaphore(0), threading.Lock()
        def work():
            return len(sorted([2, 1]))
        def other():
            ready.release()
            held.acquire()
            work()
            held.release()
        def after(): pass
        held.acquire()
        threads = [threading.Thread(target=other) for _ in range(3)]
        for thread in threads:
            thread.start()
            ready.acquire()
        threading.setprofile_all_threads(hook)
        work()
        held.release()
        for thread in threads:
            thread.join()
        threading.setprofile_all_threads(None)
        assert sys.getprofile() is None
        for _ in range(100): after()
        mine = seen.pop(threading.get_ident())
        print(mine[:9], sorted(events[:9] for events in seen.values()))
    """)
    alone = subprocess.run([path, app], capture_output=True, text=True, check=True)
    made = record(harness, [path, app], options=["--trace"])
    assert made.made.stdout == alone.stdout and made.made.status == 0, made.made
    assert count(calls(made), "after") == 100


def test_difficult_ends(harness, some_python, script):
    """Recursion of ten thousand, os._exit, exceptions that end the program, generators closed late."""
    app = script("""
        import os, sys
        sys.setrecursionlimit(20000)
        def deep(n):
            return n and deep(n - 1)
        def endless():
            while True:
                yield 1
        deep(10000)
        kept = [endless() for _ in range(100)]
        [next(g) for g in kept]
        del kept
        if len(sys.argv) > 1:
            raise SystemExit(3)
        os._exit(4)
    """)
    made = record(harness, [some_python, app], options=["--trace"])
    assert made.made.status == 4, made.made
    table = calls(made)
    assert count(table, "deep") == 10001
    assert next(row for (_, _, name), row in table.items() if name == "deep")["primitive"] == 1
    assert record(harness, [some_python, app, "x"], options=["--trace"]).made.status == 3


def test_allocators_of_debuggers(harness, python, script):
    """-X dev changes the allocator after our hook is in place; and others keep things with code, too."""
    app = script("""
        import ctypes, gc, sys
        request = getattr(ctypes.pythonapi, "_PyEval_RequestCodeExtraIndex",
                          None) or ctypes.pythonapi.PyUnstable_Eval_RequestCodeExtraIndex
        request.restype = ctypes.c_ssize_t
        ended = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda value: None)
        request(ended)
        del ended
        for i in range(2000):
            space = {}
            exec("def f%d(): return %d" % (i % 7, i), space)
            assert space["f%d" % (i % 7)]() == i
        sys.exit(10)
    """)
    made = record(harness, [python, "-X", "dev", app], options=["--trace"])
    assert made.made.status == 10 and "Fatal" not in made.made.stderr, made.made
    table = calls(made)
    assert sum(count(table, f"f{i}") for i in range(7)) == 2000, table


def test_native_functions(harness):
    """A program built with -finstrument-functions, also one that Python starts."""
    for command in (["instrumented"], ["/usr/bin/python3", "-c", "import subprocess, sys\n"
                                       "subprocess.run(sys.argv[1:], check=True)"]):
        run = harness(*command, options=["--trace"])
        if len(command) > 1:
            run.command.append(harness("instrumented").command[0])
        made = run.record()
        assert made.made.stdout == "120\n", made.made
        table = {name: row for (_, _, name), row in calls(made).items()}
        assert {name: table[name]["calls"] for name in ("outer", "inner", "worker", "main")} == \
            {"outer": 3, "inner": 12, "worker": 10, "main": 1}
        assert (table["fact"]["calls"], table["fact"]["primitive"]) == (5, 1)
        assert table["inner"]["tottime"] > table["outer"]["tottime"]


def arcs(program, folder):
    """Who called whom, by gprof's own file, which is taken away. How often is not: threads race."""
    said = subprocess.run(["gprof", "-b", "-q", program, folder / "gmon.out"], capture_output=True,
                          text=True, check=True).stdout
    (folder / "gmon.out").unlink()
    return set(re.findall(r"\d+ +(\w+) \[\d+\]$", said, re.M))


@pytest.mark.parametrize("name", ["profiled", "profiled_early"])
def test_native_functions_of_gprof(harness, name, tmp_path):
    """Built with -pg, by mcount or __fentry__: the same counts, and what gprof itself finds stays."""
    run = harness(name, options=["--trace"], cwd=tmp_path)
    assert run.alone().stdout == "120\n"
    alone = arcs(run.command[0], tmp_path)
    made = run.record()
    assert made.made.stdout == "120\n" and made.made.status == 0, made.made
    assert arcs(run.command[0], tmp_path) == alone >= {"outer", "inner", "fact"}
    table = {name: row for (_, _, name), row in calls(made).items()}
    assert {name: table[name]["calls"] for name in ("outer", "inner", "worker", "main")} == \
        {"outer": 3, "inner": 12, "worker": 10, "main": 1}, table
    assert (table["fact"]["calls"], table["fact"]["primitive"]) == (5, 1)
    assert table["inner"]["tottime"] > table["outer"]["tottime"]


def test_graphs(harness, script, tmp_path):
    """The graph of calls, as Graphviz's text and as a picture; the timeline, as a page."""
    made = record(harness, ["/usr/bin/python3", script(FIB)], options=["--trace"])
    dot = made.show("--kind", "calls", "-o", tmp_path / "calls.dot", command="graph") and \
        (tmp_path / "calls.dot").read_text()
    assert "app.py:2(fib0)\\n21 calls" in dot
    assert '" 13"' in dot  # fib1 and fib0 by fib2, fib2 by fib3
    made.show("--kind", "calls", "-o", tmp_path / "calls.svg", command="graph")
    assert "app.py:2(fib0)" in (tmp_path / "calls.svg").read_text()
    made.show("--kind", "timeline", "-o", tmp_path / "time.html", command="graph")
    assert "fib9" in (tmp_path / "time.html").read_text()
    plain = record(harness, ["shares"])
    for kind in ("calls", "timeline"):
        said = plain.show("--kind", kind, "-o", tmp_path / "no.html", command="graph", status=None)
        assert said.status == 1 and "run --trace" in said.stderr, said


def test_chrome_trace_comes_back(harness, script, recording, tmp_path):
    """Exported, then read again: the same spans."""
    made = record(harness, ["/usr/bin/python3", script(FIB)], options=["--trace"])
    made.show("--format", "chrome-trace", "-o", tmp_path / "t.trace.json", command="export")
    back = recording(tmp_path / "back.sonde")
    done = subprocess.run([back.sonde, "import", tmp_path / "t.trace.json", "-o", back.path],
                          env=back.environment, check=False)
    assert done.returncode == 0
    def spans(of):
        return sorted((event["name"], round(event["dur"], 2)) for event in trace_of(of)
                      if event["ph"] == "X")
    assert spans(back) == spans(made)
    assert sum(name == "fib0" for name, _ in spans(back)) == 21
