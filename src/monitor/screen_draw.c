/* Drawing the monitor; see screen.h. Everything from outside is made printable first. */
#include <curses.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "monitor/screen_internal.h"
#include "monitor/tables.h"

#define HEAD_LINES 5

const char *const screen_sorts[LISTING_SORTS] = {"cpu",    "memory", "time", "io",
                                                 "faults", "pid",    "name", "net"};

static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

size_t screen_rows(void)
{
    return LINES > HEAD_LINES + 2 ? (size_t)(LINES - HEAD_LINES - 2) : 1;
}

struct watch_task *screen_selected(const struct screen *s)
{
    return s->selected < s->rows.list.len ? s->rows.list.data[s->selected].task : NULL;
}

/* The latest `n` points, each a block as high as its share of `full`. */
static void add_sparkline(struct text *t, const uint8_t *history, size_t n, unsigned full)
{
    for (size_t i = WATCH_HISTORY - n; i < WATCH_HISTORY; i++) {
        unsigned level = history[i] >= full ? 8 : history[i] * 8u / full;
        text_add(t, blocks[level ? level : history[i] ? 1 : 0]);
    }
}

static void put_line(int y, const struct text *t)
{
    struct text shown = TEXT_INIT;
    text_add_printable(&shown, t->data);
    size_t end = 0;
    /* As many characters as there are columns: more would go on in the next line. */
    for (int taken = 0; shown.data[end]; end++)
        if (((unsigned char)shown.data[end] & 0xc0) != 0x80 && ++taken > COLS)
            break;
    mvaddnstr(y, 0, shown.data, (int)end);
    clrtoeol();
    text_release(&shown);
}

static void add_rate(struct text *t, double bytes, const char *after)
{
    text_add_bytes(t, (uint64_t)(bytes + 0.5));
    text_add(t, after);
}

static void draw_machine(const struct screen *s)
{
    const struct watch_machine *m = &s->watch->machine;
    struct text t = TEXT_INIT;
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    text_format(&t, "sonde monitor · %s · up ", host);
    text_add_duration(&t, m->up);
    text_format(&t, " · load %.2f %.2f %.2f · %u processes, %u threads, %u running%s", m->load[0],
                m->load[1], m->load[2], m->processes, m->threads, m->running,
                s->paused ? " · PAUSED" : "");
    put_line(0, &t);
    text_clear(&t);
    size_t n = COLS > 120 ? 40 : 20;
    double cpus = m->cpus ? m->cpus : 1;
    text_add(&t, "cpu     ");
    add_sparkline(&t, m->cpu_history, n, 100);
    text_format(&t, " %3.0f%%  user %.0f%% system %.0f%% disk %.0f%% stolen %.0f%% of %u CPUs",
                100 - 100 * m->idle / cpus, 100 * m->user / cpus, 100 * m->system / cpus,
                100 * m->wait / cpus, 100 * m->steal / cpus, m->cpus);
    put_line(1, &t);
    text_clear(&t);
    text_add(&t, "memory  ");
    add_sparkline(&t, m->memory_history, n, 100);
    text_format(&t, " %3.0f%%  ",
                m->memory ? 100.0 * (double)(m->memory - m->available) / (double)m->memory : 0);
    text_add_bytes(&t, m->memory - m->available);
    text_add(&t, " of ");
    text_add_bytes(&t, m->memory);
    text_add(&t, ", swapped ");
    text_add_bytes(&t, m->swap - m->swap_free);
    put_line(2, &t);
    text_clear(&t);
    text_add(&t, "disk    ");
    add_rate(&t, m->disk_read, "/s read, ");
    add_rate(&t, m->disk_written, "/s written · net ");
    add_rate(&t, m->net_in, "/s in, ");
    add_rate(&t, m->net_out, "/s out");
    if (m->pressure_known)
        text_format(&t, " · waits cpu %.0f%% mem %.0f%% io %.0f%%", m->pressure[0], m->pressure[1],
                    m->pressure[2]);
    put_line(3, &t);
    text_release(&t);
}

struct column {
    const char *heading;
    int width, from;
    void (*add)(struct text *t, const struct watch_task *task);
};

static void add_user(struct text *t, const struct watch_task *k)
{
    text_format(t, "%.8s", tables_user(k->user));
}
static void add_cpu(struct text *t, const struct watch_task *k)
{
    text_format(t, "%.1f", 100 * k->cpu_rate);
}
static void add_rss(struct text *t, const struct watch_task *k)
{
    text_add_bytes(t, k->rss);
}
static void add_pss(struct text *t, const struct watch_task *k)
{
    if (k->memory_known)
        text_add_bytes(t, k->pss);
    else
        text_add(t, "-");
}
static void add_swap(struct text *t, const struct watch_task *k)
{
    text_add_bytes(t, k->swap);
}
static void add_io(struct text *t, const struct watch_task *k, double v)
{
    if (k->io_known)
        text_add_bytes(t, (uint64_t)(v + 0.5));
    else
        text_add(t, "-");
}
static void add_read(struct text *t, const struct watch_task *k)
{
    add_io(t, k, k->read_rate);
}
static void add_write(struct text *t, const struct watch_task *k)
{
    add_io(t, k, k->write_rate);
}
static void add_net(struct text *t, const struct watch_task *k, double v)
{
    if (k->net_known)
        text_add_bytes(t, (uint64_t)(v + 0.5));
    else
        text_add(t, "-");
}
static void add_in(struct text *t, const struct watch_task *k)
{
    add_net(t, k, k->net_in);
}
static void add_out(struct text *t, const struct watch_task *k)
{
    add_net(t, k, k->net_out);
}
static void add_faults(struct text *t, const struct watch_task *k)
{
    text_add_count(t, (uint64_t)(k->fault_rate + 0.5));
}
static void add_switches(struct text *t, const struct watch_task *k)
{
    text_add_count(t, (uint64_t)(k->switch_rate + 0.5));
}
static void add_time(struct text *t, const struct watch_task *k)
{
    text_add_duration(t, k->cpu);
}
static void add_threads(struct text *t, const struct watch_task *k)
{
    text_format(t, "%u", k->threads);
}
static void add_history(struct text *t, const struct watch_task *k)
{
    add_sparkline(t, k->history, 10, 100);
}

static const struct column columns[] = {
    {"cpu%", 6, 0, add_cpu},           {"RSS", 10, 0, add_rss},
    {"PSS", 10, 110, add_pss},         {"swap", 10, 170, add_swap},
    {"read/s", 10, 100, add_read},     {"write/s", 10, 100, add_write},
    {"in/s", 10, 145, add_in},         {"out/s", 10, 145, add_out},
    {"faults/s", 9, 130, add_faults},  {"switch/s", 9, 160, add_switches},
    {"time", 9, 0, add_time},          {"thr", 5, 90, add_threads},
    {"history", 11, 120, add_history}, {"user", 9, 80, add_user},
};

static void add_cell(struct text *t, const char *cell, int width)
{
    int columns_taken = (int)text_columns(cell);
    text_add_repeat(t, ' ', columns_taken < width ? (size_t)(width - columns_taken) : 1);
    text_add(t, cell);
}

static void draw_heading(const struct screen *s)
{
    struct text t = TEXT_INIT;
    text_add(&t, "    pid");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (COLS >= columns[i].from)
            add_cell(&t, columns[i].heading, columns[i].width);
    text_format(&t, " S command (by %s%s)", screen_sorts[s->choice.sort],
                s->choice.tree ? ", tree" : "");
    size_t taken = text_columns(t.data);
    text_add_repeat(&t, ' ', (size_t)COLS > taken ? (size_t)COLS - taken : 0);
    attron(A_REVERSE);
    put_line(4, &t);
    attroff(A_REVERSE);
    text_release(&t);
}

static int colour_of(const struct watch_task *t)
{
    return t->cpu_rate >= 0.8 ? COLOUR_HOT : t->cpu_rate >= 0.2 ? COLOUR_WARM : 0;
}

static void draw_row(const struct screen *s, const struct listing_row *r, int y, bool selected)
{
    const struct watch_task *k = r->task;
    struct text t = TEXT_INIT, cell = TEXT_INIT;
    text_format(&t, "%7d", k->tid);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        if (COLS < columns[i].from)
            continue;
        text_clear(&cell);
        columns[i].add(&cell, k);
        add_cell(&t, cell.data, columns[i].width);
    }
    text_format(&t, " %c ", k->state);
    for (unsigned d = 1; d < r->depth; d++)
        text_add(&t, "  ");
    if (r->depth)
        text_add(&t, r->last ? "└─" : "├─");
    text_add(&t, k->command);
    int attributes = (selected ? A_BOLD | A_REVERSE : 0) | COLOR_PAIR(colour_of(k));
    attron(attributes);
    put_line(y, &t);
    attroff(attributes);
    text_release(&t);
    text_release(&cell);
    (void)s;
}

static void draw_foot(const struct screen *s)
{
    static const char *const prompts[] = {[PROMPT_FILTER] = "show commands that hold: ",
                                          [PROMPT_SIGNAL] =
                                              "signal to send (15 asks it to end, 9 kills): ",
                                          [PROMPT_NICE] = "nice, from -20 to 19: ",
                                          [PROMPT_CPUS] = "CPUs that it may run on (0,2-3): "};
    struct text t = TEXT_INIT;
    if (s->prompt)
        text_format(&t, "%s%s_", prompts[s->prompt], s->answer);
    else if (*s->message)
        text_add(&t, s->message);
    else
        text_add(&t, "q quit  t tree  H threads  / filter  P M T I sort  k kill  n nice  a CPUs  "
                     "f files  s sockets  d disks  p pause  ? help");
    attron(s->prompt ? A_BOLD : A_DIM);
    put_line(LINES - 1, &t);
    attroff(s->prompt ? A_BOLD : A_DIM);
    text_release(&t);
}

static void draw_page(const struct screen *s)
{
    const char *at = s->page.data;
    size_t line = 0;
    int y = 0;
    for (; *at && y < LINES - 1; line++) {
        const char *end = strchr(at, '\n');
        struct text t = TEXT_INIT;
        text_add_len(&t, at, end ? (size_t)(end - at) : strlen(at));
        if (line >= s->page_top)
            put_line(y++, &t);
        text_release(&t);
        at = end ? end + 1 : at + strlen(at);
    }
    struct text t = TEXT_INIT;
    text_add(&t, "any other key: back   up, down: scroll");
    attron(A_DIM);
    put_line(LINES - 1, &t);
    attroff(A_DIM);
    text_release(&t);
}

static void draw_processes(struct screen *s)
{
    size_t fit = screen_rows();
    if (s->selected < s->top)
        s->top = s->selected;
    if (s->selected >= s->top + fit)
        s->top = s->selected - fit + 1;
    for (size_t i = 0; i < fit && s->top + i < s->rows.list.len; i++) {
        const struct listing_row *r = &s->rows.list.data[s->top + i];
        watch_detail(s->watch, r->task);
        draw_row(s, r, HEAD_LINES + (int)i, s->top + i == s->selected);
    }
}

void screen_draw(struct screen *s)
{
    erase();
    if (s->page.len) {
        draw_page(s);
    } else {
        draw_machine(s);
        draw_heading(s);
        draw_processes(s);
        draw_foot(s);
    }
    refresh();
}
