"""%sonde and %%sonde in IPython: records a statement or a cell, then shows the report.

    %load_ext sonde
    %sonde [--trace] [-o FILE] statement
    %%sonde [--trace] [-o FILE]
"""

import ast
import os
import re
import subprocess
import tempfile

from . import _library
from .profiler import Profiler

OPTION = re.compile(r"""(?:(-o|--output)[ =]+("[^"]*"|'[^']*'|\S+)|(--?[a-z][a-z-]*))\s*""")
USAGE = "[--trace] [-o FILE]"


def _refuse(sentence):
    try:
        from IPython.core.error import UsageError
    except ImportError:
        UsageError = ValueError
    raise UsageError(sentence)


def _options(line):
    """({options of the profiler}, what is left of the line)"""
    options, rest = {}, line.strip()
    while re.match("--?[a-z]", rest):
        match = OPTION.match(rest)
        output, path, word = match.groups()
        if word == "--trace":
            options["trace"] = True
        elif output:
            options["path"] = os.path.expanduser(path.strip("\"'"))
        else:
            _refuse(f"%sonde knows {USAGE}, not {word}")
        rest = rest[match.end():]
    return options, rest


def report(path, options, kept):
    done = subprocess.run([_library.command(), "report", *(["--calls"] if options.get("trace") else []),
                           path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors="replace")
    return text if kept else text.partition("\nNext\n")[0]  # what to do next with a file that is gone


def _work(shell, source):
    """A function that runs source as IPython takes it, without IPython's machinery on the stack."""
    text = shell.transform_cell(source)
    if shell.should_run_async(source, transformed_cell=text):
        return lambda: shell.run_cell(source) and None
    name = shell.compile.cache(text, shell.execution_count)
    tree = ast.parse(text, name)
    value = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        value = shell.compile(ast.Expression(tree.body.pop().value), name, "eval")
    body = shell.compile(tree, name, "exec")

    def run_it():
        exec(body, shell.user_ns)
        return None if value is None else eval(value, shell.user_ns)
    return run_it


def run(shell, line, cell=None):
    options, rest = _options(line)
    if cell is not None and rest:
        _refuse(f"%%sonde takes {USAGE} and then lines of its own, not {rest!r}")
    source = rest if cell is None else cell
    if not source.strip():
        _refuse(f"usage: %sonde {USAGE} statement, or %%sonde {USAGE} above a cell")
    work = _work(shell, source)
    kept = "path" in options
    if not kept:
        handle, options["path"] = tempfile.mkstemp(suffix=".sonde")
        os.close(handle)
    try:
        profiler = Profiler(**options)
        try:
            profiler.start()
        except RuntimeError as error:
            _refuse(str(error))
        try:
            return work()
        finally:
            path = profiler.stop()
            if path:
                print(report(path, options, kept))
    finally:
        if not kept:
            os.unlink(options["path"])


def register(shell):
    def line_magic(line):
        return run(shell, line)

    def cell_magic(line, cell):
        return run(shell, line, cell)

    line_magic.__doc__ = cell_magic.__doc__ = __doc__
    shell.register_magic_function(line_magic, "line", "sonde")
    shell.register_magic_function(cell_magic, "cell", "sonde")
