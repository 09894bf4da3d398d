"""A room includes only itself and the rooms below it that docs/ARCHITECTURE.md lets it open onto."""

import re

from source import files, finish, relative, text_of, ROOT

BELOW_CMD = {"top", "monitor", "live", "serve", "store", "render", "formats", "analyze", "capture", "symbol", "profile",
             "recording", "cpython", "unwind", "wire", "base"}
ROOMS = {
    "main.c": BELOW_CMD | {"cmd"},
    "cmd": BELOW_CMD,
    "top": {"base"},
    "monitor": {"render", "analyze", "recording", "profile", "base"},
    "live": {"serve", "render", "formats", "analyze", "capture", "symbol", "recording", "profile",
             "base"},
    "serve": {"store", "render", "formats", "analyze", "recording", "profile", "base"},
    "store": {"recording", "profile", "base"},
    "render": {"analyze", "profile", "base"},
    "formats": {"recording", "profile", "unwind", "wire", "base"},
    "analyze": {"profile", "base"},
    "capture": {"recording", "profile", "symbol", "unwind", "cpython", "wire", "base"},
    "symbol": {"profile", "base"},
    "recording": {"profile", "wire", "base"},
    "profile": {"wire", "base"},
    "agent": {"unwind", "cpython", "wire"},
    "truth": set(),
    "cpython": {"wire"},
    "unwind": {"wire"},
    "wire": set(),
    "base": set(),
    "late": {"base"},
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def check_file(path):
    room = path.relative_to(ROOT / "src").parts[0]
    if room not in ROOMS:
        return [f"{relative(path)}: '{room}' is no room of docs/ARCHITECTURE.md"]
    faults = []
    text = text_of(path)
    for found in INCLUDE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        there, slash, name = found[1].partition("/")
        if not slash:
            faults.append(f"{relative(path)}:{line}: include \"{found[1]}\" by its room: "
                          f"\"{room}/{found[1]}\"")
        elif there != room and there not in ROOMS[room]:
            faults.append(f"{relative(path)}:{line}: {room}/ must not open onto {there}/")
        elif there != room and name.endswith("_internal.h"):
            faults.append(f"{relative(path)}:{line}: {found[1]} never leaves its room")
    return faults


finish([fault for path in files(".c", ".h") if relative(path).parts[0] == "src"
        for fault in check_file(path)])
