"""What the checks share: the files of the repository, C text without comments, reporting."""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("SONDE_BUILD", "build")
SKIP_STATUS = 77

# A comment, a string or a character constant, whichever starts first.
C_OPAQUE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)


def files(*endings):
    """Paths below the root, tracked or about to be, with one of the endings (all if none)."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:  # an unpacked archive
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
        names = [name for name in names if not name.startswith("build")]
    return [ROOT / name for name in sorted(set(names))
            if (ROOT / name).is_file() and (not endings or name.endswith(endings))]


def text_of(path):
    return path.read_text(encoding="utf-8", errors="replace")


def c_code(text):
    """C with comments blanked and strings emptied; line numbers stay as they were."""
    def blank(found):
        piece = found[0]
        if piece[0] in "\"'":
            return piece[0] * 2
        return "\n" * piece.count("\n") or " "
    return C_OPAQUE.sub(blank, text)


def scripts(interpreter):
    """Files whose first line names the interpreter."""
    found = []
    for path in files():
        with path.open("rb") as file:
            first = file.readline(100)
        if first.startswith(b"#!") and interpreter.encode() in first:
            found.append(path)
    return found


def relative(path):
    return path.relative_to(ROOT)


def finish(violations):
    """Prints a line for each violation and ends with the right status."""
    for line in violations:
        print(line)
    sys.exit(1 if violations else 0)


def skip(reason):
    print(reason)
    sys.exit(SKIP_STATUS)
