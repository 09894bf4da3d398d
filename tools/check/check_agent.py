"""libsonde.so needs libc alone, and of that only the symbols of tools/check/agent_symbols.txt; its
signal handlers only those under [handler] there."""

import collections
import pathlib
import subprocess

from source import BUILD, finish, skip

AGENT = BUILD / "src/agent"
LIBRARY = AGENT / "libsonde.so"
ALLOWED = pathlib.Path(__file__).with_name("agent_symbols.txt")
DEFINING = set("TtDdBbRrVvWwCu")


def output_of(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def read_allowed():
    sections = {"handler": set(), "library": set()}
    section = None
    for line in ALLOWED.read_text().splitlines():
        if line.startswith("["):
            section = sections[line.strip("[]")]
        elif line.strip() and not line.startswith("#"):
            section.add(line.split()[0])
    return sections["handler"], sections["library"]


def read_objects(archive):
    """{object: (symbols it defines, symbols it needs)}"""
    objects = collections.defaultdict(lambda: (set(), set()))
    for line in output_of("nm", "-A", str(archive)).splitlines():
        place, _, rest = line.rpartition(":")
        kind, name = rest.split()[-2:]
        objects[place][0 if kind in DEFINING else 1].add(name)
    return objects


def handler_needs():
    """What the handler's objects, and those they reach, take from outside; with who needs it."""
    reached = read_objects(AGENT / "libagent_handler.a")
    others = {**read_objects(AGENT / "libagent_unwind.a"),
              **read_objects(AGENT / "libagent_cpython.a")}
    while True:
        missing = set.union(*(needs for _, needs in reached.values()))
        missing -= set.union(*(defines for defines, _ in reached.values()))
        more = {name: symbols for name, symbols in others.items()
                if symbols[0] & missing and name not in reached}
        if not more:
            return {symbol: sorted(place.rpartition(":")[2] for place, (_, needs) in reached.items()
                                   if symbol in needs) for symbol in missing}
        reached.update(more)


if not LIBRARY.exists():
    skip("libsonde.so is not built")

in_handler, in_library = read_allowed()
faults = [f"a signal handler of the agent may call {name} ({', '.join(places)}), which is not "
          f"under [handler] in {ALLOWED.name}" for name, places in sorted(handler_needs().items())
          if name not in in_handler]
needed = {line.split()[-1].partition("@")[0]
          for line in output_of("nm", "-D", "--undefined-only", str(LIBRARY)).splitlines()}
faults += [f"libsonde.so: {name} is not in {ALLOWED.name}; if it is safe inside any program, say "
           "there why" for name in sorted(needed - in_handler - in_library)]
for line in output_of("readelf", "-d", str(LIBRARY)).splitlines():
    if "(NEEDED)" in line and "libc.so" not in line and "ld-linux" not in line:
        faults.append(f"libsonde.so: links more than libc: {line.split('[')[-1].rstrip(']')}")
finish(faults)
