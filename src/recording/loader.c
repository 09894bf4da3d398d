/* Loading a recording; see loader.h. decode.c holds the records. */
#include "recording/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "profile/rescue.h"
#include "recording/loader_internal.h"

struct loader *loader_new(struct profile *p, const struct load_options *options)
{
    struct loader *l = memory_alloc(sizeof *l);
    l->profile = p;
    if (options)
        l->options = *options;
    p->samples_apart = l->options.samples_apart;
    /* String 0 and stack 0 are not written: they are always the empty ones. */
    vector_reserve(&l->strings, 1);
    l->strings.data[l->strings.len++] = 0;
    vector_reserve(&l->stacks, 1);
    l->stacks.data[l->stacks.len++] = 0;
    return l;
}

void loader_feed(struct loader *l, const uint8_t *records, size_t len)
{
    struct cursor c = cursor_make(records, len);
    while (cursor_left(&c)) {
        uint64_t type = cursor_varint(&c), size = cursor_varint(&c);
        const uint8_t *payload = cursor_bytes(&c, size);
        if (!payload) {
            l->malformed++;
            return;
        }
        struct cursor record = cursor_make(payload, size);
        if (!loader_apply(l, type, &record))
            l->malformed++;
    }
}

uint64_t loader_malformed(const struct loader *l)
{
    return l->malformed;
}

void loader_free(struct loader *l)
{
    if (!l)
        return;
    struct translation *all[] = {&l->strings,   &l->events, &l->processes, &l->threads, &l->modules,
                                 &l->functions, &l->frames, &l->stacks,    &l->series};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]->data);
    for (size_t i = 0; i < l->open.len; i++)
        vector_release(&l->open.data[i].span);
    vector_release(&l->open);
    free(l);
}

static void add_note(struct profile *p, const char *text)
{
    uint32_t s = profile_string(p, text);
    *vector_push(&p->notes) =
        (struct profile_note){.level = NOTE_WARNING, .text = s, .damage = true};
}

/* Tells the report what the file lacked. */
static void note_damage(struct profile *p, const struct block_damage *d, uint64_t malformed)
{
    struct text t = TEXT_INIT;
    if (d->cut)
        text_format(&t, "the recording is cut at byte %llu; everything before is here",
                    (unsigned long long)d->first_offset);
    else if (d->bytes_skipped || d->blocks_skipped)
        text_format(&t,
                    "the recording is damaged from byte %llu: %llu bytes and at least %llu blocks "
                    "were skipped",
                    (unsigned long long)d->first_offset, (unsigned long long)d->bytes_skipped,
                    (unsigned long long)d->blocks_skipped);
    else if (!p->complete)
        text_add(&t, "the recording has no end: the recorder was killed or is still running");
    if (t.len)
        add_note(p, t.data);
    text_clear(&t);
    if (malformed) {
        text_format(&t, "%llu records made no sense and were left out",
                    (unsigned long long)malformed);
        add_note(p, t.data);
    }
    text_release(&t);
}

static int load_blocks(struct block_reader *r, struct loader *l, uint64_t size, struct error *err)
{
    const uint8_t *records;
    size_t len;
    int rc;
    while ((rc = block_read(r, &records, &len, err)) > 0) {
        loader_feed(l, records, len);
        if (l->options.progress)
            l->options.progress(l->options.context, block_reader_offset(r), size);
    }
    return rc;
}

int recording_load(const char *path, const struct load_options *options, struct profile *p,
                   struct error *err)
{
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
                               : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return error_errno(err, errno == ENOENT ? FAULT_MISSING : FAULT_SYSTEM, "cannot open %s",
                           path);
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return error_set(err, FAULT_INPUT, "%s is a folder, not a recording", path);
    }
    struct block_reader *r;
    int rc = block_reader_new(fd, path, &r, err);
    if (rc)
        return rc;
    struct loader *l = loader_new(p, options);
    rc = load_blocks(r, l, (uint64_t)st.st_size, err);
    loader_end_spans(l);
    if (!rc) {
        note_damage(p, block_reader_damage(r), l->malformed);
        profile_rescue_heaps(p);
    }
    if (rc)
        error_prefix(err, "%s", path);
    loader_free(l);
    block_reader_free(r);
    return rc;
}
