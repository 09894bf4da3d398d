"""pytest under sonde: --sonde records the tests, each a span; marks bound what a test may take.

    @pytest.mark.limit_memory("24 MB")     the most that it holds at once
    @pytest.mark.limit_leaks("1 MB")       what it leaves behind

Bytes are the allocator's own under `sonde run --heap`; else those of Python's allocators, as
tracemalloc counts them.
"""

import ctypes
import gc
import re
import tracemalloc

import pytest

from . import _library, spans
from .profiler import Profiler

UNITS = {"": 1, "K": 10 ** 3, "M": 10 ** 6, "G": 10 ** 9, "KI": 2 ** 10, "MI": 2 ** 20, "GI": 2 ** 30}


def parse_size(text):
    match = re.fullmatch(r"\s*([0-9.]+)\s*([KMG]i?)?B?\s*", str(text), re.IGNORECASE)
    if not match:
        pytest.fail(f"a limit is a size such as '24 MB' or '1.5 MiB', not {text!r}", pytrace=False)
    return int(float(match[1]) * UNITS[(match[2] or "").upper()])


def _show(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def pytest_addoption(parser):
    group = parser.getgroup("sonde")
    group.addoption("--sonde", metavar="FILE", nargs="?", const="pytest.sonde", default=None,
                    help="record the tests into FILE (pytest.sonde), each of them a span")
    group.addoption("--sonde-trace", action="store_true", help="with --sonde: every call")


def pytest_configure(config):
    config.addinivalue_line("markers", "limit_memory(size): fails a test that holds more at once")
    config.addinivalue_line("markers", "limit_leaks(size): fails a test that leaves more behind")
    path = config.getoption("--sonde")
    if path:
        config.sonde_profiler = Profiler(path, trace=config.getoption("--sonde-trace"))
        config.sonde_profiler.start()


def pytest_unconfigure(config):
    profiler = getattr(config, "sonde_profiler", None)
    if profiler:
        profiler.stop()


class Meter:
    """What the calling thread holds, and the most since it began."""

    def __init__(self):
        self.library = _library.loaded()
        self.own = False
        if self._agent(reset=1) is None:
            self.library = None
            self.own = not tracemalloc.is_tracing()
            if self.own:
                tracemalloc.start(1)
        gc.collect()
        self.before = self._now(reset=True)[0]

    def _agent(self, reset=0):
        held, high = ctypes.c_int64(), ctypes.c_int64()
        if not self.library or self.library.sonde_memory(held, high, reset) != 0:
            return None
        return held.value, high.value

    def _now(self, reset=False):
        if self.library:
            return self._agent(int(reset))
        if reset and hasattr(tracemalloc, "reset_peak"):
            tracemalloc.reset_peak()
        return tracemalloc.get_traced_memory()

    def end(self):
        """(most held, left behind), in bytes."""
        peak = self._now()[1] - self.before
        gc.collect()
        left = self._now()[0] - self.before
        if self.own:
            tracemalloc.stop()
        return peak, left


def _limit(item, name):
    mark = item.get_closest_marker(name)
    if not mark:
        return None
    if len(mark.args) != 1:
        pytest.fail(f"{name} takes one size, such as '24 MB'", pytrace=False)
    return parse_size(mark.args[0])


def _measured(item, runtest):
    def call():
        memory, leaks = _limit(item, "limit_memory"), _limit(item, "limit_leaks")
        meter = Meter() if memory is not None or leaks is not None else None
        peak = left = 0
        try:
            with spans.span(item.nodeid):
                runtest()
        finally:
            if meter:
                peak, left = meter.end()
        if memory is not None and peak > memory:
            pytest.fail(f"{item.nodeid} held {_show(peak)} at once; its limit is {_show(memory)}",
                        pytrace=False)
        if leaks is not None and left > leaks:
            pytest.fail(f"{item.nodeid} left {_show(left)} behind; its limit is {_show(leaks)}",
                        pytrace=False)
    return call


def pytest_collection_modifyitems(items):
    for item in items:
        if hasattr(item, "runtest"):
            item.runtest = _measured(item, item.runtest)
