"""Where libsonde.so and the command `sonde` are, and the functions of the former."""

import ctypes
import os
import shutil

PLACES = ("../agent/libsonde.so", "../lib/sonde/libsonde.so",
          "../lib/x86_64-linux-gnu/sonde/libsonde.so", "../lib64/sonde/libsonde.so")


class NotAvailable(RuntimeError):
    """sonde cannot do here what was asked of it; the text says why and what helps."""


def _declare(library):
    text = ctypes.c_char_p
    library.sonde_is_traced.argtypes = []
    for name in ("sonde_span_begin", "sonde_span_end", "sonde_mark"):
        getattr(library, name).argtypes = [text]
        getattr(library, name).restype = None
    library.sonde_counter.argtypes = [text, ctypes.c_int64]
    library.sonde_counter.restype = None
    library.sonde_memory.argtypes = [ctypes.POINTER(ctypes.c_int64)] * 2 + [ctypes.c_int]
    library.sonde_python_trace.argtypes = [ctypes.c_int]
    library.sonde_python_leave.restype = None
    library.sonde_python_lines.argtypes = [ctypes.py_object]
    return library


def preloaded():
    """The library if it came with the process, as under `sonde run`; else None."""
    library = ctypes.PyDLL(None)  # its functions are called with the interpreter's lock held
    return _declare(library) if hasattr(library, "sonde_is_traced") else None


_loaded = preloaded()


def loaded():
    """The library, if it is in the process by now."""
    return _loaded


def command():
    """The path of the command; $SONDE names another than the one on the path."""
    found = os.environ.get("SONDE") or shutil.which("sonde")
    if not found:
        raise NotAvailable("the command sonde is not on the PATH: install sonde, or name it in the "
                           "environment variable SONDE")
    return os.path.realpath(found)


def load():
    """The library from where the command lies. Its constructor reads the environment."""
    global _loaded
    folder = os.path.dirname(command())
    for place in PLACES:
        path = os.path.normpath(os.path.join(folder, place))
        if os.path.exists(path):
            _loaded = _declare(ctypes.PyDLL(path))
            return _loaded
    raise NotAvailable(f"libsonde.so is not beside {command()}")
