/* See python_lines.h. */
#include "agent/python_lines.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/heap.h"
#include "agent/publish.h"
#include "agent/python.h"
#include "agent/python_hooks.h"

#define SETS 4096
#define LINES_OF_FUNCTION 20000u

struct sets {
    uint32_t used;
    struct line_set set[SETS];
};

static struct sets *sets;
static bool is_set; /* the hooks */
static char main_script[512];

void python_lines_main(const char *path)
{
    size_t len = strlen(path);
    if (len < sizeof main_script)
        memcpy(main_script, path, len + 1);
}

const struct line_set *line_set_of(const struct trace_entry *entry)
{
    return entry->chosen && sets ? &sets->set[entry->chosen - 1] : NULL;
}

/* The last line of a code object: no instruction stands on a later one. */
static int32_t last_line(uint64_t code, int32_t first)
{
    static uint8_t table[SEGMENT_TABLE_MAX];
    static struct cpython_pages pages;
    struct cpython_memory memory;
    struct cpython_code c;
    cpython_memory_local(&memory, &pages, python_probe, 0, 0);
    if (cpython_code_read(&agent_python.py, &memory, code, &c) != 0)
        return first;
    ssize_t size = cpython_table_read(&memory, &c, table, sizeof table);
    int32_t last = first, missing = 0;
    for (int32_t at = 0; size > 0 && missing < 64 && at < 1 << 18; at += 2) {
        int32_t line =
            cpython_line(agent_python.py.layout.lines, table, (size_t)size, c.first_line, at);
        missing = line == CPYTHON_LINE_BAD ? missing + 1 : 0;
        last = line > last ? line : last;
    }
    return last;
}

const struct line_set *line_set_choose(struct trace_entry *entry, uint64_t code)
{
    struct trace_process *p = trace_process;
    struct cpython_pages pages;
    struct cpython_memory memory;
    struct cpython_code c;
    if (entry->chosen || !entry->id || !sets)
        return line_set_of(entry);
    memset(&pages, 0, sizeof pages);
    cpython_memory_local(&memory, &pages, python_probe, 0, 0);
    if (cpython_code_read(&agent_python.py, &memory, code, &c) != 0)
        return NULL;
    uint32_t count = (uint32_t)(last_line(code, c.first_line) - c.first_line) + 1;
    count = count > LINES_OF_FUNCTION ? LINES_OF_FUNCTION : count;
    struct trace_header *h = p->segment;
    struct trace_text text = {
        .kind = TRACE_NAME_LINES, .line = c.first_line, .address = h->lines_used, .count = count};
    if (sets->used == SETS || count > TRACE_LINES - h->lines_used || !trace_say(entry->id, &text)) {
        trace_declare(TRACE_LINES_FULL);
        return NULL;
    }
    struct line_set *s = &sets->set[sets->used++];
    *s = (struct line_set){.code = code,
                           .first = c.first_line,
                           .count = count,
                           .lines =
                               (struct trace_line *)((char *)h + p->layout.lines) + h->lines_used};
    h->lines_used += count;
    entry->chosen = (uint16_t)sets->used;
    if (python_minor == 11)
        python_lines_eval_chosen(code);
    return s;
}

/* "pkg.mod.function" for "…/pkg/mod.py": the pattern may have as much of the path as it likes. */
static bool is_chosen(const char *path, const char *name)
{
    char text[SEGMENT_TEXT_MAX + 512];
    size_t len = strlen(path), named = strlen(name);
    if (len > 3 && !strcmp(path + len - 3, ".py"))
        len -= 3;
    if (len > 9 && !strncmp(path + len - 9, "/__init__", 9))
        len -= 9;
    if (len + named + 2 > sizeof text)
        return false;
    memcpy(text, path, len);
    text[len] = '.';
    memcpy(text + len + 1, name, named + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = text[i] == '/' ? '.' : text[i];
    for (size_t i = len; i-- > 0;)
        if ((i == 0 || path[i - 1] == '/') &&
            trace_matches(trace_settings.chosen, text + i, len - i + 1 + named))
            return true;
    memcpy(text, "__main__.", 9);
    memcpy(text + 9, name, named + 1);
    return !strcmp(path, main_script) && trace_matches(trace_settings.chosen, text, 9 + named);
}

void line_set_consider(struct trace_entry *entry, uint64_t code, const char *path, const char *name)
{
    if (!sets || !trace_settings.chosen[0])
        return;
    entry->decorates = python_is_decorator(path, name);
    if (is_chosen(path, name))
        line_set_choose(entry, code);
}

/* Pages resident, by the second number of /proc/self/statm. */
static int64_t resident(void)
{
    char text[128];
    long fd = raw4(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    long got = raw3(SYS_read, fd, text, sizeof text - 1);
    raw1(SYS_close, fd);
    text[got > 0 ? got : 0] = 0;
    const char *at = strchr(text, ' ');
    int64_t pages = 0;
    for (at = at ? at + 1 : text; *at >= '0' && *at <= '9'; at++)
        pages = pages * 10 + (*at - '0');
    return pages * 4096;
}

/* The most that the thread held since the line began, also in what it called. */
static int64_t high_of(const struct line_run *run, const struct heap_thread *h)
{
    return h->high > run->seen ? h->high : run->seen;
}

static void account(struct line_run *run, uint64_t now)
{
    struct trace_line *l = run->line;
    const struct heap_thread *h = agent_self.heap;
    if (run->segment != trace_process->segment)
        return;
    l->ticks += now - run->since;
    if (heap_has_place(&agent_self)) {
        int64_t high = high_of(run, h);
        l->allocated += h->taken - run->taken;
        l->freed += heap_given(h) - run->given;
        l->allocations += h->slot->allocations - run->allocations;
        if (high > run->held && (uint64_t)(high - run->held) > l->peak)
            l->peak = (uint64_t)(high - run->held);
        if (run->outer && high > run->outer->seen)
            run->outer->seen = high;
    }
    if (trace_settings.rss) {
        int64_t by = resident() - run->rss;
        l->rss += by > 0 ? (uint64_t)by : 0;
        l->rss_freed += by < 0 ? (uint64_t)-by : 0;
    }
}

static void start(struct line_run *run)
{
    struct heap_thread *h = agent_self.heap;
    if (heap_has_place(&agent_self)) {
        if (run->outer && h->high > run->outer->seen)
            run->outer->seen = h->high;
        run->taken = h->taken;
        run->given = heap_given(h);
        run->allocations = h->slot->allocations;
        run->held = run->seen = h->live;
        heap_high_start(h);
    }
    if (trace_settings.rss)
        run->rss = resident();
    run->since = trace_now();
    if (run->begun)
        return;
    run->begun = true;
    run->begin = run->since;
    run->begin_taken = run->taken;
    run->begin_given = run->given;
    run->begin_allocations = run->allocations;
}

struct trace_line *line_pause(struct line_run *run)
{
    struct trace_line *line = run->line;
    if (line)
        account(run, trace_now());
    run->line = NULL;
    return line;
}

void line_resume(struct line_run *run, struct trace_line *line)
{
    run->line = line;
    if (line)
        start(run);
}

void line_begin(struct line_run *run, int32_t line)
{
    uint32_t at = (uint32_t)(line - run->set->first);
    if (run->line)
        account(run, trace_now());
    run->line = at < run->set->count ? &run->set->lines[at] : NULL;
    if (!run->line)
        return;
    run->line->hits++;
    run->segment = trace_process->segment;
    start(run);
}

#define OUTER_MAX 64

/* A function that calls itself: what the inner activation took is not the outer one's line's too,
 * or its lines would add up to more than all. */
static void take_from_outer(const struct line_run *run, uint64_t now)
{
    struct line_run *o = run->outer;
    const struct heap_thread *h = agent_self.heap;
    for (int i = 0; o && o->set != run->set && i < OUTER_MAX; i++)
        o = o->outer;
    if (!o || o->set != run->set || !run->begun || run->segment != trace_process->segment)
        return;
    o->since += now - run->begin;
    if (heap_has_place(&agent_self)) {
        o->taken += h->taken - run->begin_taken;
        o->given += heap_given(h) - run->begin_given;
        o->allocations += h->slot->allocations - run->begin_allocations;
    }
}

void line_end(struct line_run *run)
{
    uint64_t now = trace_now();
    if (run->line)
        account(run, now);
    run->line = NULL;
    take_from_outer(run, now);
}

bool line_set_choose_code(void *code)
{
    python_names_init(); /* hooks may come only later */
    if (!is_set) {
        trace_settings.lines = true;
        python_lines_set();
    }
    uint64_t key = (uint64_t)(uintptr_t)code;
    bool chosen = sets && line_set_choose(python_code_entry(key), key);
    if (chosen && python_minor >= PYTHON_MONITORING)
        python_lines_monitor_choose(key);
    return chosen;
}

void python_lines_set(void)
{
    if (is_set)
        return;
    if (!sets)
        sets = publish_map_wiped((sizeof *sets + 4095) & ~4095ul);
    if (!trace_self() || !sets)
        return;
    bool set = python_minor >= 12 ? python_lines_monitor_set() : python_lines_eval_set();
    is_set = set;
    if (set && trace_settings.chosen[0])
        python_decorator_set();
    if (!set)
        trace_declare(TRACE_HOOK_REFUSED);
}
