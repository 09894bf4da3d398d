"""Each check of tools/check finds what it is there to find, and says where."""

import os
import shutil
import subprocess
import sys

import pytest

LONG_FUNCTION = "int f(void);\nint f(void)\n{\n" + "    ;\n" * 60 + "    return 0;\n}\n"

SEEDED = [
    ("check_layers", "src/wire/bad.c", '#include "capture/tree.h"\n',
     "src/wire/bad.c:1: wire/ must not open onto capture/"),
    ("check_layers", "src/capture/bad.c", '\n#include "symbol/x_internal.h"\n',
     "src/capture/bad.c:2: symbol/x_internal.h never leaves its room"),
    ("check_layers", "src/closet/bad.c", '#include "base/error.h"\n', "'closet' is no room"),
    ("check_headers", "src/base/bad.h", "size_t f(void);\n", "src/base/bad.h: does not compile"),
    ("check_banned", "src/base/bad.c", "/* system() */\nint f(void)\n{\n    return system(0);\n}\n",
     "src/base/bad.c:4: system() runs a shell"),
    ("check_banned", "src/profile/bad.c", "int x = puts(\"a\");\n",
     "src/profile/bad.c:1: puts() belongs to cmd/"),
    ("check_banned", "src/capture/bad.c", "int f(void)\n{\n    signal(1, handler);\n}\n",
     "src/capture/bad.c:3: signal() with a handler"),
    ("check_banned", "src/analyze/bad.c", "int f(void)\n{\n    _exit(1);\n}\n",
     "src/analyze/bad.c:3: _exit() is only for"),
    ("check_size", "src/base/bad.c", LONG_FUNCTION, "src/base/bad.c:2: 64 lines, at most 60"),
    ("check_size", "src/base/bad.c", "\n" * 801, "801 lines, at most 800"),
    ("check_format", "src/base/bad.c", "int  x;\n", "src/base/bad.c:1:4: not formatted"),
    ("check_words", "docs/bad.md", "see /ho" "me/someone/x\n", "docs/bad.md:1: names a path"),
    ("check_words", "src/base/bad.c", "/* TO" "DO */\n", "src/base/bad.c:1: leaves work undone"),
    ("check_shell", "tools/bad", "#!/bin/bash\nrm $1\n", "tools/bad:2:4: note: Double quote"),
    ("check_python", "tools/bad.py", "x ==\n", "tools/bad.py: invalid syntax"),
    ("check_manual", "build/src/cmd/bad.1", ".TH a 1\n.XYZZY\n", "bad.1: "),
]


@pytest.fixture
def tree(tmp_path, root):
    shutil.copytree(root / "tools/check", tmp_path / "tools/check",
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / ".clang-format", tmp_path)
    return tmp_path


def check(tree, name):
    environment = {**os.environ, "SONDE_BUILD": "build", "GIT_CEILING_DIRECTORIES": str(tree.parent),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, f"tools/check/{name}.py"], cwd=tree, text=True,
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("name,path,content,expected", SEEDED,
                         ids=[f"{row[0]}-{number}" for number, row in enumerate(SEEDED)])
def test_a_seeded_fault_is_found(tree, name, path, content, expected):
    bad = tree / path
    bad.parent.mkdir(parents=True, exist_ok=True)
    bad.write_text(content)
    done = check(tree, name)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 1
    assert expected in done.stdout


def test_a_forked_child_may_reset_signals_and_exit(tree):
    good = tree / "src/symbol/good.c"
    good.parent.mkdir(parents=True)
    good.write_text("void f(void)\n{\n    signal(1, SIG_DFL);\n    signal(2, SIG_IGN);\n"
                    "    _exit(0);\n}\n")
    done = check(tree, "check_banned")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["check_layers", "check_banned", "check_size", "check_words"])
def test_a_good_file_passes(tree, name):
    good = tree / "src/base/good.c"
    good.parent.mkdir(parents=True, exist_ok=True)
    good.write_text('#include "base/error.h"\n\nint f(void)\n{\n    return 0; /* system() */\n}\n')
    done = check(tree, name)
    assert done.returncode == 0, done.stdout


def test_the_agent_may_need_only_what_is_listed(tree):
    folder = tree / "build/src/agent"
    folder.mkdir(parents=True)
    source, built = "int puts(const char *); int f(void) { return puts(\"a\"); }", tree / "f.o"
    subprocess.run(["gcc", "-c", "-fPIC", "-o", built, "-x", "c", "-"], input=source, text=True,
                   check=True)
    subprocess.run(["gcc", "-shared", "-o", folder / "libsonde.so", built], check=True)
    for name in "handler", "unwind", "cpython":
        subprocess.run(["ar", "rc", folder / f"libagent_{name}.a", built], check=True)
    done = check(tree, "check_agent")
    assert done.returncode == 1
    assert "a signal handler of the agent may call puts" in done.stdout
    assert "memcpy" not in done.stdout
