"""Calls that nobody may make, or only some rooms may, beyond those that src/base/banned.h poisons."""

import re

from source import ROOT, c_code, files, finish, relative, text_of

EVERYWHERE = {
    "system": "runs a shell; use fork and exec",
    "popen": "runs a shell; use fork and exec",
    "alloca": "has no bound",
    "sscanf": "overflows silently; use strtoul or cmd/quantity.h",
    "scanf": "overflows silently",
    "fscanf": "overflows silently",
    "rand": "is no random number; use getrandom",
    "strerror_r": "exists in two kinds; use error_errno",
    "getenv_s": "is not portable",
    "vfork": "shares memory with the child; use fork or posix_spawn",
}
# Only commands print and decide how the process ends.
PRINTS = ("printf", "puts", "putchar", "perror", "vprintf", "exit", "err", "errx", "warn", "warnx")
# A forked child has no one to return to.
MAY_EXIT = {"_exit": ("cmd", "main.c", "capture", "live", "symbol"), "abort": ("base",)}
# Only with a handler does signal() differ from system to system.
SIGNAL_HANDLER = re.compile(r"(?<![\w.>])signal\s*\((?![^;]*\bSIG_(?:DFL|IGN)\s*\))")
CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")


def check_call(room, name):
    """Why `name` may not be called in `room`, or None."""
    if name in EVERYWHERE:
        return f"{name}() {EVERYWHERE[name]}"
    if name in PRINTS and room not in ("cmd", "main.c"):
        return f"{name}() belongs to cmd/ and main.c alone"
    if name in MAY_EXIT and room not in MAY_EXIT[name]:
        return f"{name}() is only for {', '.join(MAY_EXIT[name])}"
    return None


def check_file(path):
    room = path.relative_to(ROOT / "src").parts[0]
    code = c_code(text_of(path))
    faults = []
    for found in CALL.finditer(code):
        why = check_call(room, found[1])
        if why:
            line = code.count("\n", 0, found.start()) + 1
            faults.append(f"{relative(path)}:{line}: {why}")
    for found in SIGNAL_HANDLER.finditer(code):
        line = code.count("\n", 0, found.start()) + 1
        faults.append(f"{relative(path)}:{line}: signal() with a handler is unclear; use sigaction")
    if room not in ("cmd", "main.c"):
        for found in re.finditer(r"\b(stdout|stderr)\b", code):
            line = code.count("\n", 0, found.start()) + 1
            faults.append(f"{relative(path)}:{line}: {found[1]} belongs to cmd/ and main.c alone")
    return faults


finish([fault for path in files(".c", ".h") if relative(path).parts[0] == "src"
        for fault in check_file(path)])
