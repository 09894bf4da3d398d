/* The writer's life and its blocks; see writer.h. append.c holds the records. */
#include "recording/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "recording/writer_internal.h"
#include "wire/codec.h"

#define BLOCK_TARGET ((size_t)128 * 1024)

void writer_add_varint(struct text *t, uint64_t v)
{
    text_reserve(t, VARINT_MAX);
    t->len += varint_put((uint8_t *)t->data + t->len, v);
}

void writer_add_signed(struct text *t, int64_t v)
{
    writer_add_varint(t, zigzag(v));
}

static void add_record(struct text *section, enum record_type type, const struct text *payload)
{
    writer_add_varint(section, type);
    writer_add_varint(section, payload->len);
    text_add_len(section, payload->data, payload->len);
}

void writer_gathered(struct writer *w, size_t bytes)
{
    w->pending += bytes;
    if (w->pending >= BLOCK_TARGET)
        writer_flush(w, NULL);
}

void writer_close(struct writer *w, enum section section, enum record_type type)
{
    size_t bytes = w->payload.len + 4;
    add_record(&w->section[section], type, &w->payload);
    text_clear(&w->payload);
    writer_gathered(w, bytes);
}

static int make_file(const char *path, bool replace, struct error *err)
{
    struct stat st;
    if (lstat(path, &st) == 0) {
        if (S_ISLNK(st.st_mode))
            return error_set(err, FAULT_SYSTEM,
                             "%s is a symbolic link, and a recording is not written through one: "
                             "name the file itself with -o",
                             path);
        if (!S_ISREG(st.st_mode))
            return error_set(err, FAULT_SYSTEM,
                             "%s is not a regular file: name another one with -o", path);
        if (!replace)
            return error_set(
                err, FAULT_SYSTEM,
                "%s exists already: use --force to replace it, or another name with -o", path);
        if (unlink(path) < 0)
            return error_errno(err, FAULT_SYSTEM, "cannot replace %s", path);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_errno(err, FAULT_SYSTEM, "cannot create the recording %s", path);
    return fd;
}

int writer_new_fd(int fd, struct writer **out, struct error *err)
{
    struct writer *w = memory_alloc(sizeof *w);
    int rc = block_writer_new(fd, &w->blocks, err);
    if (rc) {
        free(w);
        return rc;
    }
    for (int i = 0; i < SECTION_COUNT; i++)
        text_init(&w->section[i]);
    struct run *runs[] = {&w->strings, &w->functions, &w->frames, &w->stacks, &w->spans};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        text_init(&runs[i]->body);
    for (size_t i = 0; i < DETAIL_KINDS; i++)
        text_init(&w->details[i].body);
    text_init(&w->payload);
    w->stack_count = 1;
    names_add(&w->names, "");
    *out = w;
    return 0;
}

int writer_new(const char *path, bool replace, struct writer **out, struct error *err)
{
    int fd = make_file(path, replace, err);
    return fd < 0 ? fd : writer_new_fd(fd, out, err);
}

static void close_run(struct writer *w, struct run *run, enum section section,
                      enum record_type type)
{
    if (!run->body.len)
        return;
    add_record(&w->section[section], type, &run->body);
    text_clear(&run->body);
    memset(run->previous, 0, sizeof run->previous);
}

void writer_close_spans(struct writer *w)
{
    close_run(w, &w->spans, SECTION_VALUES, RECORD_SPANS);
}

static void close_runs(struct writer *w)
{
    close_run(w, &w->strings, SECTION_STRINGS, RECORD_STRINGS);
    close_run(w, &w->functions, SECTION_FUNCTIONS, RECORD_FUNCTIONS);
    close_run(w, &w->frames, SECTION_FRAMES, RECORD_FRAMES);
    close_run(w, &w->stacks, SECTION_STACKS, RECORD_STACKS);
    writer_close_spans(w);
    for (size_t i = 0; i < w->events.len; i++)
        close_run(w, &w->events.data[i].run, SECTION_VALUES, RECORD_SAMPLES);
    for (size_t i = 0; i < w->series.len; i++)
        close_run(w, &w->series.data[i].run, SECTION_VALUES, RECORD_POINTS);
    for (size_t i = 0; i < DETAIL_KINDS; i++)
        close_run(w, &w->details[i], SECTION_VALUES, RECORD_DETAILS);
}

void writer_watch(struct writer *w, void (*progress)(void *context, uint64_t done, uint64_t size),
                  void *context)
{
    w->progress = progress;
    w->context = context;
}

int writer_flush(struct writer *w, struct error *err)
{
    close_runs(w);
    struct text block = TEXT_INIT;
    for (int i = 0; i < SECTION_COUNT; i++) {
        text_add_len(&block, w->section[i].data, w->section[i].len);
        text_clear(&w->section[i]);
    }
    w->pending = 0;
    if (block.len && !w->failed && block_write(w->blocks, block.data, block.len, &w->failure))
        w->failed = true;
    text_release(&block);
    if (w->progress)
        w->progress(w->context, writer_bytes(w), 0);
    if (w->failed && err)
        *err = w->failure;
    return w->failed ? w->failure.fault : 0;
}

static void release(struct writer *w)
{
    for (int i = 0; i < SECTION_COUNT; i++)
        text_release(&w->section[i]);
    struct run *runs[] = {&w->strings, &w->functions, &w->frames, &w->stacks, &w->spans};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        text_release(&runs[i]->body);
    for (size_t i = 0; i < w->events.len; i++)
        text_release(&w->events.data[i].run.body);
    for (size_t i = 0; i < w->series.len; i++)
        text_release(&w->series.data[i].run.body);
    for (size_t i = 0; i < DETAIL_KINDS; i++)
        text_release(&w->details[i].body);
    text_release(&w->payload);
    names_release(&w->names);
    map_release(&w->modules);
    map_release(&w->frame_index);
    map_release(&w->stack_index);
    map_release(&w->function_index);
    vector_release(&w->code);
    vector_release(&w->events);
    vector_release(&w->series);
    free(w);
}

int writer_free(struct writer *w, bool complete, uint64_t end, struct error *err)
{
    if (!w)
        return 0;
    if (complete) {
        writer_add_varint(&w->payload, end);
        writer_add_varint(&w->payload, w->samples);
        writer_close(w, SECTION_VALUES, RECORD_END);
    }
    int rc = writer_flush(w, err);
    int closed = block_writer_free(w->blocks, rc ? NULL : err);
    release(w);
    return rc ? rc : closed;
}

bool writer_failed(const struct writer *w, struct error *err)
{
    if (w->failed && err)
        *err = w->failure;
    return w->failed;
}

uint64_t writer_dropped(const struct writer *w)
{
    return w->dropped;
}

uint64_t writer_samples(const struct writer *w)
{
    return w->samples;
}

uint64_t writer_bytes(const struct writer *w)
{
    return block_bytes_written(w->blocks);
}

const struct writer_code *writer_frames(const struct writer *w, size_t *count)
{
    *count = w->code.len;
    return w->code.data;
}
