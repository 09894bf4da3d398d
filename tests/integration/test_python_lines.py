"""Counted lines of Python: the same numbers as sys.settrace gives, on every version; functions chosen by
patterns or decorated, by other packages too."""

import json
import subprocess
import textwrap

import pytest

from pythons import minor, some_python
from test_trace import pytestmark, python, record, script

SORTS = '''
import random


def test_sorted(fn, iters=100):
    for i in range(iters):
        l = [random.randint(0, 100) for i in range(0, random.randint(0, 50))]
        assert fn(l) == sorted(l)


@profile
def insertionsort(array):

    for i in range(len(array)):
        j = i-1
        v = array[i]
        while j >= 0 and v < array[j]:
            array[j+1] = array[j]
            j -= 1
        array[j+1] = v
    return array


@profile
def quicksort(array):
    if len(array) <= 1:
        return array
    pivot = array[0]
    left = [i for i in array[1:] if i < pivot]
    right = [i for i in array[1:] if i >= pivot]
    return quicksort(left) + [pivot] + quicksort(right)


@profile
def numbers(n):
    for i in range(n):
        try:
            yield i
        finally:
            n += 0


@profile
def fails(n):
    while n > 0: n -= 1
    raise ValueError(n)


if __name__ == '__main__':
    random.seed(7)
    for fn in [quicksort, insertionsort]:
        test_sorted(fn)
    a = numbers(5)
    for x, y in zip(numbers(7), a):
        try:
            fails(x)
        except ValueError:
            pass
    a.close()
'''

SETTRACE = '''
import collections, json, sys
hits, chosen = collections.Counter(), set()
def profile(f):
    chosen.add(f.__code__)
    return f
def local(frame, event, arg):
    if event == "line":
        hits[frame.f_lineno] += 1
    return local
def trace(frame, event, arg):
    return local if frame.f_code in chosen else None
path = sys.argv[1]
code = compile(open(path).read(), path, "exec")
sys.settrace(trace)
exec(code, {"__name__": "__main__", "profile": profile})
sys.settrace(None)
print(json.dumps(hits))
'''


def lines(recording, *options):
    rows = recording.show("--lines", "--json", *options).json["sections"]["lines"]["rows"]
    return {row["line"]: row for row in rows if row["line"] and row["hits"]}


def test_lecture_sorts(harness, python, script):
    """The hits of every line are those that sys.settrace counts."""
    app, truth = script(SORTS, "sorts.py"), script(SETTRACE, "truth.py")
    answer = subprocess.run([python, truth, app], stdout=subprocess.PIPE, check=True).stdout
    expected = {int(line): n for line, n in json.loads(answer).items()}
    made = record(harness, [python, app], options=["--lines", "@profile"])
    assert made.made.status == 0, made.made
    found = {line: row["hits"] for line, row in lines(made).items()}
    assert found == expected


def test_chosen_by_patterns(harness, some_python, script):
    """Several, separated by commas or by options; what is not chosen is not counted."""
    app = script("""
        def one(): return 1
        def two(): return 2
        def three(): return 3
        def four(): return 4
        one(), two(), three(), four()
    """)
    made = record(harness, [some_python, app],
                  options=["--lines", "app:on*,__main__:two", "--lines", "*:three"])
    assert {row["function"] for row in lines(made).values()} == {"one", "two", "three"}


def test_line_times(harness, some_python, script):
    made = record(harness, [some_python, script("""
        import time
        def sleeper(n):
            for _ in range(n):
                time.sleep(0.02)
                if n: pass
        sleeper(5)
    """)], options=["--lines", "app:sleeper"])
    found = lines(made)
    assert found[4]["hits"] == 5 and 0.1e9 <= found[4]["time"] < 0.4e9
    assert found[5]["time"] < found[4]["time"] / 4 and found[4]["source"].strip().startswith("time")


MEMORY = '''
@profile
def my_func():
    a = [1] * (10 ** 6)
    b = [2] * (2 * 10 ** 7)
    del b
    return a

if __name__ == '__main__':
    my_func()
'''


def test_lecture_memory(harness, python, script):
    """152.6 MiB at the line of b, and away again at the next."""
    made = record(harness, [python, script(MEMORY)],
                          options=["--lines", "@profile", "--line-memory", "--rss"])
    assert made.made.status == 0, made.made
    found = lines(made)
    big = 2 * 10 ** 7 * 8
    assert abs(found[4]["allocated"] - big) < 8192 and abs(found[4]["net"] - big) < 8192
    assert abs(found[4]["peak"] - big) < 8192
    assert abs(found[5]["net"] + big) < 8192 and found[5]["peak"] < 65536
    assert abs(found[3]["net"] - 8 * 10 ** 6) < 65536
    assert abs(found[4]["rss"] - big) < 2 << 20 and abs(found[5]["rss"] + big) < 2 << 20
    shown = made.show("--lines").stdout
    assert "152.6 MiB" in shown and "del" in shown


# What line_profiler and memory_profiler have of importance here: where their decorators are defined,
# what these return, and that the latter watches by sys.settrace.
PACKAGES = {
    "line_profiler/__init__.py": """
        from .explicit_profiler import profile
        """,
    "line_profiler/explicit_profiler.py": """
        import os
        from .line_profiler import LineProfiler
        class GlobalProfiler:
            def __init__(self):
                self.enabled, self._profile = bool(os.environ.get("LINE_PROFILE")), LineProfiler()
            def __call__(self, func):
                return self._profile(func) if self.enabled else func
        profile = GlobalProfiler()
        """,
    "line_profiler/line_profiler.py": """
        from .profiler_mixin import Mixin
        class LineProfiler(Mixin):
            def __call__(self, func):
                return self.wrap_callable(func)
        """,
    "line_profiler/profiler_mixin.py": """
        import functools
        class Mixin:
            def wrap_callable(self, func):
                if isinstance(func, property):
                    return property(self.wrap_callable(func.fget))
                if isinstance(func, (classmethod, staticmethod)):
                    return type(func)(self.wrap_callable(func.__func__))
                @functools.wraps(func)
                def wrapper(*args, **kwds):
                    return func(*args, **kwds)
                return wrapper
        """,
    "memory_profiler.py": """
        import collections, functools, sys
        class LineProfiler:
            def __init__(self):
                self.codes, self.hits = set(), collections.Counter()
            def __call__(self, func=None, precision=1):
                if func is None:
                    return lambda f: self(f, precision)
                self.codes.add(func.__code__)
                def f(*args, **kwds):
                    before = sys.gettrace()
                    sys.settrace(self.trace)
                    try:
                        return func(*args, **kwds)
                    finally:
                        sys.settrace(before)
                return f
            def trace(self, frame, event, arg):
                if frame.f_code in self.codes:
                    kept = [bytearray(100000) for _ in range(50)]
                    self.hits[event] += 1
                return self.trace
        def profile(func=None, stream=None, precision=1):
            if func is None:
                def inner_wrapper(f):
                    return profile(f, stream, precision)
                return inner_wrapper
            @functools.wraps(wrapped=func)
            def wrapper(*args, **kwargs):
                prof = LineProfiler()
                value = prof(func)(*args, **kwargs)
                print(func.__name__, sorted(prof.hits.items()))
                return value
            return wrapper
        """,
}
DECORATED = """
    import functools
    from {package} import profile
    {wrap}
    class Thing:
        @profile
        def method(self, n):
            for i in range(n):
                self.got = bytearray(10 ** 7)
            return n
        @staticmethod
        @profile
        def fails(n):
            if n:
                return Thing.fails(n - 1)
            raise ValueError(n)
    @profile{options}
    def outer(n):
        total = Thing().method(n)
        try:
            Thing.fails(2)
        except ValueError:
            total += 1
        return total
    print(outer(3), outer(4))
"""


@pytest.mark.parametrize("package", ["line_profiler", "line_profiler enabled", "memory_profiler",
                                     "memory_profiler itself"])
def test_decorators_of_packages(harness, python, script, tmp_path, package):
    """A script that imports its decorator from an installed package runs and prints as alone, and
    the lines of what it decorated are counted."""
    for name, text in PACKAGES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
    wrap = "profile = __import__('memory_profiler').LineProfiler()" if "itself" in package else ""
    app = script(DECORATED.format(package=package.split()[0], wrap=wrap,
                                  options="(precision=4)" if package.startswith("memory") else ""))
    command = ["/usr/bin/env", f"LINE_PROFILE={'1' if 'enabled' in package else ''}", python, app]
    alone = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    made = record(harness, command, options=["--lines", "@profile", "--line-memory"])
    assert made.made.status == 0 and made.made.stdout == alone, made.made
    found = lines(made)
    hits = {row["source"].strip(): row["hits"] for row in found.values()}
    assert hits == {"for i in range(n):": 9, "self.got = bytearray(10 ** 7)": 7, "return n": 2,
                    "if n:": 6, "return Thing.fails(n - 1)": 4, "raise ValueError(n)": 2,
                    "total = Thing().method(n)": 2, "try:": 2, "Thing.fails(2)": 2,
                    "except ValueError:": 2, "total += 1": 2, "return total": 2}
    taken = {row["source"].strip(): row["allocated"] for row in found.values()}
    assert abs(taken["self.got = bytearray(10 ** 7)"] - 7e7) < 1e5
    assert taken["return n"] < 1e5 and taken["if n:"] < 1e5  # what the package takes is no line's


def test_trace_hook_beside_lines(harness, python, script):
    """The program's own trace hook gets the events that it gets alone, and lines are counted."""
    app = script("""
        import os, sys
        seen = []
        def local(frame, event, arg):
            seen.append((frame.f_code.co_name, event, frame.f_lineno))
            return local
        def trace(frame, event, arg):
            seen.append((frame.f_code.co_name, event, frame.f_lineno))
            return local if frame.f_code.co_name != "unseen" else None
        def inner(n):
            return n + 1
        def unseen(n):
            return inner(n)
        def chosen(n):
            for i in range(n):
                inner(i)
            return unseen(n)
        def forks():
            child = os.fork()
            if not child:
                inner(1)
                os._exit(len(seen))
            return os.waitpid(child, 0)[1]
        def switches():
            one = 1
            sys.settrace(None)
            return one
        def often(n):
            for _ in range(n):
                sys.settrace(trace)
                sys.settrace(None)
        sys.settrace(trace)
        chosen(3)
        print(forks())
        assert sys.gettrace() is trace
        switches()
        assert sys.gettrace() is None
        for _ in range(5):
            often(3)
        chosen(2)
        print(seen)
    """)
    alone = subprocess.run([python, app], stdout=subprocess.PIPE, text=True, check=True).stdout
    made = record(harness, [python, app], options=["--lines", "app:chosen,app:switches,app:forks,app:often"])
    assert made.made.status == 0 and made.made.stdout == alone, made.made
    hits = {row["source"].strip(): row["hits"] for row in lines(made).values()}
    assert hits["for i in range(n):"] == 7 and hits["inner(i)"] == 5 and hits["return unseen(n)"] == 2
    assert any("trace hook inside" in note for note in made.report().notes) == (minor(python) < 12)


def test_a_getitem_that_is_hot(harness, python, script):
    """Interpreters may run it without a call where a subscript meets it often."""
    app = script("""
        class Table:
            def lookup(self, key):
                return key
            __getitem__ = lookup

        def run():
            table, total = Table(), 0
            for i in range(3000):
                total += table[i]
            return total
        print(run())
        """)
    made = record(harness, [python, app], options=["--lines", "app:*lookup"])
    assert made.made.stdout == "4498500\n"
    assert {line: row["hits"] for line, row in lines(made).items()} == {3: 3000}
