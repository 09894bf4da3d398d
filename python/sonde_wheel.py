"""Builds the wheel of python/sonde with nothing but the standard library, so that `pip install .`
works without a network: a build backend in the source tree (PEP 517)."""

import base64
import hashlib
import os
import re
import tarfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAME = "sonde"
ENTRY_POINTS = "[pytest11]\nsonde = sonde.pytest_plugin\n"


def version():
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as file:
        return re.search(r"version:\s*'([^']+)'", file.read()).group(1)


def metadata():
    return (f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version()}\n"
            "Summary: The Python side of the profiler sonde\nRequires-Python: >=3.8\n")


def sources():
    folder = os.path.join(ROOT, "python", NAME)
    for name in sorted(os.listdir(folder)):
        if name.endswith((".py", ".typed")):
            with open(os.path.join(folder, name), "rb") as file:
                yield f"{NAME}/{name}", file.read()


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_sdist = get_requires_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    information = f"{NAME}-{version()}.dist-info"
    files = [*sources(),
             (f"{information}/METADATA", metadata().encode()),
             (f"{information}/WHEEL", b"Wheel-Version: 1.0\nGenerator: sonde\n"
                                      b"Root-Is-Purelib: true\nTag: py3-none-any\n"),
             (f"{information}/entry_points.txt", ENTRY_POINTS.encode())]
    record = f"{information}/RECORD"
    lines = []
    wheel = f"{NAME}-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}")
            out.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content)
        out.writestr(record, "\n".join([*lines, f"{record},,", ""]))
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    name = f"{NAME}-{version()}"
    with tarfile.open(os.path.join(sdist_directory, f"{name}.tar.gz"), "w:gz") as out:
        for path in ("pyproject.toml", "meson.build", "python"):
            out.add(os.path.join(ROOT, path), f"{name}/{path}",
                    filter=lambda entry: None if "__pycache__" in entry.name else entry)
    return f"{name}.tar.gz"
