"""Trees of processes: each is there, under its parent, with its own program and its own stacks."""

import shutil

import pytest


def by_name(report):
    """{program: [rows]}, by the last part of the first word of the command line, or its name."""
    found = {}
    for row in report.processes:
        word = (row["arguments"] or row["name"]).split()[0]
        found.setdefault(word.rpartition("/")[2], []).append(row)
    return found


def test_every_way_to_start_a_process(harness):
    report = harness("tree", 2000000).check()
    root, *children = report.processes
    assert root["name"] == "tree" and root["parent_pid"] is None
    assert [child["parent_pid"] for child in children] == [root["pid"]] * 4
    assert set(by_name(report)) == {"tree", "tree-exec", "tree-vfork", "tree-spawn"}
    expected = {"tree": 10, "tree-exec": 20, "tree-vfork": 20, "tree-spawn": 10}
    for name, percent in expected.items():
        row = by_name(report)[name][0]
        assert abs(row["self_percent"] - percent) < 3, row
    forked = by_name(report)["tree"][1]
    assert abs(forked["self_percent"] - 40) < 3
    for function, percent in (("in_parent", 10), ("in_fork", 40), ("in_exec", 50)):
        assert abs(report.share(function) - percent) < 3, function


def test_a_child_runs_what_its_parent_ran_when_it_forked(sonde, target, tmp_path):
    """Also if the parent runs another program by now."""
    path, script = tmp_path / "r.sonde", f"(for i in {{1..100000}}; do :; done; :) & exec {target('shares')}"
    assert sonde("run", "-o", path, "--", "bash", "-c", script).status == 0
    parent, child = sonde("report", path, "--processes", "--json").json["sections"]["processes"]["rows"]
    assert parent["name"] == "shares" and parent["arguments"] == str(target("shares"))
    assert child["name"] == "bash" and child["arguments"] == f"bash -c {script}" and child["programs"] == 0


def test_vfork_spawn_and_clone(harness):
    report = harness("spawn", 20).check()
    root, *children = report.processes
    assert len(children) == 60
    assert {child["parent_pid"] for child in children} == {root["pid"]}


def test_exec_chain_is_one_process(harness):
    """T8: each program of the chain is known, and the samples of all are the one process's."""
    report = harness("execchain", 5, 50000).check()
    (only,) = report.processes
    assert only["programs"] == 6
    assert report.share("link_of_chain") > 90
    assert only["self"] > 0.8 * 300e6


def test_no_follow_leaves_children_out(harness):
    report = harness("tree", 2000000, options=["--no-follow"]).report()
    (only,) = report.processes
    assert only["name"] == "tree"
    assert report.share("in_parent") > 95
    assert report.share("in_fork") == report.share("in_exec") == 0


def test_grandchildren_have_the_right_parents(harness):
    report = harness("/bin/sh", "-c", "sh -c 'sleep 0.1; true'; sleep 0.1").record().report(status=None)
    rows = {row["pid"]: row for row in report.processes}

    def parents(row):
        while row["parent_pid"] is not None:
            row = rows[row["parent_pid"]]
            yield row["name"]
    sleeps = sorted(list(parents(row)) for row in rows.values() if row["name"] == "sleep")
    assert sleeps == [["sh"], ["sh", "sh"]]


HEADERS = "#include <stdio.h>\n#include <string.h>\n"
FUNCTION = """
int function_{n}(const char *text)
{{
    char buffer[100];
    snprintf(buffer, sizeof buffer, "%s %d", text, {n});
    return (int)strlen(buffer);
}}
"""


@pytest.fixture
def project(tmp_path):
    """A program of eight files, each of which takes a compiler a while, and a Makefile."""
    names = [f"part{n}" for n in range(8)]
    for n, name in enumerate(names):
        functions = "".join(FUNCTION.format(n=n + 8 * k) for k in range(60))
        (tmp_path / f"{name}.c").write_text(HEADERS + functions)
    (tmp_path / "main.c").write_text("int function_0(const char *);\n"
                                     "int main(void) { return function_0(\"a\") != 3; }\n")
    objects = " ".join(f"{name}.o" for name in ["main", *names])
    (tmp_path / "Makefile").write_text(f"program: {objects}\n\t$(CC) -o $@ $^\n"
                                       "%.o: %.c\n\t@echo $<; $(CC) -O2 -c -o $@ $<\n")
    return tmp_path


def test_a_build(harness, project):
    """make -j2: every compiler, assembler and linker with its parent; whole stacks."""
    for program in "make", "cc":
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")
    run = harness(shutil.which("make"), "-j2", options=["--rate", 2000], cwd=project, timeout=120)
    report = run.report()
    assert (project / "program").exists()
    rows = {row["pid"]: row for row in report.processes}
    names = {}
    for row in report.processes:
        names.setdefault(row["name"], []).append(row)
    assert len(names["cc1"]) == len(names["as"]) == 9
    assert len(names["collect2"]) == 1
    assert len(names["ld"]) == 1
    assert len(names["sh"]) == 9
    chain, row = [], names["cc1"][0]
    while row:
        chain.append(row["name"])
        row = rows.get(row["parent_pid"])
    assert chain == ["cc1", "cc", "sh", "make"]
    assert all(row["status"] == 0 for row in rows.values())
    stacks = report.profiler
    assert stacks["stacks"] > 300 and stacks["stacks_cut"] <= 0.01 * stacks["stacks"], stacks
    report.check_accounts()
