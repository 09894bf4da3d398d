"""python -m sonde run app.py: the command sonde, with this interpreter for Python files."""

import os
import sys

from . import _library


def arguments(words):
    """`run [OPTION]... app.py` has the interpreter put before the script (or -m, -c)."""
    if not words or words[0] != "run" or "--" in words:
        return words
    for i, word in enumerate(words[1:], 1):
        if word in ("-m", "-c") or (word.endswith((".py", ".pyz")) and not words[i - 1] == "-o"):
            return [*words[:i], "--", sys.executable, *words[i:]]
    return words


def main():
    try:
        command = _library.command()
    except _library.NotAvailable as error:
        sys.exit(f"sonde: {error}")
    os.execv(command, [command, *arguments(sys.argv[1:])])


if __name__ == "__main__":
    main()
