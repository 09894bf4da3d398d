"""clang-format would change nothing."""

import shutil
import subprocess

from source import ROOT, files, finish, skip

if not shutil.which("clang-format"):
    skip("clang-format is not installed")

done = subprocess.run(["clang-format", "--dry-run", "-Werror", *map(str, files(".c", ".h"))],
                      cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
faults = []
seen = set()
for line in done.stdout.splitlines():
    name = line.partition(":")[0]
    if "error:" in line and name not in seen:  # one line a file is enough
        seen.add(name)
        where = line.replace(f"{ROOT}/", "").split(": error")[0]
        faults.append(f"{where}: not formatted; run clang-format -i {name.replace(f'{ROOT}/', '')}")
if done.returncode and not faults:
    faults = done.stdout.splitlines()
finish(faults)
