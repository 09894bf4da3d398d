# The line table of every code object of some large modules, and the line of every instruction by
# the interpreter's own reckoning. Runs on 3.6 and later.
#
#   K <which format: 0 lnotab, 1 ranges, 2 locations>
#   C <first line> <table in hex> <line of offset 0> <of offset 2> ...      -1: no line
import ctypes
import importlib.util
import sys
import tokenize
import types

MODULES = ["_pydecimal", "argparse", "ast", "asyncio.base_events", "inspect", "tarfile", "typing",
           "unittest.mock"]
line_of = ctypes.pythonapi.PyCode_Addr2Line
line_of.argtypes = [ctypes.py_object, ctypes.c_int]


def show(code):
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    lines = [line_of(code, offset) for offset in range(0, len(code.co_code), 2)]
    if sys.version_info >= (3, 10):
        told = [-1 if line is None else line for start, end, line in code.co_lines()
                for _ in range(start, end, 2)]
        assert told == lines, code
    print("C", code.co_firstlineno, "x" + table.hex(), *lines)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            show(constant)


print("K", 0 if sys.version_info < (3, 10) else 1 if sys.version_info < (3, 11) else 2)
for name in MODULES:
    path = importlib.util.find_spec(name).origin
    with tokenize.open(path) as source:
        show(compile(source.read(), path, "exec"))
