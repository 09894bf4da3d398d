"""Every header compiles alone."""

import concurrent.futures
import subprocess

from source import ROOT, files, finish, relative

FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c",
         "-Wno-missing-field-initializers", "-Wno-unused-variable", "-Wno-unused-const-variable",
         "-Isrc", "-Iinclude", "-"]


def check(header):
    name = relative(header)
    done = subprocess.run(["gcc", *FLAGS], input=f'#include "{header}"\n', text=True, cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode == 0:
        return None
    first = next((line for line in done.stdout.splitlines() if "error" in line), done.stdout)
    return f"{name}: does not compile alone: {first}"


headers = [path for path in files(".h") if relative(path).parts[0] in ("src", "include", "tests")]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    finish([fault for fault in pool.map(check, headers) if fault])
