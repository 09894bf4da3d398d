/* See sample.h. */
#include "sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/vector.h"

static const uint8_t build_id[20] = {0xde, 0xad, 0xbe, 0xef, 5,  6,  7,  8,  9,  10,
                                     11,   12,   13,   14,   15, 16, 17, 18, 19, 20};

struct code {
    uint32_t root, work, inlined, library, kernel, python, unknown, bare;
};

static void fill_code(struct profile *p, struct code *c)
{
    uint32_t app = profile_module_add(p, CODE_ELF, "/usr/bin/app", build_id, 20);
    uint32_t lib = profile_module_add(p, CODE_ELF, "/usr/lib/libm.so.6", build_id, 8);
    uint32_t kernel = profile_module_add(p, CODE_KERNEL, "[kernel.kallsyms]", NULL, 0);
    uint32_t script = profile_module_add(p, CODE_PYTHON, "/srv/app.py", NULL, 0);
    uint32_t nowhere = profile_module_add(p, CODE_UNKNOWN, "", NULL, 0);
    uint32_t main_f = profile_function_add(p, "main", "", "/src/main.c", 10, app);
    uint32_t work = profile_function_add(p, "ns::work(int)", "_ZN2ns4workEi", "/src/w.cc", 20, app);
    uint32_t small = profile_function_add(p, "small;odd\nname", "", "/src/w.h", 3, app);
    uint32_t sinus = profile_function_add(p, "sin", "", "", 0, lib);
    uint32_t page = profile_function_add(p, "do_page_fault", "", "", 0, kernel);
    uint32_t py = profile_function_add(p, "handle", "", "/srv/app.py", 7, script);
    c->root = profile_frame_add(p, app, 0x1040);
    profile_frame_locate(p, c->root, &(struct profile_location){main_f, 12}, 1);
    c->work = profile_frame_add(p, app, 0x3123);
    profile_frame_locate(p, c->work, &(struct profile_location){work, 21}, 1);
    c->inlined = profile_frame_add(p, app, 0x3150);
    struct profile_location both[] = {{small, 4}, {work, 25}};
    profile_frame_locate(p, c->inlined, both, 2);
    c->library = profile_frame_add(p, lib, 0x1040);
    profile_frame_locate(p, c->library, &(struct profile_location){sinus, 0}, 1);
    c->kernel = profile_frame_add(p, kernel, 0xffffffff81001234);
    profile_frame_locate(p, c->kernel, &(struct profile_location){page, 0}, 1);
    c->python = profile_frame_named(p, script, py, 9);
    c->unknown = profile_frame_add(p, nowhere, 0x7fffdead0000);
    c->bare = profile_frame_add(p, lib, 0x2468);
    p->symbolized = true;
}

static void add(struct profile *p, bool times, uint32_t event, uint32_t thread, uint32_t stack,
                uint64_t samples, uint64_t each)
{
    for (uint64_t i = 0; i < samples; i++) {
        if (times)
            profile_sample_add(p, &(struct profile_sample){.time = 1000 + p->samples.len * 500,
                                                           .value = each,
                                                           .event = event,
                                                           .thread = thread,
                                                           .stack = stack});
        else
            profile_count(p, event, thread, stack, 1, each);
    }
}

static void fill_values(struct profile *p, const struct code *c, bool times)
{
    uint32_t cpu = profile_event_add(p, "cpu", UNIT_NANOSECONDS, 1000000);
    uint32_t faults = profile_event_add(p, "page-faults", UNIT_COUNT, 1);
    uint32_t bytes = profile_event_add(p, "alloc_space", UNIT_BYTES, 0);
    uint32_t root = profile_stack_add(p, 0, c->root);
    uint32_t work = profile_stack_add(p, root, c->work);
    uint32_t sinus = profile_stack_add(p, work, c->library);
    uint32_t inlined = profile_stack_add(p, root, c->inlined);
    uint32_t fault = profile_stack_add(p, inlined, c->kernel);
    uint32_t python = profile_stack_add(p, profile_stack_add(p, 0, c->python), c->bare);
    uint32_t lost = profile_stack_add(p, 0, c->unknown);
    add(p, times, cpu, 0, work, 60, 1000000);
    add(p, times, cpu, 0, sinus, 25, 1000000);
    add(p, times, cpu, 1, inlined, 10, 1000000);
    add(p, times, cpu, 2, python, 4, 1000000);
    add(p, times, cpu, 2, lost, 1, 1000000);
    add(p, times, cpu, 2, 0, 2, 1000000);
    add(p, times, faults, 1, fault, 7, 1);
    add(p, times, bytes, 1, inlined, 3, 4096);
    add(p, times, bytes, 0, work, 2, 100);
}

void sample_fill(struct profile *p, bool times)
{
    struct code code;
    profile_init(p);
    p->start = 1000;
    p->end = 1000 + 500ull * 114;
    p->wall_start = 1700000000000000000ull;
    p->complete = true;
    fill_code(p, &code);
    uint32_t a = profile_process_add(p, 42, PROFILE_NONE, 1000);
    uint32_t b = profile_process_add(p, 77, a, 2000);
    uint32_t comm = profile_string(p, "app"), other = profile_string(p, "python3");
    uint32_t exe = profile_string(p, "/usr/bin/app"), arguments = profile_string(p, "app --fast");
    *vector_push(&p->processes.data[a].execs) = (struct profile_exec){1000, comm, exe, arguments};
    *vector_push(&p->processes.data[b].execs) = (struct profile_exec){2000, other, 0, 0};
    profile_thread_add(p, a, 42, "main", 1000);
    profile_thread_add(p, a, 43, "worker", 1500);
    profile_thread_add(p, b, 77, "", 2000);
    fill_values(p, &code, times);
    uint32_t note = profile_string(p, "sampled with cpu-clock");
    *vector_push(&p->notes) = (struct profile_note){.level = NOTE_INFO, .text = note};
}

static void dump_frame(const struct profile *p, uint32_t frame, struct text *t)
{
    const struct profile_frame *f = &p->frames.data[frame];
    const struct profile_module *m = &p->modules.data[f->module];
    text_format(t, " / %s@%llx[%d", profile_text(p, m->path), (unsigned long long)f->address,
                m->kind);
    for (size_t i = 0; i < m->build_id_len; i++)
        text_format(t, "%02x", m->build_id[i]);
    text_add(t, "]");
    for (uint32_t i = 0; i < f->location_count; i++) {
        const struct profile_location *at = &p->locations.data[f->first_location + i];
        const struct profile_function *g = &p->functions.data[at->function];
        text_add_char(t, ' ');
        text_add_printable(t, profile_text(p, g->name));
        text_format(t, "|%s|%s:%u:%u", profile_text(p, g->linkage), profile_text(p, g->file),
                    g->start_line, at->line);
    }
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char *sample_dump(const struct profile *p)
{
    VECTOR(char *) lines = {0};
    struct text all = TEXT_INIT;
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        const struct profile_event *e = &p->events.data[c->event];
        const struct profile_thread *th = &p->threads.data[c->thread];
        struct text t = TEXT_INIT;
        text_format(&t, "%s(%d,%llu) %d %s %d %s %llu %llu", profile_text(p, e->name), e->unit,
                    (unsigned long long)e->period, p->processes.data[th->process].pid,
                    profile_process_name(p, th->process), th->tid, profile_text(p, th->name),
                    (unsigned long long)c->count, (unsigned long long)c->value);
        for (uint32_t s = c->stack; s; s = p->stacks.data[s].parent)
            dump_frame(p, p->stacks.data[s].frame, &t);
        *vector_push(&lines) = text_take(&t);
    }
    qsort(lines.data, lines.len, sizeof *lines.data, compare_lines);
    for (size_t i = 0; i < lines.len; i++) {
        text_format(&all, "%s\n", lines.data[i]);
        free(lines.data[i]);
    }
    vector_release(&lines);
    return text_take(&all);
}

int sample_collect(void *context, const void *data, size_t len, struct error *err)
{
    (void)err;
    text_add_len(context, data, len);
    return 0;
}

void sample_write(const struct format *f, const struct profile *p,
                  const struct export_options *options, struct text *out)
{
    struct export_options all = {.event = PROFILE_NONE};
    struct sink sink;
    struct error err = {0};
    sink_init(&sink, sample_collect, out);
    assert_int_equal(f->write(p, options ? options : &all, &sink, &err), 0);
    assert_int_equal(sink_finish(&sink, &err), 0);
    sink_release(&sink);
}

int sample_read(const void *data, size_t len, const struct import_options *options,
                struct profile *p, struct error *err)
{
    struct source *in;
    const uint8_t *head;
    int rc = source_from_memory(data, len, "test", &in, err);
    if (rc)
        return rc;
    ssize_t n = source_peek(in, SOURCE_PEEK_MAX, &head, err);
    const struct format *f = n < 0 ? NULL : format_detect(head, (size_t)n);
    rc = n < 0 ? (int)n
         : f   ? f->read(in, options, p, err)
               : error_set(err, FAULT_INPUT, "no format knows this");
    source_free(in);
    return rc;
}
