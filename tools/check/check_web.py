"""The page's TypeScript has the types it claims; no file is too long."""

import subprocess

from source import ROOT, files, finish, relative, skip, text_of

FILE_LINES = 800
COMPILER = ROOT / "web/node_modules/.bin/tsc"

if not COMPILER.exists():
    skip("web/node_modules is not there: build first")

done = subprocess.run([COMPILER, "--noEmit", "-p", ROOT / "web"], cwd=ROOT, text=True,
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
faults = [line for line in done.stdout.splitlines() if line.strip()]
if done.returncode and not faults:
    faults.append("tsc failed")
for path in files(".ts", ".tsx", ".mjs"):
    lines = len(text_of(path).splitlines())
    if lines > FILE_LINES:
        faults.append(f"{relative(path)}: {lines} lines, at most {FILE_LINES}")
finish(faults)
