"""%sonde and %%sonde in IPython: records a statement or a cell, then shows the report.

    %load_ext sonde
    %sonde [--trace] [-o FILE] statement
    %%sonde [--trace] [-o FILE]
"""

import os
import shlex
import subprocess
import tempfile

from . import _library
from .profiler import Profiler


def _options(line):
    """({options of the profiler}, what is left of the line)"""
    options, rest = {}, line.strip()
    while rest.startswith("-"):
        word, _, rest = rest.partition(" ")
        rest = rest.lstrip()
        if word == "--trace":
            options["trace"] = True
        elif word in ("-o", "--output"):
            path, _, rest = rest.partition(" ")
            options["path"] = shlex.split(path)[0]
        else:
            raise ValueError(f"%sonde knows --trace and -o FILE, not {word}")
    return options, rest


def report(path, trace):
    done = subprocess.run([_library.command(), "report", *(["--calls"] if trace else []), path],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors="replace")


def run(shell, line, cell=None):
    options, rest = _options(line)
    kept = "path" in options
    if not kept:
        handle, options["path"] = tempfile.mkstemp(suffix=".sonde")
        os.close(handle)
    profiler = Profiler(**options)
    profiler.start()
    try:
        shell.run_cell(rest if cell is None else cell)
    finally:
        path = profiler.stop()
    if path:
        print(report(path, options.get("trace", False)))
    if not kept:
        os.unlink(options["path"])


def register(shell):
    shell.register_magic_function(lambda line: run(shell, line), "line", "sonde")
    shell.register_magic_function(lambda line, cell: run(shell, line, cell), "cell", "sonde")
