"""Functions whose lines are counted."""

from . import _library

_waiting = []  # chosen before there was a recording


def profile_lines(function=None, **_):
    """Decorator: hits and time of each line, when the program is recorded; else nothing. The
    function itself is returned, not a wrapper."""
    if function is None:
        return profile_lines
    library = _library.loaded()
    if not (library and library.sonde_is_traced()):
        _waiting.append(function)
    elif library.sonde_python_lines(function) != 0:
        raise TypeError(f"{function!r} is no function of Python")
    return function


def begin(library):
    """A recording begins: those that were chosen before are counted in it."""
    for function in _waiting:
        library.sonde_python_lines(function)
