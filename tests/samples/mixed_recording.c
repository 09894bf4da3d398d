/*
 * Writes a recording as a web service in Python with native, inlined, JIT and kernel code
 * would give it, for tests of what is drawn from recordings:
 *
 *     mixed_recording FILE            ordinary names
 *     mixed_recording FILE hostile    names that try to break out of SVG, HTML and JSON
 *
 * The same arguments give the same bytes. Samples: 2,000 of cpu, 1 ms each, in 4 threads of 2
 * processes; 200 waits.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "recording/writer.h"

#define START 5000000000ull
#define MS 1000000ull
#define SAMPLES 2000

/* A path: '>' between frames, outermost first; a prefix letter says what kind of code it is:
 * p Python, n native (app), l native (libc), x native without a name, k kernel, j JIT; "+i" after
 * the name: the next one is inlined into it. */
static const struct path {
    const char *frames;
    unsigned weight;
} paths[] = {
    {"l_start>lmain>nserve(int, "
     "char**)>phandle_request>pparse_body>nJson::parse(std::string_view)+i"
     ">nJson::skip_space()",
     170},
    {"l_start>lmain>nserve(int, char**)>phandle_request>pparse_body>nJson::parse(std::string_view)"
     ">nJson::object()>nJson::value()>nJson::object()>nJson::value()>nJson::string()",
     240},
    {"l_start>lmain>nserve(int, char**)>phandle_request>pparse_body>nJson::parse(std::string_view)"
     ">nJson::object()>nJson::value()>nJson::number()>lstrtod",
     90},
    {"l_start>lmain>nserve(int, char**)>phandle_request>prender>prender_block>prender_block"
     ">prender_text>lmemcpy",
     130},
    {"l_start>lmain>nserve(int, char**)>phandle_request>prender>prender_block>prender_text", 160},
    {"l_start>lmain>nserve(int, char**)>phandle_request>prender>prender_block>jtemplate:index.html",
     110},
    {"l_start>lmain>nserve(int, char**)>phandle_request>pquery>nsqlite3_step>nsqlite3VdbeExec"
     ">lpread64>kentry_SYSCALL_64>kdo_syscall_64>kvfs_read>kext4_file_read_iter>kcopy_page_to_iter",
     190},
    {"l_start>lmain>nserve(int, char**)>phandle_request>pquery>nsqlite3_step>nsqlite3VdbeExec"
     ">nsqlite3BtreeMovetoUnpacked+i>nsqlite3GetVarint",
     210},
    {"l_start>lmain>nserve(int, char**)>phandle_request>pquery>nsqlite3_step>x1", 60},
    {"lclone3>lstart_thread>nWorker::run()>nWorker::compress(Block "
     "const&)>nZSTD_compressBlock_fast",
     260},
    {"lclone3>lstart_thread>nWorker::run()>nWorker::compress(Block const&)>nXXH64_update", 70},
    {"lclone3>lstart_thread>nWorker::run()>nstd::vector<Block, std::allocator<Block> >::push_back("
     "Block&&)+i>nstd::_Vector_base<Block>::_M_allocate(unsigned long)>lmalloc>kpage_fault"
     ">kclear_page_erms",
     80},
    {"lclone3>lstart_thread>pgc_loop>pcollect", 90},
    {"x2>x3", 20},
};

static const char *const hostile[] = {
    "</script><img src=x onerror=alert(1)>",
    "]]><script>document.documentElement.dataset.broken=1</script>",
    "--><svg onload=alert(2)>",
    "\"' onmouseover=\"alert(3)\" x='",
    "control\001\033[31m\007\177 and \302\205",
    "bad \377\376\300\257 utf-8 \355\240\200 \364\220\200\200",
    "${alert(4)} `x` \\u003cb\\u003e &lt;b&gt; &amp;",
    "\342\200\250\342\200\251 separators \357\277\276 nonchar",
    "<!--<script>",
    "line\nbreak\ttab\rreturn",
    "javascript:alert(5)",
    "العربية 漢字 🔥 a\314\201",
    "constructor",
    "__proto__",
};

struct maker {
    struct writer *w;
    uint32_t app, libc, bare, python, kernel, jit;
    bool hostile;
    unsigned renamed;
};

static uint32_t frame_of(struct maker *m, char kind, const char *name, size_t len,
                         const uint32_t *outer)
{
    char text[256], file[64];
    snprintf(text, sizeof text, "%.*s", (int)len, name);
    if (kind == 'x')
        return writer_frame(m->w, m->bare, 0x1000u + (unsigned char)text[0] * 64u);
    unsigned sum = 0;
    for (const char *c = text; *c; c++)
        sum = sum * 31 + (unsigned char)*c;
    if (m->hostile)
        snprintf(text, sizeof text, "%s", hostile[sum % (sizeof hostile / sizeof *hostile)]);
    uint32_t module = kind == 'p'   ? m->python
                      : kind == 'l' ? m->libc
                      : kind == 'k' ? m->kernel
                      : kind == 'j' ? m->jit
                                    : m->app;
    snprintf(file, sizeof file, kind == 'p' ? "shop/views.py" : "src/%c%u.cc", kind, sum % 9);
    uint32_t line = 10 + sum % 300;
    uint32_t f =
        writer_function(m->w, text, "", kind == 'k' || kind == 'l' ? "" : file, line, module);
    if (kind == 'p' || kind == 'j')
        return writer_frame_named(m->w, module, f, line + 3);
    uint32_t frame = writer_frame(m->w, module, 0x4000u + sum % 100000u + (outer ? 7 : 0));
    struct writer_location at[2] = {{f, line + 5}, {outer ? *outer : 0, 99}};
    writer_symbol(m->w, frame, at, outer ? 2 : 1);
    return frame;
}

static uint32_t stack_of(struct maker *m, const char *frames)
{
    uint32_t stack = 0, outer = 0;
    bool inlined = false;
    while (*frames) {
        size_t len = strcspn(frames, ">");
        /* A '>' of a template or operator is followed by no kind letter of a frame. */
        while (frames[len] && (frames[len + 1] == ' ' || frames[len + 1] == ':'))
            len += 1 + strcspn(frames + len + 1, ">");
        bool holds = len > 2 && !strncmp(frames + len - 2, "+i", 2);
        if (holds) {
            char name[256];
            snprintf(name, sizeof name, "%.*s", (int)(len - 3), frames + 1);
            outer = writer_function(m->w, m->hostile ? hostile[0] : name, "", "src/outer.cc", 90,
                                    m->app);
        } else {
            stack = writer_stack(
                m->w, stack, frame_of(m, *frames, frames + 1, len - 1, inlined ? &outer : NULL));
        }
        inlined = holds;
        frames += len + (frames[len] == '>');
    }
    return stack;
}

static void make_samples(struct maker *m, const uint32_t threads[4])
{
    uint32_t cpu = writer_event(m->w, "cpu", UNIT_NANOSECONDS, MS);
    uint32_t lock = writer_event(m->w, "off-cpu:lock", UNIT_NANOSECONDS, 0);
    unsigned whole = 0, seed = 12345;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        whole += paths[i].weight;
    for (unsigned i = 0; i < SAMPLES; i++) {
        /* Runs of ten samples are alike, as they are in a program that does one thing at a time. */
        seed = (i / 10) * 2654435761u ^ 0x9e37u;
        unsigned at = (seed >> 7) % whole;
        size_t k = 0;
        while (at >= paths[k].weight)
            at -= paths[k++].weight;
        bool worker = paths[k].frames[1] == 'c';
        uint32_t thread = threads[worker ? 2 + (i / 10) % 2 : (i / 10) % 2];
        uint64_t time = START + (i + 1) * MS;
        uint32_t stack = stack_of(m, paths[k].frames);
        writer_sample(m->w, cpu, time, thread, stack, MS);
        if (i % 10 == 9)
            writer_sample(m->w, lock, time + MS / 2, threads[3], stack, MS * 4);
    }
}

static void make_target(struct maker *m, uint32_t threads[4])
{
    const char *comm = m->hostile ? hostile[1] : "shop";
    uint32_t web = writer_process(m->w, 4100, WRITER_NONE, START);
    writer_exec(m->w, web, START, comm, "/usr/bin/shop",
                m->hostile ? hostile[0] : "shop serve --port 8080");
    uint32_t pack = writer_process(m->w, 4200, web, START);
    writer_exec(m->w, pack, START, m->hostile ? hostile[5] : "packer", "/usr/bin/packer", "packer");
    for (int i = 0; i < 4; i++) {
        threads[i] =
            writer_thread(m->w, i < 2 ? web : pack, i < 2 ? 4100 + i : 4200 + i - 2, START);
        writer_thread_name(m->w, threads[i], m->hostile ? hostile[3] : i < 2 ? "http" : "worker");
    }
}

int main(int argc, char **argv)
{
    struct maker m = {.hostile = argc == 3 && !strcmp(argv[2], "hostile")};
    struct error err = {0};
    uint32_t threads[4];
    if (argc < 2 || argc > 3 || writer_new(argv[1], true, &m.w, &err)) {
        fprintf(stderr, "mixed_recording: %s\n", err.text);
        return 1;
    }
    writer_meta(m.w, "start", "5000000000");
    writer_meta(m.w, "wall_start", "1750000000000000000");
    writer_meta(m.w, "command", m.hostile ? hostile[0] : "shop serve --port 8080");
    writer_meta(m.w, "host", m.hostile ? hostile[2] : "web-3");
    m.app = writer_module(m.w, CODE_ELF, m.hostile ? hostile[0] : "/usr/bin/shop", NULL, 0);
    m.libc = writer_module(m.w, CODE_ELF, "/usr/lib/x86_64-linux-gnu/libc.so.6", NULL, 0);
    m.bare = writer_module(m.w, CODE_ELF, "/usr/lib/libcrypto.so.3", NULL, 0);
    m.python = writer_module(m.w, CODE_PYTHON, m.hostile ? hostile[4] : "shop/views.py", NULL, 0);
    m.kernel = writer_module(m.w, CODE_KERNEL, "[kernel]", NULL, 0);
    m.jit = writer_module(m.w, CODE_JIT, "[jit]", NULL, 0);
    make_target(&m, threads);
    make_samples(&m, threads);
    writer_loss(m.w, LOSS_RING_FULL, 0 /* cpu */, WRITER_NONE, 3);
    writer_note(m.w, NOTE_WARNING, m.hostile ? hostile[1] : "libcrypto.so.3 has no symbols");
    writer_set_cost(m.w, &(struct writer_cost){.collector_cpu = 9 * MS, .stacks_whole = SAMPLES});
    if (writer_free(m.w, true, START + SAMPLES * MS, &err)) {
        fprintf(stderr, "mixed_recording: %s\n", err.text);
        return 1;
    }
    return 0;
}
