"""Code that a program compiles while it runs: Node's JavaScript, with names where it tells them."""

import shutil

import pytest

pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")

SCRIPT = """
function hotLoop(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) | 0; return x }
function outer() { let t = 0; for (let i = 0; i < 40; i++) t += hotLoop(1e7); return t }
console.log(outer() !== 0)
"""
NAMELESS = "--perf-basic-prof"


@pytest.fixture
def run_node(harness, tmp_path):
    def call(*options):
        script = tmp_path / "loop.js"
        script.write_text(SCRIPT, encoding="ascii")
        return harness(shutil.which("node"), *options, script, cwd=tmp_path).report()
    return call


def js(report, function):
    """Percent of everything with this function of the script on the stack."""
    return sum(row["total_percent"] for row in report.rows("functions")
               if row["name"].startswith("JS:") and f"{function} " in row["name"])


def test_functions_have_their_names(run_node):
    report = run_node("--perf-basic-prof", "--interpreted-frames-native-stack")
    assert js(report, "hotLoop") > 60, report.rows("functions")[:5]
    assert js(report, "outer") >= js(report, "hotLoop") - 1, "stacks go through compiled code"
    assert not any(NAMELESS in note for note in report.notes), report.notes


def test_without_names_the_report_says_how_to_get_them(run_node):
    report = run_node()
    assert any(NAMELESS in note for note in report.notes), report.notes
    assert report.share("_start") > 90, "stacks go through compiled code"
