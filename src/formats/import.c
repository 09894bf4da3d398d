/* What readers share; see import.h. */
#include "formats/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

void import_init(struct import *im, struct profile *p, struct source *in,
                 const struct import_options *options)
{
    *im = (struct import){.profile = p, .source = in, .first = UINT64_MAX};
    if (options)
        im->options = *options;
    im->deadline = im->options.deadline;
    if (!im->deadline)
        im->deadline = clock_now() + IMPORT_TIME_MAX + source_size(in) * IMPORT_TIME_BYTE;
    p->samples_apart = im->options.samples_apart;
}

void import_release(struct import *im)
{
    map_release(&im->processes);
    map_release(&im->threads);
    map_release(&im->modules);
}

uint32_t import_string(struct import *im, const char *text, size_t len)
{
    return names_add_len(&im->profile->strings, text,
                         len < IMPORT_STRING_MAX ? len : IMPORT_STRING_MAX);
}

uint32_t import_process(struct import *im, int32_t pid, const char *name)
{
    struct profile *p = im->profile;
    uint64_t *known = map_get(&im->processes, (uint32_t)pid, 0);
    if (known)
        return (uint32_t)*known;
    if (p->processes.len >= IMPORT_THREADS_MAX)
        return PROFILE_NONE;
    uint32_t process = profile_process_add(p, pid, PROFILE_NONE, 0);
    uint32_t comm = import_string(im, name, strlen(name));
    *vector_push(&p->processes.data[process].execs) = (struct profile_exec){.comm = comm};
    map_put(&im->processes, (uint32_t)pid, 0, process, NULL);
    return process;
}

uint32_t import_only_process(struct import *im, int32_t pid)
{
    const char *command = profile_meta_get(im->profile, "command");
    size_t len = command ? strcspn(command, " ") : 0;
    if (!len)
        return import_process(im, pid, source_name(im->source));
    const char *slash = memrchr(command, '/', len);
    size_t skip = slash ? (size_t)(slash + 1 - command) : 0;
    struct text name = TEXT_INIT;
    text_add_len(&name, command + skip, len - skip);
    uint32_t process = import_process(im, pid, name.data);
    text_release(&name);
    return process;
}

uint32_t import_thread(struct import *im, uint32_t process, int32_t tid, const char *name)
{
    struct profile *p = im->profile;
    if (process == PROFILE_NONE)
        return PROFILE_NONE;
    uint64_t *known = map_get(&im->threads, process, (uint32_t)tid);
    if (known) {
        struct profile_thread *t = &p->threads.data[*known];
        if (!t->name && name[0])
            t->name = import_string(im, name, strlen(name));
        return (uint32_t)*known;
    }
    if (p->threads.len >= IMPORT_THREADS_MAX)
        return PROFILE_NONE;
    uint32_t thread = profile_thread_add(p, process, tid, "", 0);
    p->threads.data[thread].name = import_string(im, name, strlen(name));
    map_put(&im->threads, process, (uint32_t)tid, thread, NULL);
    return thread;
}

bool import_holds(const uint8_t *bytes, size_t len, const char *word)
{
    return memmem(bytes, len, word, strlen(word)) != NULL;
}

enum code_kind import_kind(const char *path)
{
    if (!path[0] || !strcmp(path, "[unknown]") || !strcmp(path, "//anon"))
        return CODE_UNKNOWN;
    if (text_starts(path, "[kernel") || text_starts(path, "[guest.kernel") ||
        text_ends(path, ".ko") || text_starts(path, "[k]"))
        return CODE_KERNEL;
    if (!strcmp(path, "[vdso]") || text_starts(path, "linux-vdso"))
        return CODE_VDSO;
    if (text_ends(path, ".py"))
        return CODE_PYTHON;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if ((text_starts(base, "perf-") && text_ends(base, ".map")) || text_starts(base, "jitted-") ||
        !strcmp(path, "[jit]"))
        return CODE_JIT;
    return CODE_ELF;
}

uint32_t import_module(struct import *im, const char *path)
{
    struct profile *p = im->profile;
    uint32_t text = import_string(im, path, strlen(path));
    uint64_t *known = map_get(&im->modules, text, 0);
    if (known)
        return (uint32_t)*known;
    if (p->modules.len >= IMPORT_MODULES_MAX)
        return PROFILE_NONE;
    enum code_kind kind = import_kind(path);
    uint32_t module = profile_module_add(p, kind, profile_text(p, text), NULL, 0);
    map_put(&im->modules, text, 0, module, NULL);
    return module;
}

uint32_t import_event(struct import *im, const char *name, enum value_unit unit, uint64_t period)
{
    struct profile *p = im->profile;
    uint32_t known = profile_event_find(p, name);
    if (known != PROFILE_NONE || p->events.len >= IMPORT_EVENTS_MAX)
        return known;
    uint32_t event = profile_event_add(p, "", unit, period);
    p->events.data[event].name = import_string(im, name, strlen(name));
    return event;
}

int import_too_many(const struct import *im, const char *what, size_t limit, struct error *err)
{
    return error_set(err, FAULT_LIMIT, "%s, byte %llu: there are more than %zu %s, our limit",
                     source_name(im->source), (unsigned long long)source_offset(im->source), limit,
                     what);
}

uint32_t import_frame(struct import *im, uint32_t module, const char *function, const char *file,
                      uint32_t start_line, uint32_t line)
{
    struct profile *p = im->profile;
    uint32_t name = import_string(im, function, strlen(function));
    uint32_t path = import_string(im, file, strlen(file));
    uint32_t f = profile_function_add(p, profile_text(p, name), "", profile_text(p, path),
                                      start_line, module);
    return profile_frame_named(p, module, f, line);
}

/* A backstop: all that readers do is linear in the file, or bounded, and takes a fraction of this.
 */
static int check_time(struct import *im, struct error *err)
{
    if (clock_now() < im->deadline)
        return 0;
    return error_set(err, FAULT_LIMIT,
                     "%s, byte %llu: reading it has taken longer than any file of its size should",
                     source_name(im->source), (unsigned long long)source_offset(im->source));
}

int import_push(struct import *im, uint32_t *stack, uint32_t frame, struct error *err)
{
    if (!(im->pushes++ & 0xffff) && check_time(im, err))
        return FAULT_LIMIT;
    if (im->profile->stacks.len >= IMPORT_STACKS_MAX)
        return import_too_many(im, "distinct stacks", IMPORT_STACKS_MAX, err);
    *stack = profile_stack_add(im->profile, *stack, frame);
    return 0;
}

static int check_sum(const struct import *im, uint32_t event, uint64_t count, uint64_t value,
                     struct error *err)
{
    const struct profile_event *e = &im->profile->events.data[event];
    uint64_t sum;
    if (__builtin_add_overflow(e->samples, count, &sum) ||
        __builtin_add_overflow(e->value, value, &sum) || sum > INT64_MAX)
        return source_bad(im->source, source_offset(im->source), err,
                          "the values of '%s' add up to more than 63 bits can hold",
                          profile_text(im->profile, e->name));
    return 0;
}

int import_count(struct import *im, uint32_t event, uint32_t thread, uint32_t stack, uint64_t count,
                 uint64_t value, struct error *err)
{
    int rc = check_sum(im, event, count, value, err);
    if (rc)
        return rc;
    im->untimed = true;
    profile_count(im->profile, event, thread, stack, count, value);
    return 0;
}

int import_sample(struct import *im, uint32_t event, uint64_t time, uint32_t thread, uint32_t stack,
                  uint64_t value, struct error *err)
{
    struct profile *p = im->profile;
    int rc = check_sum(im, event, 1, value, err);
    if (rc)
        return rc;
    if (im->first == UINT64_MAX)
        im->first = time;
    if (time > im->last)
        im->last = time;
    uint64_t since = time > im->first ? time - im->first : 0;
    if (since < im->options.from || (im->options.to && since >= im->options.to))
        return 0;
    if (time < im->first)
        im->first = time;
    if (im->options.keep_samples || p->samples_apart)
        profile_sample_add(p, &(struct profile_sample){time, value, event, thread, stack});
    else
        profile_count(p, event, thread, stack, 1, value);
    return 0;
}

__attribute__((format(printf, 4, 0))) static void
add_note(struct import *im, enum note_level level, bool damage, const char *format, va_list args)
{
    struct profile *p = im->profile;
    if (p->notes.len >= IMPORT_NOTES_MAX)
        return;
    struct text t = TEXT_INIT;
    text_vformat(&t, format, args);
    uint32_t text = import_string(im, t.data, t.len);
    *vector_push(&p->notes) = (struct profile_note){level, text, damage};
    text_release(&t);
}

void import_note(struct import *im, enum note_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_note(im, level, false, format, args);
    va_end(args);
}

void import_damage(struct import *im, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_note(im, NOTE_WARNING, true, format, args);
    va_end(args);
}

void import_check_line_end(struct import *im)
{
    if (source_line_open(im->source))
        import_damage(
            im,
            "the last line of %s has no end: if the file was cut short there, a part of it "
            "is missing",
            source_name(im->source));
}

void import_finish(struct import *im, const char *format)
{
    struct profile *p = im->profile;
    if (im->first != UINT64_MAX) {
        p->start = im->first;
        p->end = im->last;
        for (size_t i = 0; i < p->processes.len; i++)
            if (!p->processes.data[i].start)
                p->processes.data[i].start = p->start;
        for (size_t i = 0; i < p->threads.len; i++)
            if (!p->threads.data[i].start)
                p->threads.data[i].start = p->start;
    }
    /* Whoever made the file has finished, so what is in it has too, as far as it knows. */
    for (size_t i = 0; i < p->processes.len; i++) {
        if (!p->processes.data[i].ended)
            p->processes.data[i].end = p->end;
        p->processes.data[i].ended = true;
    }
    if (im->untimed && (im->options.from || im->options.to))
        import_note(im, NOTE_WARNING,
                    "%s has no times: all of it is shown, not the range that was asked for",
                    source_name(im->source));
    if (!p->cells.len && !p->samples.len && !p->spans.len)
        import_damage(im, "there is nothing in %s: no sample, no span", source_name(im->source));
    profile_meta_set(p, "imported_from", format);
    p->complete = true;
}
