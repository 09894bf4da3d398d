/*
 * What the fuzz targets of formats share: reads bytes with one format, and what could
 * be read must be a sound profile that every writer takes and that loads back the same.
 */
#ifndef SONDE_READ_FORMAT_H
#define SONDE_READ_FORMAT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"

static int swallow(void *context, const void *data, size_t len, struct error *err)
{
    (void)data;
    (void)err;
    *(size_t *)context += len;
    return 0;
}

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Every index leads somewhere, every sum is that of its cells. */
static void check_profile(const struct profile *p)
{
    uint64_t sums[2] = {0}, events[2] = {0};
    for (size_t i = 1; i < p->stacks.len; i++)
        check(p->stacks.data[i].parent < i && p->stacks.data[i].frame < p->frames.len);
    for (size_t i = 0; i < p->frames.len; i++) {
        const struct profile_frame *f = &p->frames.data[i];
        check(f->module < p->modules.len);
        check((size_t)f->first_location + f->location_count <= p->locations.len);
    }
    for (size_t i = 0; i < p->locations.len; i++)
        check(p->locations.data[i].function < p->functions.len);
    for (size_t i = 0; i < p->threads.len; i++)
        check(p->threads.data[i].process < p->processes.len);
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        check(c->event < p->events.len && c->thread < p->threads.len && c->stack < p->stacks.len);
        sums[0] += c->count;
        sums[1] += c->value;
    }
    for (size_t i = 0; i < p->events.len; i++) {
        events[0] += p->events.data[i].samples;
        events[1] += p->events.data[i].value;
    }
    check(sums[0] == events[0] && sums[1] == events[1]);
}

static void write_all(const struct profile *p)
{
    struct export_options options = {.event = PROFILE_NONE, .by_process = true, .by_thread = true};
    for (const struct format *const *f = format_list(); *f; f++) {
        struct sink out;
        struct error err = {0};
        size_t len = 0;
        if (!(*f)->write)
            continue;
        sink_init(&out, swallow, &len);
        int rc = (*f)->write(p, &options, &out, &err);
        bool of_heap = !strcmp((*f)->name, "massif") || !strcmp((*f)->name, "heaptrack");
        check(rc == 0 || (rc == FAULT_MISSING && (!p->events.len || of_heap)));
        check(sink_finish(&out, &err) == 0);
        sink_release(&out);
    }
}

/* 0 or the fault, with its sentence; *empty: it succeeded, and there was nothing, nor a word of
 * why. */
static inline int read_soundly(const char *name, const uint8_t *data, size_t size, bool *empty,
                               struct error *err)
{
    struct import_options options = {.keep_samples = true};
    struct profile p;
    struct source *in;
    const struct format *format = format_find(name);
    *empty = false;
    int rc = source_from_memory(data, size, "input", &in, err);
    if (rc)
        return rc;
    format->detect(data, size);
    profile_init(&p);
    rc = format->read(in, &options, &p, err);
    check(!rc || err->text[0]);
    if (!rc) {
        check_profile(&p);
        write_all(&p);
        *empty = !p.cells.len && !p.spans.len && !p.notes.len && !p.losses.len;
    }
    profile_release(&p);
    source_free(in);
    return rc;
}

static inline int read_format(const char *name, const uint8_t *data, size_t size)
{
    struct error err = {0};
    bool empty;
    read_soundly(name, data, size, &empty, &err);
    return 0;
}

#endif
