"""A file has at most 800 lines, a function at most 60."""

import ast

from source import c_code, files, finish, relative, scripts, text_of

FILE_LINES = 800
FUNCTION_LINES = 60


def c_functions(text):
    """(name line, lines) of each function: from its signature to its closing brace.

    In the house's format a body, and nothing else, opens with a brace alone in column 0.
    """
    lines = c_code(text).splitlines()
    for number, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        start = number
        while start > 0 and lines[start - 1].strip() and lines[start - 1][0] not in "}#/":
            start -= 1
            if lines[start][0] not in " \t":
                break
        end = number
        while end + 1 < len(lines) and not lines[end].startswith("}"):
            end += 1
        yield start, end - start + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno - 1, node.end_lineno - node.lineno + 1


def check(path, functions):
    text = text_of(path)
    lines = text.splitlines()
    if len(lines) > FILE_LINES:
        yield f"{relative(path)}: {len(lines)} lines, at most {FILE_LINES}"
    for start, count in functions(text):
        if count > FUNCTION_LINES:
            yield (f"{relative(path)}:{start + 1}: {count} lines, at most {FUNCTION_LINES}: "
                   f"{lines[start].strip()}")


c_files = files(".c", ".h")
python_files = sorted(set(files(".py")) | set(scripts("python3")))
finish([*(fault for path in c_files for fault in check(path, c_functions)),
        *(fault for path in python_files for fault in check(path, python_functions))])
