"""Functions whose lines are counted."""

from . import _library

_chosen = {}  # for recordings to come; one function of each code


def profile_lines(function=None, **_):
    """Decorator: hits and time of each line, when the program is recorded; else nothing. The
    function itself is returned, not a wrapper; what is no function of Python stays as it is."""
    if function is None:
        return profile_lines
    _chosen.setdefault(id(getattr(function, "__code__", function)), function)
    library = _library.loaded()
    if library and library.sonde_is_traced():
        library.sonde_python_lines(function)
    return function


def begin(library):
    """A recording begins: those that were chosen before are counted in it."""
    for function in list(_chosen.values()):
        library.sonde_python_lines(function)
