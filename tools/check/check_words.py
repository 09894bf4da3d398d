"""No path of one machine, no host of a package registry, no note of work left undone."""

import pathlib
import re

from source import files, finish, relative

FORBIDDEN = [
    (re.compile(r"(?<![\w.$}~/-])/(?:home|Users)/\w+|(?<![\w.$}~/-])/(?:root|work|workspace)/\w"),
     "names a path of one machine"),
    (re.compile(r"\b(?:deb\.debian\.org|pypi\.org|registry\.npmjs\.org|files\.pythonhosted\.org|"
                r"proxy\.golang\.org|crates\.io)\b"), "names the host of a package registry"),
    (re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b"), "leaves work undone"),
]
SELF = pathlib.Path(__file__).resolve()

faults = []
for path in files():
    # Corpora and recordings are other people's bytes.
    if path == SELF or "corpus" in path.parts or path.suffix in (".sonde", ".gz", ".png"):
        continue
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        continue
    for number, line in enumerate(lines, 1):
        for pattern, what in FORBIDDEN:
            if pattern.search(line):
                faults.append(f"{relative(path)}:{number}: {what}: {line.strip()[:80]}")
finish(faults)
