"""libsonde.so needs only the symbols of tools/check/agent_symbols.txt, and libc alone."""

import pathlib
import subprocess

from source import BUILD, finish, skip

LIBRARY = BUILD / "src/agent/libsonde.so"
ALLOWED = pathlib.Path(__file__).with_name("agent_symbols.txt")


def output_of(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


if not LIBRARY.exists():
    skip("libsonde.so is not built")

allowed = {line.split()[0] for line in ALLOWED.read_text().splitlines()
           if line.strip() and not line.startswith("#")}
needed = {line.split()[-1].partition("@")[0]
          for line in output_of("nm", "-D", "--undefined-only", str(LIBRARY)).splitlines()}
faults = [f"libsonde.so: {name} is not in {ALLOWED.name}; if it is safe inside any program at any "
          "moment, say there why" for name in sorted(needed - allowed)]
for line in output_of("readelf", "-d", str(LIBRARY)).splitlines():
    if "(NEEDED)" in line and "libc.so" not in line and "ld-linux" not in line:
        faults.append(f"libsonde.so: links more than libc: {line.split('[')[-1].rstrip(']')}")
finish(faults)
