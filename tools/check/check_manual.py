"""man, and mandoc where it is installed, accept the manual pages that sonde prints."""

import shutil
import subprocess

from source import BUILD, finish, skip

pages = sorted([*BUILD.glob("src/cmd/*.1"), *BUILD.glob("src/cmd/*.5")])
if not shutil.which("man"):
    skip("man is not installed")
if not pages:
    finish(["no manual pages in the build"])

faults = []
for page in pages:
    done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", str(page)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace")
    faults += [f"{page.name}: {line}" for line in done.stderr.splitlines()]
    if "NAME" not in done.stdout and "NAME" not in done.stdout.replace("\b", ""):
        faults.append(f"{page.name}: man shows no NAME section")
if shutil.which("mandoc"):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *map(str, pages)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # An empty date is wanted: the page is made from the program, not written on a day.
    faults += [line for line in done.stdout.splitlines() if "missing date" not in line]
finish(faults)
