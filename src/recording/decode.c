/* One function a record: decodes it into the profile. docs/FORMAT.md draws each. */
#include <stdlib.h>
#include <string.h>

#include "recording/loader_internal.h"

#define GAPS_MAX ((size_t)1 << 22)
#define INLINE_MAX 256
#define STRING_MAX 65535

/* Gives recording identifier `id` its index; false if the numbering makes no sense. Blocks lost to
 * damage leave gaps, which are bounded so that a forged number cannot take the memory. */
static bool define(struct loader *l, struct translation *t, uint64_t id, uint32_t index)
{
    if (id < t->len || id - t->len > GAPS_MAX - l->gaps)
        return false;
    l->gaps += id - t->len;
    vector_reserve(t, id + 1);
    while (t->len < id)
        t->data[t->len++] = PROFILE_NONE;
    t->data[t->len++] = index;
    return true;
}

static uint32_t look_up(const struct translation *t, uint64_t id)
{
    return id < t->len ? t->data[id] : PROFILE_NONE;
}

static uint32_t get(struct cursor *c, const struct translation *t)
{
    return look_up(t, cursor_varint(c));
}

/* An identifier coded as one more, 0 for none. */
static uint32_t get_optional(struct cursor *c, const struct translation *t)
{
    uint64_t v = cursor_varint(c);
    return v ? look_up(t, v - 1) : PROFILE_NONE;
}

/* Strings that were lost read as "". */
static uint32_t get_string(struct loader *l, struct cursor *c)
{
    uint32_t s = get(c, &l->strings);
    return s == PROFILE_NONE ? 0 : s;
}

static bool on_meta(struct loader *l, struct cursor *c)
{
    uint32_t key = get_string(l, c), value = get_string(l, c);
    if (c->bad)
        return false;
    struct profile *p = l->profile;
    const char *k = profile_text(p, key), *v = profile_text(p, value);
    if (!strcmp(k, "start")) {
        l->start = strtoull(v, NULL, 10);
        if (!p->start || l->start < p->start)
            p->start = l->start;
        if (p->end < p->start)
            p->end = p->start;
    } else if (!strcmp(k, "wall_start")) {
        p->wall_start = strtoull(v, NULL, 10);
    }
    profile_meta_set(p, k, v);
    return true;
}

static bool on_strings(struct loader *l, struct cursor *c)
{
    uint64_t id = cursor_varint(c);
    while (cursor_left(c)) {
        uint64_t len = cursor_varint(c);
        const uint8_t *text = len <= STRING_MAX ? cursor_bytes(c, len) : NULL;
        if (!text)
            return false;
        uint32_t s = names_add_len(&l->profile->strings, (const char *)text, len);
        if (!define(l, &l->strings, id++, s))
            return false;
    }
    return !c->bad;
}

static bool on_event(struct loader *l, struct cursor *c)
{
    uint64_t id = cursor_varint(c);
    uint32_t name = get_string(l, c);
    uint64_t unit = cursor_varint(c), period = cursor_varint(c);
    if (c->bad || unit >= UNIT_KINDS)
        return false;
    uint32_t event = profile_event_add(l->profile, profile_text(l->profile, name),
                                       (enum value_unit)unit, period);
    return define(l, &l->events, id, event);
}

static bool on_process(struct loader *l, struct cursor *c)
{
    uint64_t id = cursor_varint(c), pid = cursor_varint(c);
    uint32_t parent = get_optional(c, &l->processes);
    uint64_t start = cursor_varint(c);
    if (c->bad || id < l->processes.len)
        return false;
    return define(l, &l->processes, id,
                  profile_process_add(l->profile, (int32_t)pid, parent, start));
}

static bool on_exec(struct loader *l, struct cursor *c)
{
    uint32_t process = get(c, &l->processes);
    struct profile_exec e = {.time = cursor_varint(c)};
    e.comm = get_string(l, c);
    e.exe = get_string(l, c);
    e.arguments = get_string(l, c);
    if (c->bad || process == PROFILE_NONE)
        return false;
    struct profile_process *p = &l->profile->processes.data[process];
    /* The same exec told again, with what was learnt of it since. */
    if (p->execs.len && p->execs.data[p->execs.len - 1].time == e.time)
        p->execs.data[p->execs.len - 1] = e;
    else
        *vector_push(&p->execs) = e;
    return true;
}

static bool on_process_end(struct loader *l, struct cursor *c)
{
    uint32_t process = get(c, &l->processes);
    uint64_t time = cursor_varint(c), status = cursor_varint(c), rss = cursor_varint(c);
    if (c->bad || process == PROFILE_NONE)
        return false;
    struct profile_process *p = &l->profile->processes.data[process];
    p->ended = true;
    p->end = time;
    p->status_known = status != 0;
    p->status = (int32_t)(status - 1);
    p->max_rss = rss;
    return true;
}

static bool on_thread(struct loader *l, struct cursor *c)
{
    uint64_t id = cursor_varint(c);
    uint32_t process = get(c, &l->processes);
    uint64_t tid = cursor_varint(c), start = cursor_varint(c);
    if (c->bad || process == PROFILE_NONE || id < l->threads.len)
        return false;
    return define(l, &l->threads, id,
                  profile_thread_add(l->profile, process, (int32_t)tid, "", start));
}

static bool on_thread_name(struct loader *l, struct cursor *c)
{
    uint32_t thread = get(c, &l->threads), name = get_string(l, c);
    if (c->bad || thread == PROFILE_NONE)
        return false;
    l->profile->threads.data[thread].name = name;
    return true;
}

static bool on_thread_end(struct loader *l, struct cursor *c)
{
    uint32_t thread = get(c, &l->threads);
    uint64_t time = cursor_varint(c), cpu = cursor_varint(c);
    if (c->bad || thread == PROFILE_NONE)
        return false;
    struct profile_thread *t = &l->profile->threads.data[thread];
    t->ended = true;
    t->end = time;
    t->cpu = cpu;
    return true;
}

static bool on_module(struct loader *l, struct cursor *c)
{
    uint64_t id = cursor_varint(c), kind = cursor_varint(c);
    uint32_t path = get_string(l, c);
    uint64_t len = cursor_varint(c);
    const uint8_t *build_id = len <= 20 ? cursor_bytes(c, len) : NULL;
    if (c->bad || !build_id || kind >= CODE_KINDS)
        return false;
    uint32_t module = profile_module_add(l->profile, (enum code_kind)kind,
                                         profile_text(l->profile, path), build_id, len);
    return define(l, &l->modules, id, module);
}

static bool on_module_note(struct loader *l, struct cursor *c)
{
    uint32_t module = get(c, &l->modules), note = get_string(l, c);
    if (c->bad || module == PROFILE_NONE)
        return false;
    l->profile->modules.data[module].note = note;
    return true;
}

static bool on_mapping(struct loader *l, struct cursor *c)
{
    struct profile_mapping m = {.process = get(c, &l->processes)};
    m.module = get(c, &l->modules);
    m.start = cursor_varint(c);
    m.end = m.start + cursor_varint(c);
    m.offset = cursor_varint(c);
    m.time = cursor_varint(c);
    if (c->bad || m.process == PROFILE_NONE || m.module == PROFILE_NONE || m.end < m.start)
        return false;
    *vector_push(&l->profile->mappings) = m;
    return true;
}

static bool on_functions(struct loader *l, struct cursor *c)
{
    struct profile *p = l->profile;
    uint64_t id = cursor_varint(c);
    while (cursor_left(c)) {
        uint32_t name = get_string(l, c), linkage = get_string(l, c), file = get_string(l, c);
        uint32_t line = (uint32_t)cursor_varint(c), module = get_optional(c, &l->modules);
        if (c->bad)
            return false;
        uint32_t f = profile_function_add(p, profile_text(p, name), profile_text(p, linkage),
                                          profile_text(p, file), line, module);
        if (!define(l, &l->functions, id++, f))
            return false;
    }
    return !c->bad;
}

static bool on_frames(struct loader *l, struct cursor *c)
{
    uint64_t id = cursor_varint(c), address = 0;
    while (cursor_left(c)) {
        uint64_t head = cursor_varint(c);
        uint32_t module = look_up(&l->modules, head >> 1), frame = PROFILE_NONE;
        if (head & 1) {
            uint32_t function = get(c, &l->functions), line = (uint32_t)cursor_varint(c);
            if (!c->bad && function != PROFILE_NONE && module != PROFILE_NONE)
                frame = profile_frame_named(l->profile, module, function, line);
        } else {
            address += (uint64_t)cursor_signed(c);
            if (!c->bad && module != PROFILE_NONE)
                frame = profile_frame_add(l->profile, module, address);
        }
        if (c->bad || !define(l, &l->frames, id++, frame))
            return false;
    }
    return !c->bad;
}

static bool on_stacks(struct loader *l, struct cursor *c)
{
    uint64_t id = cursor_varint(c), frame_id = 0;
    while (cursor_left(c)) {
        uint64_t back = cursor_varint(c);
        frame_id += (uint64_t)cursor_signed(c);
        if (c->bad || !back || back > id)
            return false;
        uint32_t parent = look_up(&l->stacks, id - back), frame = look_up(&l->frames, frame_id);
        uint32_t stack = PROFILE_NONE;
        if (parent != PROFILE_NONE && frame != PROFILE_NONE)
            stack = profile_stack_add(l->profile, parent, frame);
        l->stacks_moved = l->stacks_moved || stack != id || id != l->stacks.len;
        if (!define(l, &l->stacks, id++, stack))
            return false;
    }
    return !c->bad;
}

bool loader_inside(const struct loader *l, uint64_t time)
{
    if (!l->options.from && !l->options.to)
        return true;
    uint64_t t = time > l->start ? time - l->start : 0;
    return t >= l->options.from && (!l->options.to || t < l->options.to);
}

/* Samples are counted by the hundred: one at a time, most of the time goes into waiting for memory.
 * Their stacks are identifiers until here, for the same reason. */
static void count(struct loader *l, size_t *gathered)
{
    struct profile *p = l->profile;
    for (size_t i = 0; l->stacks_moved && i < *gathered; i++) {
        uint32_t stack = look_up(&l->stacks, l->gathered[i].stack);
        l->gathered[i].stack = stack == PROFILE_NONE ? 0 : stack;
    }
    if (!p->samples_apart)
        profile_count_samples(p, l->gathered, *gathered);
    for (size_t i = 0; p->samples_apart && i < *gathered; i++)
        profile_sample_add(p, &l->gathered[i]);
    for (size_t i = 0; !p->samples_apart && l->options.keep_samples && i < *gathered; i++)
        samples_add(&p->samples, &l->gathered[i]);
    *gathered = 0;
}

static bool on_samples(struct loader *l, struct cursor *c)
{
    struct profile *p = l->profile;
    uint32_t event = get(c, &l->events);
    uint64_t time = 0, thread_id = 0, stack_id = 0;
    size_t gathered = 0;
    bool sane = event != PROFILE_NONE;
    while (sane && cursor_left(c)) {
        time += (uint64_t)cursor_signed(c);
        thread_id += (uint64_t)cursor_signed(c);
        stack_id += (uint64_t)cursor_signed(c);
        uint64_t value = cursor_varint(c);
        uint32_t thread = look_up(&l->threads, thread_id);
        sane = !c->bad && thread != PROFILE_NONE;
        if (sane && time > p->end)
            p->end = time;
        if (!sane || !loader_inside(l, time))
            continue;
        uint32_t stack = stack_id < l->stacks.len ? (uint32_t)stack_id : 0;
        if (l->stacks_moved)
            __builtin_prefetch(&l->stacks.data[stack]);
        l->gathered[gathered++] = (struct profile_sample){
            .time = time, .value = value, .event = event, .thread = thread, .stack = stack};
        if (gathered == GATHERED)
            count(l, &gathered);
    }
    count(l, &gathered);
    return sane && !c->bad;
}

/* Has no time, so it belongs to every range. */
static bool on_cells(struct loader *l, struct cursor *c)
{
    uint32_t event = get(c, &l->events);
    while (cursor_left(c)) {
        uint32_t thread = get(c, &l->threads), stack = get(c, &l->stacks);
        uint64_t count = cursor_varint(c), value = cursor_varint(c);
        if (c->bad || event == PROFILE_NONE || thread == PROFILE_NONE)
            return false;
        profile_count(l->profile, event, thread, stack == PROFILE_NONE ? 0 : stack, count, value);
    }
    return !c->bad;
}

static bool on_symbols(struct loader *l, struct cursor *c)
{
    struct profile_location at[INLINE_MAX];
    uint32_t frame = get(c, &l->frames);
    uint64_t n = cursor_varint(c);
    if (c->bad || frame == PROFILE_NONE || n > INLINE_MAX)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        at[i].function = get(c, &l->functions);
        at[i].line = (uint32_t)cursor_varint(c);
        if (c->bad || at[i].function == PROFILE_NONE)
            return false;
    }
    profile_frame_locate(l->profile, frame, at, (uint32_t)n);
    l->profile->symbolized = true;
    return true;
}

static bool on_series(struct loader *l, struct cursor *c)
{
    uint64_t id = cursor_varint(c);
    struct profile_series s = {.name = get_string(l, c)};
    uint64_t unit = cursor_varint(c);
    s.process = get_optional(c, &l->processes);
    s.thread = get_optional(c, &l->threads);
    if (c->bad || unit >= UNIT_KINDS || id < l->series.len)
        return false;
    s.unit = (enum value_unit)unit;
    *vector_push(&l->profile->series) = s;
    return define(l, &l->series, id, (uint32_t)l->profile->series.len - 1);
}

static bool on_points(struct loader *l, struct cursor *c)
{
    uint32_t series = get(c, &l->series);
    if (series == PROFILE_NONE)
        return false;
    uint64_t time = 0;
    int64_t value = 0;
    while (cursor_left(c)) {
        time += (uint64_t)cursor_signed(c);
        value = (int64_t)((uint64_t)value + (uint64_t)cursor_signed(c));
        if (c->bad)
            return false;
        if (loader_inside(l, time))
            *vector_push(&l->profile->series.data[series].points) =
                (struct profile_point){.time = time, .value = value};
    }
    return !c->bad;
}

static bool on_loss(struct loader *l, struct cursor *c)
{
    uint64_t reason = cursor_varint(c);
    struct profile_loss loss = {.event = get_optional(c, &l->events)};
    loss.thread = get_optional(c, &l->threads);
    loss.count = cursor_varint(c);
    if (c->bad || reason >= LOSS_REASONS)
        return false;
    loss.reason = (enum loss_reason)reason;
    *vector_push(&l->profile->losses) = loss;
    return true;
}

static bool on_heap(struct loader *l, struct cursor *c)
{
    struct profile_heap h = {.process = get(c, &l->processes)};
    h.time = cursor_varint(c);
    h.peak = cursor_varint(c);
    h.peak_time = cursor_varint(c);
    h.live = cursor_varint(c);
    h.live_blocks = cursor_varint(c);
    h.allocations = cursor_varint(c);
    h.lost = cursor_varint(c);
    h.frees = cursor_varint(c);
    h.unknown_frees = cursor_varint(c);
    if (c->bad)
        return false;
    *vector_push(&l->profile->heaps) = h;
    return true;
}

static bool on_details(struct loader *l, struct cursor *c)
{
    uint64_t kind = cursor_varint(c), thread = 0, stack = 0, key = 0;
    if (kind >= DETAIL_KINDS)
        return true; /* from a newer sonde */
    while (cursor_left(c)) {
        struct profile_detail d = {.kind = (enum detail_kind)kind};
        thread += (uint64_t)cursor_signed(c);
        stack += (uint64_t)cursor_signed(c);
        key += (uint64_t)cursor_signed(c);
        d.key = key;
        d.count = cursor_varint(c);
        d.value = cursor_varint(c);
        d.thread = look_up(&l->threads, thread);
        if (kind == DETAIL_RELEASED)
            d.key = look_up(&l->threads, key);
        if (c->bad || d.thread == PROFILE_NONE ||
            (kind == DETAIL_RELEASED && d.key == PROFILE_NONE))
            return false;
        uint32_t known = look_up(&l->stacks, stack);
        d.stack = known == PROFILE_NONE ? 0 : known;
        *vector_push(&l->profile->details) = d;
    }
    return !c->bad;
}

static bool on_note(struct loader *l, struct cursor *c)
{
    uint64_t level = cursor_varint(c);
    uint32_t text = get_string(l, c);
    if (c->bad || level >= NOTE_LEVELS)
        return false;
    *vector_push(&l->profile->notes) =
        (struct profile_note){.level = (enum note_level)level, .text = text};
    return true;
}

static bool on_mark(struct loader *l, struct cursor *c)
{
    uint64_t time = cursor_varint(c);
    uint32_t text = get_string(l, c);
    if (c->bad)
        return false;
    *vector_push(&l->profile->marks) = (struct profile_mark){.time = time, .text = text};
    return true;
}

static bool on_cost(struct loader *l, struct cursor *c)
{
    struct profile_cost k = {.collector_cpu = cursor_varint(c)};
    k.collector_rss = cursor_varint(c);
    k.target_extra = cursor_varint(c);
    k.stacks_whole = cursor_varint(c);
    k.stacks_cut = cursor_varint(c);
    k.bytes_written = cursor_varint(c);
    if (c->bad)
        return false;
    l->profile->cost = k;
    return true;
}

static bool on_end(struct loader *l, struct cursor *c)
{
    uint64_t end = cursor_varint(c);
    if (c->bad)
        return false;
    if (end > l->profile->end)
        l->profile->end = end;
    l->profile->complete = true;
    return true;
}

bool loader_apply(struct loader *l, uint64_t type, struct cursor *c)
{
    static bool (*const on[])(struct loader *, struct cursor *) = {
        [RECORD_META] = on_meta,
        [RECORD_STRINGS] = on_strings,
        [RECORD_EVENT] = on_event,
        [RECORD_PROCESS] = on_process,
        [RECORD_PROCESS_EXEC] = on_exec,
        [RECORD_PROCESS_END] = on_process_end,
        [RECORD_THREAD] = on_thread,
        [RECORD_THREAD_NAME] = on_thread_name,
        [RECORD_THREAD_END] = on_thread_end,
        [RECORD_MODULE] = on_module,
        [RECORD_MAPPING] = on_mapping,
        [RECORD_FRAMES] = on_frames,
        [RECORD_STACKS] = on_stacks,
        [RECORD_SAMPLES] = on_samples,
        [RECORD_FUNCTIONS] = on_functions,
        [RECORD_SYMBOLS] = on_symbols,
        [RECORD_SERIES] = on_series,
        [RECORD_POINTS] = on_points,
        [RECORD_LOSS] = on_loss,
        [RECORD_NOTE] = on_note,
        [RECORD_COST] = on_cost,
        [RECORD_END] = on_end,
        [RECORD_MODULE_NOTE] = on_module_note,
        [RECORD_CELLS] = on_cells,
        [RECORD_HEAP] = on_heap,
        [RECORD_DETAILS] = on_details,
        [RECORD_SPANS] = loader_on_spans,
        [RECORD_MARK] = on_mark,
    };
    if (type >= sizeof on / sizeof *on || !on[type])
        return true; /* from a newer sonde of the same major version */
    return on[type](l, c);
}
