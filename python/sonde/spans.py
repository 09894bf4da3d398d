"""Spans, instants and counters that a program marks itself."""

import functools

from . import _library


def is_recorded():
    """Whether what this thread marks goes anywhere."""
    library = _library.loaded()
    return bool(library and library.sonde_is_traced())


def _text(name):
    return name.encode("utf-8", "replace").replace(b"\0", b" ")


class span:
    """``with sonde.span("load"):`` or ``@sonde.span("load")``."""

    __slots__ = ("name", "_bytes")

    def __init__(self, name):
        self.name = name
        self._bytes = _text(name)

    def __enter__(self):
        library = _library.loaded()
        if library:
            library.sonde_span_begin(self._bytes)
        return self

    def __exit__(self, *exception):
        library = _library.loaded()
        if library:
            library.sonde_span_end(self._bytes)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*arguments, **named):
            with span(self.name):
                return function(*arguments, **named)
        return inside


def mark(name):
    """An instant."""
    library = _library.loaded()
    if library:
        library.sonde_mark(_text(name))


def counter(name, value):
    """A curve of the process; values are whole numbers."""
    library = _library.loaded()
    if library:
        library.sonde_counter(_text(name), int(value))
