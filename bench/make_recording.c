/*
 * Writes a synthetic recording of a given size, to measure loading and reporting on:
 *
 *     make_recording FILE [samples] [stacks] [functions] [threads] [spans]
 *
 * Call paths grow like those of real programs: deep, with hot branches, some recursion
 * and a long tail. The same arguments give the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "recording/writer.h"

#define START 1000000000ull
#define PERIOD 1000000ull
#define MODULES 16
#define INLINED_EVERY 7
#define THREADS_A_PROCESS 4

struct shape {
    uint64_t samples, stacks, functions, threads, spans;
};

static uint64_t random_state = 0x2545f4914f6cdd1dull;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Small numbers often, large ones seldom. */
static uint64_t skewed(uint64_t below)
{
    double u = (double)(next_random() >> 11) / (double)(1ull << 53);
    return (uint64_t)(u * u * u * (double)below);
}

static void make_modules(struct writer *w, uint32_t *modules)
{
    for (uint32_t i = 0; i < MODULES; i++) {
        char path[64];
        snprintf(path, sizeof path, "/usr/lib/libpart%u.so", i);
        modules[i] = writer_module(w, CODE_ELF, path, (const uint8_t *)&i, sizeof i);
    }
}

/* Two frames a function, at different lines; every few have another function inlined. */
static void make_symbols(struct writer *w, const struct shape *s, const uint32_t *modules,
                         uint32_t *frames)
{
    uint32_t previous = WRITER_NONE;
    for (uint64_t i = 0; i < s->functions; i++) {
        char name[96], file[64];
        snprintf(name, sizeof name, "part%u::stage%u<std::vector<int>>::run(int, char const*)",
                 (unsigned)(i % MODULES), (unsigned)i);
        snprintf(file, sizeof file, "/src/part%u/stage%u.cc", (unsigned)(i % MODULES),
                 (unsigned)(i / 8));
        uint32_t module = modules[i % MODULES];
        uint32_t f = writer_function(w, name, "", file, (uint32_t)(i % 8 * 50 + 1), module);
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t frame = writer_frame(w, module, 0x1000 + i * 64 + k * 16);
            struct writer_location at[2] = {{f, (uint32_t)(i % 8 * 50 + 3 + k)}, {previous, 9}};
            writer_symbol(w, frame, at, i % INLINED_EVERY == 3 && previous != WRITER_NONE ? 2 : 1);
            frames[i * 2 + k] = frame;
        }
        previous = f;
    }
}

static void make_stacks(struct writer *w, const struct shape *s, const uint32_t *frames,
                        uint32_t *stacks)
{
    uint32_t *depth = memory_array(s->stacks + 1, sizeof *depth);
    stacks[0] = 0;
    for (uint64_t i = 1; i <= s->stacks; i++) {
        /* Mostly one deeper than the last, sometimes a branch off an earlier one. */
        uint64_t parent = next_random() % 8 && depth[i - 1] < 60 ? i - 1 : skewed(i);
        if (depth[parent] >= 120)
            parent = 0;
        stacks[i] = writer_stack(w, stacks[parent], frames[skewed(s->functions * 2)]);
        depth[i] = depth[parent] + 1;
    }
    free(depth);
}

/* Code belongs to a process: a run of stacks is met by the threads of one process only. */
#define RUN 256

static void make_samples(struct writer *w, const struct shape *s, const uint32_t *stacks,
                         const uint32_t *threads, uint32_t event)
{
    uint64_t groups = (s->threads + THREADS_A_PROCESS - 1) / THREADS_A_PROCESS;
    for (uint64_t i = 0; i < s->samples; i++) {
        uint64_t at = next_random() % 4 ? skewed(s->stacks) : next_random() % s->stacks;
        uint64_t thread = at / RUN % groups * THREADS_A_PROCESS + skewed(THREADS_A_PROCESS);
        writer_sample(w, event, START + i * (PERIOD / 8), threads[thread % s->threads],
                      stacks[at + 1], PERIOD);
    }
}

#define SPAN_DEPTH 24

/* Calls of one thread after the other, nested at random; a few leave long gaps. */
static void make_spans(struct writer *w, const struct shape *s, const uint32_t *frames,
                       const uint32_t *threads)
{
    uint64_t each = s->spans / THREADS_A_PROCESS, extent = s->samples * (PERIOD / 8);
    for (uint64_t t = 0; t < THREADS_A_PROCESS && t < s->threads && each; t++) {
        uint64_t step = extent / (2 * each + 1), time = START;
        unsigned depth = 0;
        for (uint64_t begun = 0; begun < each || depth;
             time += step / 2 + next_random() % (step + 1)) {
            if (begun < each && (!depth || (depth < SPAN_DEPTH && next_random() % 2))) {
                writer_span_begin(w, threads[t], time, frames[skewed(s->functions * 2)]);
                begun++;
                depth++;
            } else {
                writer_span_end(w, threads[t], time);
                depth--;
            }
        }
    }
}

static void make_target(struct writer *w, const struct shape *s, uint32_t *threads)
{
    uint32_t process = 0, parent = WRITER_NONE;
    for (uint64_t i = 0; i < s->threads; i++) {
        if (i % THREADS_A_PROCESS == 0) {
            process = writer_process(w, (int32_t)(1000 + i), parent, START);
            writer_exec(w, process, START, "synthetic", "/usr/bin/synthetic", "synthetic --size");
            parent = parent == WRITER_NONE ? process : parent;
        }
        threads[i] = writer_thread(w, process, (int32_t)(1000 + i), START);
        writer_thread_name(w, threads[i], i % THREADS_A_PROCESS ? "worker" : "synthetic");
    }
}

static int make(struct writer *w, const struct shape *s, struct error *err)
{
    uint32_t modules[MODULES];
    uint32_t *frames = memory_array(s->functions * 2, sizeof *frames);
    uint32_t *stacks = memory_array(s->stacks + 1, sizeof *stacks);
    uint32_t *threads = memory_array(s->threads, sizeof *threads);
    uint64_t end = START + s->samples * (PERIOD / 8);
    char start[32];
    snprintf(start, sizeof start, "%llu", (unsigned long long)START);
    writer_meta(w, "start", start);
    writer_meta(w, "command", "synthetic --size");
    uint32_t event = writer_event(w, "cpu", UNIT_NANOSECONDS, PERIOD);
    make_target(w, s, threads);
    make_modules(w, modules);
    make_symbols(w, s, modules, frames);
    make_stacks(w, s, frames, stacks);
    make_samples(w, s, stacks, threads, event);
    make_spans(w, s, frames, threads);
    writer_set_cost(w, &(struct writer_cost){.collector_cpu = end / 100,
                                             .collector_rss = 16 << 20,
                                             .stacks_whole = s->samples});
    free(frames);
    free(stacks);
    free(threads);
    return writer_free(w, true, end, err);
}

int main(int argc, char **argv)
{
    struct shape s = {.samples = 10000000, .stacks = 1000000, .functions = 50000, .threads = 64};
    uint64_t *number[] = {&s.samples, &s.stacks, &s.functions, &s.threads, &s.spans};
    if (argc < 2 || argc > 7 || argv[1][0] == '-') {
        fprintf(stderr, "usage: make_recording FILE [samples] [stacks] [functions] [threads] "
                        "[spans]\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        char *end;
        *number[i - 2] = strtoull(argv[i], &end, 10);
        if (!*number[i - 2] || *end || argv[i][0] == '-' || *number[i - 2] > UINT32_MAX) {
            fprintf(stderr, "make_recording: %s is not a number above 0\n", argv[i]);
            return 2;
        }
    }
    struct writer *w;
    struct error err = {0};
    if (writer_new(argv[1], true, &w, &err) || make(w, &s, &err)) {
        fprintf(stderr, "make_recording: %s\n", err.text);
        return 1;
    }
    return 0;
}
