"""F1 to F8: files that are not what they should be. A sentence and a status, or what can be had of
them with a warning; never a crash, and never without an end."""

import os
import random
import shutil
import time

import pytest

from elf import COMPRESSED, Elf
from runs import run

DEBUG = [".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_aranges",
         ".debug_rnglists", ".debug_loclists", ".debug_line_str"]
TABLES = [".symtab", ".strtab", ".eh_frame", ".eh_frame_hdr", ".shstrtab", ".comment"]


@pytest.fixture
def run_damaged(harness, target, environment, tmp_path):
    """run_damaged(damage) -> the report of shares, whose copy `damage` has changed."""
    good = run([target("shares"), 60000], env=environment)

    def call(damage, name="damaged"):
        elf = Elf(target("shares"))
        damage(elf)
        program = elf.write(tmp_path / name)
        recording = harness(program, "60000", options=["--rate", "2000"], timeout=30).record()
        assert recording.made.status == 0 and recording.made.stdout == good.stdout, recording.made
        recording.show("--modules")
        report = recording.report()
        assert report.facts("run")["complete"] == "yes"
        assert report.facts("totals")["samples"] > 20
        report.check_accounts()
        return report
    return call


@pytest.mark.parametrize("section", TABLES)
def test_f1_scrambled_tables(run_damaged, section):
    run_damaged(lambda elf: elf.scramble(section, 1, 0.2))


def put_far_headers(elf):
    elf.put("<Q", 0x28, 1 << 60)


def put_overlapping_sections(elf):
    for index in range(1, elf.count):
        elf.put("<QQ", elf.headers + index * 64 + 24, 0, len(elf.data))


def put_sections_past_the_end(elf):
    for index in range(1, elf.count):
        elf.put("<QQ", elf.headers + index * 64 + 24, len(elf.data) - 8, 1 << 40)


def put_countless_sections(elf):
    """e_shnum of 0: the count stands in the first header's size, here 2**32."""
    elf.put("<H", 0x3c, 0)
    elf.put("<Q", elf.headers + 32, 1 << 32)


def put_cyclic_links(elf):
    for index in range(1, elf.count):
        elf.put("<I", elf.headers + index * 64 + 40, index)


@pytest.mark.parametrize("damage", [put_far_headers, put_overlapping_sections, put_cyclic_links,
                                    put_sections_past_the_end, put_countless_sections])
def test_f1_wrong_headers(run_damaged, damage):
    run_damaged(damage)


@pytest.mark.parametrize("section", DEBUG)
def test_f2_scrambled_debug_information(run_damaged, target, section):
    if section not in Elf(target("shares")).sections():
        pytest.skip(f"this compiler writes no {section}")
    for seed in range(2):
        run_damaged(lambda elf: elf.scramble(section, seed), f"{section[1:]}-{seed}")
    run_damaged(lambda elf: elf.fill(section, 0xff), f"{section[1:]}-ff")


def test_f2_good_symbols_beside_bad_debug_information(run_damaged):
    """Functions are still named by the symbol table."""
    report = run_damaged(lambda elf: elf.fill(".debug_abbrev", 0xff))
    assert report.share("main") > 80


def test_f3_a_compressed_section_that_claims_the_world(run_damaged, target, tmp_path):
    packed = tmp_path / "packed"
    made = run(["objcopy", "--compress-debug-sections=zlib", target("shares"), packed])
    if made.status != 0:
        pytest.skip("there is no objcopy that compresses")

    def claim(elf):
        elf.data = bytearray(packed.read_bytes())
        elf.__init__(packed)
        claimed = 0
        for name, (offset, _, flags) in elf.sections().items():
            if flags & COMPRESSED and name.startswith(".debug"):
                elf.put("<Q", offset + 8, 1 << 40)
                claimed += 1
        assert claimed
    report = run_damaged(claim)
    assert report.share("main") > 80


@pytest.mark.parametrize("how", ["replaced", "deleted", "rewritten"])
def test_f8_the_program_changes_while_it_runs(started, recording, sonde_path, target, tmp_path, how):
    """What was mapped is what is named: the file is held open from when it was seen."""
    program, path = tmp_path / "program", tmp_path / "r.sonde"
    shutil.copy(target("shares"), program)
    shutil.copy(target("steady"), tmp_path / "other")
    collector = started([sonde_path, "run", "-o", path, "--", program, 1200000])
    time.sleep(0.5)
    if how == "replaced":
        os.replace(tmp_path / "other", program)
    elif how == "deleted":
        program.unlink()
    else:
        program.unlink()
        shutil.copy(tmp_path / "other", program)
    assert collector.wait(60) == 0, collector.communicate()
    report = recording(path).report()
    report.check_shares(most=60, some=30, least=10)
    assert report.share("left") == report.share("right") == 0


LIBRARY = """
unsigned long spin(unsigned long n)
{
    volatile unsigned long i = 0;
    while (i < n)
        i++;
    return i;
}
"""
PROGRAM = """
#include <stdio.h>
unsigned long spin(unsigned long n);
int main(void)
{
    for (int i = 0; i < 10; i++)
        printf("%lu\\n", spin(40000000));
    return 0;
}
"""


def test_f8_a_library_is_truncated(started, recording, sonde_path, tmp_path):
    """Its debug information goes away behind the code, while it is being recorded."""
    (tmp_path / "library.c").write_text(LIBRARY)
    (tmp_path / "program.c").write_text(PROGRAM)
    library = tmp_path / "libspin.so"
    for command in (["cc", "-g", "-shared", "-fPIC", "-o", library, tmp_path / "library.c"],
                    ["cc", "-o", tmp_path / "program", tmp_path / "program.c", library,
                     f"-Wl,-rpath,{tmp_path}"]):
        if run(command).status != 0:
            pytest.skip("there is no C compiler")
    path = tmp_path / "r.sonde"
    collector = started([sonde_path, "run", "-o", path, "--", tmp_path / "program"])
    time.sleep(0.3)
    keep = max(offset + size for name, (offset, size, _) in Elf(library).sections().items()
               if name in (".text", ".fini", ".data", ".got.plt", ".dynamic"))
    os.truncate(library, keep)
    output = collector.communicate(timeout=60)[0]
    assert collector.returncode == 0 and output == "40000000\n" * 10
    report = recording(path).report()
    assert "libspin.so" in {row["module"] for row in report.rows("functions")}
    assert report.facts("totals")["samples"] > 50


DEEP_NAME = """
    .text
    .globl {name}
    .type {name}, @function
{name}:
    movl $400000000, %ecx
1:  decl %ecx
    jnz 1b
    xorl %eax, %eax
    ret
    .size {name}, . - {name}
    .globl main
    .type main, @function
main:
    subq $8, %rsp
    call {name}
    addq $8, %rsp
    ret
    .size main, . - main
    .section .note.GNU-stack,"",@progbits
"""


NAMES = {"pointers": "_Z1f" + "P" * 20000 + "i", "nested": "_ZN" + "1a" * 20000 + "E",
         "templates": "_Z" + "3fooI" * 5000 + "i" + "E" * 5000, "digits": "_Z" + "9" * 300}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_f7_names_without_end(harness, tmp_path, name):
    (tmp_path / "deep.s").write_text(DEEP_NAME.format(name=name))
    built = run(["cc", "-o", tmp_path / "program", tmp_path / "deep.s"])
    if built.status != 0:
        pytest.skip("the assembler does not take it (another machine?)")
    recording = harness(tmp_path / "program").record()
    assert recording.made.status == 0
    assert recording.report().facts("totals")["samples"] > 5
    assert max(map(len, recording.show().stdout.splitlines())) < 200


@pytest.fixture(scope="module")
def sample(target, tmp_path_factory, sonde_path):
    """The bytes of a recording of several blocks."""
    path = tmp_path_factory.mktemp("sample") / "sample.sonde"
    made = run([sonde_path, "run", "--wall", "-o", path, "--", target("threads"), 1200000])
    assert made.status == 0, made
    return path.read_bytes()


def assert_answered(done):
    """It showed what there is, or said in one sentence why it cannot; nothing worse."""
    assert done.status in (0, 1), done
    if done.status == 0:
        assert done.stdout
    else:
        assert done.stdout or len(done.stderr.splitlines()) == 1, done
    assert "Sanitizer" not in done.stderr, done


def test_f6_cut_anywhere(sonde, sample, tmp_path):
    path = tmp_path / "cut.sonde"
    chance = random.Random(6)
    cuts = [0, 1, 7, 8, 12, 15, 16, 17, len(sample) - 1]
    for cut in cuts + [chance.randrange(len(sample)) for _ in range(20)]:
        path.write_bytes(sample[:cut])
        done = sonde("report", "--json", path, timeout=20)
        assert_answered(done)
        if done.stdout:
            notes = " ".join(note["text"] for note in done.json["sections"]["notes"]["notes"])
            assert "cut" in notes or "no end" in notes, (cut, notes)
        else:
            assert str(path) in done.stderr


def test_f6_bits_flipped(sonde, sample, tmp_path):
    path = tmp_path / "flipped.sonde"
    chance = random.Random(66)
    for _ in range(25):
        data = bytearray(sample)
        at = chance.randrange(16, len(data))
        data[at] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        done = sonde("report", "--json", path, timeout=20)
        assert_answered(done)
        if done.stdout:
            notes = " ".join(note["text"] for note in done.json["sections"]["notes"]["notes"])
            assert "damaged" in notes or "cut" in notes, (at, notes)


@pytest.mark.parametrize("command", [["report"], ["report", "--tree"], ["report", "--processes"],
                                     ["export", "-f", "pprof"], ["export", "-f", "folded"],
                                     ["graph", "-o", "OUT"], ["symbolize"]])
def test_f6_every_reader_takes_damaged_files(sonde, sample, tmp_path, commands, command):
    if command[0] not in commands:
        pytest.skip(f"there is no sonde {command[0]}")
    chance = random.Random(666)
    words = [str(tmp_path / "graph.html") if word == "OUT" else word for word in command]
    for turn in range(6):
        path = tmp_path / f"{turn}.sonde"
        data = bytearray(sample[:chance.randrange(len(sample) // 2, len(sample))])
        for _ in range(turn):
            data[chance.randrange(16, len(data))] ^= 0xff
        path.write_bytes(data)
        done = sonde(*words, path, timeout=20)
        assert done.status in (0, 1), done
        (tmp_path / "graph.html").unlink(missing_ok=True)


def test_f6_a_future_version(sonde, sample, tmp_path):
    path = tmp_path / "future.sonde"
    path.write_bytes(sample[:8] + b"\xff\xff" + sample[10:])
    done = sonde("report", path)
    assert done.status == 1 and "newer sonde" in done.stderr and str(path) in done.stderr


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "text", "zeros", "random"])
def test_f6_what_is_no_recording(sonde, tmp_path, kind):
    path = tmp_path / "odd"
    if kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.write_bytes({"empty": b"", "text": b"hello\n" * 1000, "zeros": bytes(100000),
                          "random": random.Random(1).randbytes(100000)}[kind])
    done = sonde("report", path)
    assert done.status == 1 and not done.stdout, done
    assert len(done.stderr.splitlines()) == 1 and str(path) in done.stderr, done
