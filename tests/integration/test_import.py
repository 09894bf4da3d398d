"""`sonde import` and `merge`: other tools' files keep their sums on the way through."""

import collections
import fcntl
import gzip
import os
import re
import shutil
import subprocess
import termios
import time

import pytest

from runs import run
from test_export import TOTAL, pprof, raw_samples, recording  # noqa: F401 (fixtures)


def folded(sonde, path, *options):
    done = sonde("export", path, "-f", "folded", *options)
    assert done.status == 0 and not done.stderr, done
    stacks = collections.Counter()
    for line in done.stdout.splitlines():
        stack, _, count = line.rpartition(" ")
        stacks[stack] += int(count)
    return stacks


@pytest.mark.parametrize("name", ["go_cpu", "go_heap", "go_goroutine"])
def test_pprof_files(sonde, pprof, root, tmp_path, name):  # noqa: F811
    source = root / f"tests/fuzz/corpus/pprof/{name}.pb.gz"
    there, back = tmp_path / "a.sonde", tmp_path / "b.pb.gz"
    assert sonde("import", source, "-o", there).status == 0
    assert sonde("export", there, "-o", back).status == 0
    before, after = pprof(source, "-top", "-nodecount=100"), pprof(back, "-top", "-nodecount=100")
    assert [line for line in after.splitlines() if "%" in line] == \
        [line for line in before.splitlines() if "%" in line]
    types, samples = raw_samples(pprof(source, "-raw"))
    types_after, samples_after = raw_samples(pprof(back, "-raw"))
    assert dict(zip(types, [sum(c) for c in zip(*samples)])) == \
        dict(zip(types_after, [sum(c) for c in zip(*samples_after)]))


def test_through_all(sonde, recording, tmp_path):  # noqa: F811
    """recording -> pprof -> recording -> folded gives what recording -> folded gives."""
    packed, again = tmp_path / "a.pb.gz", tmp_path / "b.sonde"
    assert sonde("export", recording, "-o", packed).status == 0
    assert sonde("import", packed, "-o", again).status == 0
    assert folded(sonde, again, "--by-thread") == folded(sonde, recording, "--by-thread")
    plain = tmp_path / "plain"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    assert folded(sonde, plain) == folded(sonde, recording)


@pytest.mark.parametrize("weight", ["samples", "value"])
@pytest.mark.parametrize("name", ["pprof", "folded", "speedscope", "chrome-trace", "perf-script"])
def test_there_and_back(sonde, recording, tmp_path, name, weight):  # noqa: F811
    """Through a format that holds stacks every sum comes back, to the sample."""
    there, back = tmp_path / "there", tmp_path / "back.sonde"
    how = ("--event", "cpu", "--weight", weight)
    assert sonde("export", recording, "-f", name, "-o", there, *how).status == 0
    assert sonde("import", there, "-o", back).status == 0
    assert folded(sonde, back, "--weight", weight) == folded(sonde, recording, *how) != {}


def test_standard_input(sonde_path, recording, tmp_path):  # noqa: F811
    done = run(["sh", "-c", f"cat '{recording}' | '{sonde_path}' export - -f folded"])
    assert done.status == 0 and "main;ns::work(int) 60\n" in done.stdout, done
    text = tmp_path / "a.folded"
    text.write_text(done.stdout)
    done = run(["sh", "-c", f"cat '{text}' | '{sonde_path}' export - -f folded"])
    assert done.stdout == text.read_text()


def test_merge(sonde, recording, tmp_path):  # noqa: F811
    more = tmp_path / "more.folded"
    more.write_text("main;extra 8\n")
    both = tmp_path / "both.sonde"
    assert sonde("merge", recording, recording, "-o", both).status == 0
    assert folded(sonde, both) == collections.Counter(
        {stack: 2 * count for stack, count in folded(sonde, recording).items()})
    assert sonde("merge", recording, more, "-o", both, "--force").status == 0
    assert folded(sonde, both) == folded(sonde, recording)
    assert folded(sonde, both, "-e", "samples") == {"main;extra": 8}
    assert sum(folded(sonde, both).values()) == TOTAL


def test_merged_heaps_have_one_peak(sonde, target, tmp_path):
    """Who held it is told of the same instant as how much it was."""
    for name, mode in (("small", "inherited"), ("large", "tree")):
        assert sonde("run", "--heap", "-o", tmp_path / name, "--", target("heap"), mode).status == 0
    truth = sonde("report", tmp_path / "large", "--heap", "--json").json["sections"]
    for order in (("small", "large"), ("large", "small"), ("large", "large")):
        both = tmp_path / "both"
        assert sonde("merge", "--force", *(tmp_path / name for name in order), "-o", both).status == 0
        merged = sonde("report", both, "--heap", "--json").json["sections"]
        assert merged["heap"]["facts"]["peak"] == truth["heap"]["facts"]["peak"]
        assert sum(row["self"] for row in merged["functions"]["rows"]) == truth["heap"]["facts"]["peak"], order


def waiting(pipe):
    """Bytes in a pipe that nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), "little")


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def all_of(terminal):
    """What a terminal got whose other end is closed: the kernel brings it over in pieces."""
    said = b""
    while True:
        try:
            said += os.read(terminal, 65536)
        except OSError:
            os.close(terminal)
            return said.decode()


@pytest.mark.parametrize("slow", ["reading", "writing"])
def test_progress(sonde_path, environment, slow):
    """What takes a second says on a terminal how far it is; when it is done nothing of it is left."""
    terminal, theirs = os.openpty()
    process = subprocess.Popen([sonde_path, "export", "-", "-f", "csv"], env=environment,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    lines = "".join(f"main;step{i};leaf{i} 1\n" for i in range(20000)).encode()
    half = lines.index(b"\n", len(lines) // 2) + 1
    process.stdin.write(lines[:half])
    process.stdin.flush()
    if slow == "reading":
        until(lambda: waiting(process.stdin) == 0)  # it is at work, and waits for more
        time.sleep(1.2)
    process.stdin.write(lines[half:])
    process.stdin.close()
    if slow == "writing":
        until(lambda: waiting(process.stdout) > 30000)
        time.sleep(1.2)
    assert process.stdout.read().count(b"\n") == 20001
    assert process.wait() == 0
    said = all_of(terminal)
    assert slow in said and said.endswith("\r\x1b[K"), said


def collapse(text):
    """What perf script says, folded by the plainest means."""
    stacks = collections.Counter()
    for block in text.strip().split("\n\n"):
        names = []
        for line in block.splitlines()[1:]:
            found = re.match(r"\s+([0-9a-f]+) (.*) \((.*)\)$", line)
            names.append(re.sub(r"\+0x[0-9a-f]+$", "", found[2]))
        stacks[";".join(reversed(names))] += 1
    return stacks


def test_perf_script(sonde, target, tmp_path):
    if not shutil.which("perf"):
        pytest.skip("perf is not installed")
    data = tmp_path / "perf.data"
    made = run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "499", "-g", "-o", data,
                target("shares")])
    if made.status:
        pytest.skip("perf cannot record here")
    text = run(["perf", "script", "-i", data]).stdout
    (tmp_path / "perf.txt").write_text(text)
    truth = collapse(text)
    assert sum(truth.values()) > 50
    got = folded(sonde, tmp_path / "perf.txt")
    assert sum(got.values()) == sum(truth.values())
    named = {stack: count for stack, count in truth.items() if "[unknown]" not in stack}
    assert {stack: got[stack] for stack in named} == named


@pytest.mark.parametrize("content, reason", [
    (b"", "is empty"),
    (b"hello, world\n", "neither a recording"),
    (b"a;b 1\n" * 50 + b"a;b x\n", "byte 300: a folded stack"),
    (b"\x1f\x8b\x08\x00cut", "byte 0 of the unpacked data: the compressed data"),
])
def test_refusals(sonde, tmp_path, content, reason):
    path, out = tmp_path / "bad", tmp_path / "out.sonde"
    path.write_bytes(content)
    done = sonde("import", path, "-o", out)
    assert done.status == 1 and reason in done.stderr and len(done.stderr.splitlines()) == 1
    assert not out.exists()


@pytest.mark.parametrize("content", [
    b"main;a 10\r\nmain;b 5\r\n",
    b"\xef\xbb\xbfmain;a 10\nmain;b 5\n",
    gzip.compress(b"\xef\xbb\xbfmain;a 10\nmain;b 5", mtime=0),
    b"main;a\t10\nmain;b\t5\n",
    b"# a comment\n\nmain;a 4\nmain;b 5\nmain;a 6\n",
], ids=["returns", "mark", "packed", "tabs", "comments"])
def test_text_of_other_systems(sonde, tmp_path, content):
    path = tmp_path / "odd"
    path.write_bytes(content)
    assert folded(sonde, path) == {"main;a": 10, "main;b": 5}


def test_long_lines(sonde, tmp_path):
    path = tmp_path / "deep"
    path.write_text(";".join(["f"] * 60000) + " 3\n")
    assert folded(sonde, path) == {";".join(["f"] * 60000): 3}
    path.write_text(";".join(["f"] * 70000) + " 3\n")
    done = sonde("export", path, "-f", "folded")
    assert done.status == 1 and "65536" in done.stderr.replace(",", ""), done
