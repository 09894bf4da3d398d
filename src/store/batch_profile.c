/* A profile as counts: each function's own values by executable and event, and whole stacks. */
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "store/batch.h"

#define DEPTH_MAX 4096

/* Sums by (event, executable, name), in the order in which they first came. */
struct sums {
    struct names texts;
    struct map index; /* -> position in rows */
    VECTOR(struct sum) rows;
};

struct sum {
    uint32_t event, executable, name;
    uint64_t value;
};

static void add(struct sums *s, uint32_t event, uint32_t executable, uint32_t name, uint64_t value)
{
    bool fresh;
    uint64_t *at =
        map_put(&s->index, (uint64_t)executable << 32 | name, event, s->rows.len, &fresh);
    if (fresh)
        *vector_push(&s->rows) = (struct sum){event, executable, name, 0};
    s->rows.data[*at].value += value;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const char *executable_of(const struct profile *p, uint32_t thread)
{
    if (thread >= p->threads.len)
        return "";
    uint32_t process = p->threads.data[thread].process;
    if (process < p->processes.len) {
        const struct profile_process *q = &p->processes.data[process];
        const char *exe = q->execs.len ? profile_text(p, q->execs.data[q->execs.len - 1].exe) : "";
        if (*exe)
            return last_part(exe);
    }
    const char *name = profile_process_name(p, process);
    return strcmp(name, "?") ? name : "";
}

static uint32_t intern(struct sums *s, const char *text, size_t max)
{
    size_t len = strlen(text);
    while (len > max || (len < strlen(text) && len && ((unsigned char)text[len] & 0xc0) == 0x80))
        len--;
    return names_add_len(&s->texts, text, len);
}

/* Name of the function at `location` of a frame; of the module where there are no names, so that
 * places, which are others in each build, do not become functions without number. */
static const char *name_of(const struct profile *p, uint32_t frame, uint32_t location,
                           struct text *scratch)
{
    if (frame >= p->frames.len)
        return "[unknown]";
    const struct profile_frame *f = &p->frames.data[frame];
    if (location < f->location_count) {
        uint32_t function = p->locations.data[f->first_location + location].function;
        const char *name =
            function < p->functions.len ? profile_text(p, p->functions.data[function].name) : "";
        if (*name && !profile_name_is_place(name))
            return name;
    }
    const char *module = profile_module_name(p, f->module);
    text_clear(scratch);
    text_format(scratch, module[0] == '[' ? "%s" : "[%s]", module);
    return scratch->data;
}

static void add_folded(struct text *out, const char *name)
{
    if (out->len)
        text_add_char(out, ';');
    size_t start = out->len;
    text_add(out, name);
    for (size_t i = start; i < out->len; i++)
        if (out->data[i] == ';' || out->data[i] == '\n')
            out->data[i] = ':';
}

/* "root;…;leaf"; what is too long loses its outermost part. */
static void fold(const struct profile *p, uint32_t stack, struct text *out, struct text *scratch)
{
    static _Thread_local uint32_t frames[DEPTH_MAX];
    size_t depth = 0;
    text_clear(out);
    for (; stack && stack < p->stacks.len && depth < DEPTH_MAX;
         stack = p->stacks.data[stack].parent)
        frames[depth++] = p->stacks.data[stack].frame;
    if (stack)
        text_add(out, "[cut]");
    while (depth--) {
        uint32_t frame = frames[depth];
        uint32_t count = frame < p->frames.len ? p->frames.data[frame].location_count : 0;
        for (uint32_t i = count ? count : 1; i-- > 0;)
            add_folded(out, name_of(p, frame, i, scratch));
    }
    if (out->len <= BATCH_STACK_MAX)
        return;
    const char *rest = strchr(out->data + (out->len - BATCH_STACK_MAX + 8), ';');
    char *kept = strdup(rest ? rest : ";[too long]");
    text_clear(out);
    text_format(out, "[cut]%s", kept);
    free(kept);
}

static void hand_over(struct batch *b, const struct profile *p, const struct sums *s,
                      enum count_kind kind)
{
    for (size_t i = 0; i < s->rows.len; i++) {
        const struct sum *r = &s->rows.data[i];
        uint64_t value = r->value < BATCH_VALUE_MAX ? r->value : BATCH_VALUE_MAX;
        if (value)
            batch_count(b, kind, profile_text(p, p->events.data[r->event].name),
                        s->texts.text[r->executable], s->texts.text[r->name], (int64_t)value);
    }
}

static void sums_release(struct sums *s)
{
    names_release(&s->texts);
    map_release(&s->index);
    vector_release(&s->rows);
}

void batch_add_profile(struct batch *b, const struct profile *p, bool stacks)
{
    struct sums nodes = {0}, folded = {0};
    struct text scratch = TEXT_INIT, path = TEXT_INIT;
    for (size_t i = 0; i < p->cells.len; i++) {
        const struct profile_cell *c = &p->cells.data[i];
        if (c->event >= p->events.len)
            continue;
        uint64_t value = c->value ? c->value : c->count;
        uint32_t frame =
            c->stack && c->stack < p->stacks.len ? p->stacks.data[c->stack].frame : PROFILE_NONE;
        const char *executable = executable_of(p, c->thread);
        if (!*executable && frame < p->frames.len)
            executable = profile_module_name(p, p->frames.data[frame].module);
        add(&nodes, c->event, intern(&nodes, executable, BATCH_NAME_MAX),
            intern(&nodes, name_of(p, frame, 0, &scratch), BATCH_NAME_MAX), value);
        if (!stacks)
            continue;
        fold(p, c->stack, &path, &scratch);
        add(&folded, c->event, intern(&folded, executable, BATCH_NAME_MAX),
            intern(&folded, path.len ? path.data : "[unknown]", BATCH_STACK_MAX), value);
    }
    hand_over(b, p, &nodes, COUNT_NODE);
    hand_over(b, p, &folded, COUNT_STACK);
    text_release(&scratch);
    text_release(&path);
    sums_release(&nodes);
    sums_release(&folded);
}
