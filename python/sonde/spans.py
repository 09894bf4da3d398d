"""Spans, instants and counters that a program marks itself."""

import functools
import inspect

from . import _library


def is_recorded():
    """Whether what this thread marks goes anywhere."""
    library = _library.loaded()
    return bool(library and library.sonde_is_traced())


def _text(name):
    if not isinstance(name, str):
        raise TypeError(f"a name is text, not {name!r}")
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
        """As a decorator: what the function does is in the span, also what it does when resumed."""
        if inspect.iscoroutinefunction(function):
            async def inside(*arguments, **named):
                with span(self.name):
                    return await function(*arguments, **named)
        elif inspect.isgeneratorfunction(function):
            def inside(*arguments, **named):
                with span(self.name):
                    return (yield from function(*arguments, **named))
        else:
            def inside(*arguments, **named):
                with span(self.name):
                    return function(*arguments, **named)
        return functools.wraps(function)(inside)


def mark(name):
    """An instant."""
    text, library = _text(name), _library.loaded()
    if library:
        library.sonde_mark(text)


def counter(name, value):
    """A curve of the process; values are whole numbers of 64 bits."""
    text, number, library = _text(name), int(value), _library.loaded()
    if library:
        library.sonde_counter(text, max(-2 ** 63, min(number, 2 ** 63 - 1)))
