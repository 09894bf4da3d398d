"""Memory that does not come by a shared library's malloc: allocators that are linked into the program,
and what a program maps itself."""

import pathlib
import shutil

import pytest

from runs import run

LIBRARIES = pathlib.Path("/usr/lib/x86_64-linux-gnu")
KIB, MIB = 1 << 10, 1 << 20

BLOCKS = """
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #ifdef PREFIXED
    #define malloc je_malloc
    #define calloc je_calloc
    #define realloc je_realloc
    #define free je_free
    void *malloc(size_t), *calloc(size_t, size_t), *realloc(void *, size_t);
    void free(void *);
    #endif
    __attribute__((noinline)) void *site_malloc(void) { void *p = malloc(1000); memset(p, 1, 1000); return p; }
    __attribute__((noinline)) void *site_calloc(void) { return calloc(10, 50); }
    __attribute__((noinline)) void *site_realloc(void *p) { return realloc(p, 3000); }
    int main(void)
    {
        static void *kept[300];
        for (int i = 0; i < 300; i++)
            kept[i] = i < 200 ? site_malloc() : site_calloc();
        for (int i = 0; i < 50; i++)
            kept[i] = site_realloc(kept[i]);
        for (int i = 50; i < 150; i++)
            free(kept[i]);
        return puts("done") == EOF;
    }
    """

# A mapping for each block, and a free that has no room for a jump.
MAPPER = """
    #include <stddef.h>
    #include <string.h>
    #include <sys/mman.h>
    void *malloc(size_t n)
    {
        void *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    void free(void *p) { (void)p; }
    void *calloc(size_t a, size_t b) { return malloc(a * b); }
    void *realloc(void *p, size_t n) { void *q = malloc(n); return p && q ? memcpy(q, p, n < 9 ? n : 9) : q; }
    """

SITE_MAP = """
    #include <sys/mman.h>
    __attribute__((noinline)) void site_map(void)
    {
        mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        __asm__ volatile("");
    }
    """

MAPPINGS = """
    #define _GNU_SOURCE
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #define ANY -1, 0
    __attribute__((noinline)) char *site_map(size_t n)
    {
        return mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ANY);
    }
    __attribute__((noinline)) char *site_move(char *p, size_t from, size_t to)
    {
        return mremap(p, from, to, MREMAP_MAYMOVE);
    }
    __attribute__((noinline)) void *site_break(void) { return sbrk(64 << 10); }
    int main(void)
    {
        char *whole = site_map(8 << 20), *brief = site_map(3 << 20), *moved = site_map(1 << 20);
        munmap(whole + (2 << 20), 1 << 20);
        munmap(brief, 3 << 20);
        site_move(moved, 1 << 20, 4 << 20);
        if (site_move(whole + 1, 4096, 8192) != MAP_FAILED || site_move(whole, 1 << 20, 1ul << 60) != MAP_FAILED)
            return 1; /* neither leaves a trace */
        site_break();
        free(malloc(5000));
        return puts("done") == EOF;
    }
    """


@pytest.fixture
def built(tmp_path):
    """built(text, *flags) -> the program"""
    def make(text, *flags, language="c"):
        compiler = shutil.which("gcc")
        if not compiler:
            pytest.skip("there is no gcc")
        source = tmp_path / "program.c"
        source.write_text(text)
        made = run([compiler, "-O2", "-g", "-fno-builtin", "-fno-optimize-sibling-calls", "-o",
                    tmp_path / "program", "-x", language, source, "-x", "none", *flags])
        assert made.status == 0, made
        return tmp_path / "program"
    return make


@pytest.fixture
def heap_of(sonde, tmp_path, environment):
    """heap_of(program) -> the sections of its heap's screen; alone it prints the same."""
    def record(program, *options):
        path = tmp_path / "r.sonde"
        alone = run([program], env=environment)
        done = sonde("run", "--heap", *options, "-o", path, "--", program)
        assert (done.status, done.stdout) == (alone.status, alone.stdout) == (0, "done\n"), done
        answer = sonde("report", path, "--heap", "--top", "0", "--json")
        assert answer.status == 0, answer
        return answer.json["sections"]
    return record


def flags_of(allocator, root):
    bump = [root / "tests/targets/lib_bump.c"]
    names = ("malloc", "calloc", "realloc", "free")
    if allocator == "own":
        return bump
    if allocator == "own, not PIE":
        return [*bump, "-no-pie"]
    if allocator == "prefixed":
        made = ["-DPREFIXED", *bump, *(f"-D{name}=je_{name}" for name in names)]
        return made
    library = LIBRARIES / f"lib{allocator}{'.so' if allocator == 'mimalloc' else '.a'}"
    if not library.exists():
        pytest.skip(f"there is no {library.name}")
    return [library, "-lstdc++", "-lpthread", "-ldl", "-lm"]


@pytest.mark.parametrize("allocator", ["own", "own, not PIE", "prefixed", "jemalloc", "tcmalloc_minimal",
                                       "mimalloc"])
def test_an_allocator_that_is_linked_in(built, heap_of, root, allocator):
    sections = heap_of(built(BLOCKS, *flags_of(allocator, root)))
    live = {row["stack"].split()[0]: (row["count"], row["value"]) for row in sections["live"]["rows"]}
    assert live["site_malloc"] == (50, 50000)
    assert live["site_calloc"] == (100, 50000)
    assert live["site_realloc"] == (50, 150000)
    assert sections["profiler"]["facts"]["allocations_lost"] == 0
    assert sections["heap"]["facts"]["allocations"] >= 350


THROWN = """
    #include <cstdio>
    #include <new>
    static void *kept[101];
    __attribute__((noinline)) void *site_after() { return operator new(1000); }
    __attribute__((noinline)) bool fails()
    {
        volatile size_t much = size_t(1) << 60;
        try {
            kept[100] = operator new(much);
        } catch (const std::bad_alloc &) {
            return true;
        }
        return false;
    }
    int main()
    {
        bool failed = fails();
        for (int i = 0; i < 100; i++)
            kept[i] = site_after();
        return std::puts(failed ? "done" : "memory without end") == EOF;
    }
    """


@pytest.mark.parametrize("allocator", ["jemalloc", "tcmalloc_minimal"])
def test_an_allocator_that_throws(built, heap_of, root, allocator):
    """What comes after an allocation that failed is recorded as before it."""
    if not shutil.which("g++"):
        pytest.skip("there is no g++")
    sections = heap_of(built(THROWN, *flags_of(allocator, root), language="c++"))
    live = {row["stack"].split()[0]: (row["count"], row["value"]) for row in sections["live"]["rows"]}
    assert live["site_after"] == (100, 100000)


def test_one_that_cannot_be_hooked_is_named(built, sonde, tmp_path):
    """A function of one byte has no room for a jump. What it maps is told apart from what the program does."""
    (tmp_path / "mapper.c").write_text(MAPPER)
    text = BLOCKS.replace("int main", SITE_MAP + "int main").replace("return puts", "site_map(); return puts")
    program = built(text, tmp_path / "mapper.c", "-Os")
    done = sonde("run", "--heap", "-o", tmp_path / "r.sonde", "--", program)
    assert done.status == 0 and done.stdout == "done\n", done
    notes = sonde("report", tmp_path / "r.sonde", "--notes").stdout
    assert "an allocator of its own linked into it" in " ".join(notes.split()), notes
    sections = sonde("report", tmp_path / "r.sonde", "--heap", "--top", "0", "--json").json["sections"]
    assert [row["stack"].split()[0] for row in sections["mapped"]["rows"]] == ["site_map"]
    asked = {row["stack"].split()[0]: row["count"] for row in sections["for_allocator"]["rows"]}
    assert (asked["site_malloc"], asked["site_calloc"], asked["site_realloc"]) == (200, 100, 50)
    assert sections["heap"]["facts"]["allocations"] == 0 and sections["profiler"]["facts"]["allocations_lost"] == 0


def test_what_a_program_maps_is_told_apart(built, heap_of):
    sections = heap_of(built(MAPPINGS))

    def rows(section):
        return {row["stack"].split()[0]: (row["count"], row["value"]) for row in sections[section]["rows"]}

    assert rows("mapped") == {"site_map": (3, 12 * MIB), "site_move": (1, 4 * MIB),
                              "site_break": (1, 64 * KIB)}
    assert rows("mapped_live") == {"site_map": (1, 7 * MIB), "site_move": (1, 4 * MIB),
                                   "site_break": (1, 64 * KIB)}
    # ... and is not in the heap, which has what main and stdio asked for.
    facts = sections["heap"]["facts"]
    assert facts["allocated"] < 64 * KIB and facts["allocations"] == 2
