/* `sonde top` on a terminal; see top.h. Drawn anew at every key, answer and change of size. */
#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "top/top.h"

#define KEYS " q quit  ? keys  Tab table  Enter open  f process  s sort  / filter  p pause"
#define KEY_WAIT 100 /* ms between two looks for news */
#define CURVE_MAX 512
#define ESCAPE 27

enum { COLOUR_HEAD = 1, COLOUR_BUSY, COLOUR_TROUBLE };

struct screen {
    struct feed *feed;
    struct figures now; /* shown */
    bool some;          /* there is something in it */
    struct panel_options options;
    struct map open;
    struct panel upper, lower;
    bool lower_focus;
    size_t at[2], first[2]; /* chosen row and first shown one, of the upper and the lower table */
    int32_t pid;            /* what it is narrowed to, or 0 */
    bool paused, help, typing, blocks, over;
    char filter[64];
    char trouble[200];
    double cpu[CURVE_MAX], memory[CURVE_MAX];
    size_t curve;
};

static const char *const keys[] = {
    "arrows, j k     move            PgUp PgDn Home End  further",
    "Tab             the other table",
    "1 2 3 4         functions, hot path, heap by stack, threads",
    "Enter           a process with its threads, a stack with its frames",
    "space, p        pause: figures stand still, the session goes on",
    "s               sort by cpu, memory, name, or as a tree",
    "f               this process alone; f again, or Esc: all",
    "r               since the last look, or since the beginning",
    "/               filter by a part of the name; Esc: all",
    "q               leave; the session goes on",
    NULL};

static void push(double *curve, size_t count, double value)
{
    if (count == CURVE_MAX)
        memmove(curve, curve + 1, (CURVE_MAX - 1) * sizeof *curve);
    curve[count < CURVE_MAX ? count : CURVE_MAX - 1] = value;
}

static void take_news(struct screen *s)
{
    struct text json = TEXT_INIT;
    struct figures fresh;
    struct error err = {0};
    feed_trouble(s->feed, s->trouble);
    if (!feed_take(s->feed, 0, &json)) {
        text_release(&json);
        return;
    }
    int rc = figures_read(&fresh, json.data, json.len, s->some ? &s->now : NULL, &err);
    text_release(&json);
    /* The same step once more has no differences to show. */
    bool stale = s->some && fresh.moment - s->now.moment < 0.05 && !fresh.complete;
    if (rc || s->paused || stale) {
        figures_release(&fresh);
        return;
    }
    figures_release(&s->now);
    s->now = fresh;
    s->some = true;
    s->over = fresh.complete;
    push(s->cpu, s->curve, fresh.rate);
    push(s->memory, s->curve, (double)(fresh.heap_bytes ? fresh.heap_bytes : (uint64_t)fresh.rss));
    s->curve += s->curve < CURVE_MAX;
}

static void paint(int y, int x, int width, const char *text, int attributes)
{
    move(y, x);
    attron(attributes);
    int before = x;
    addnstr(text, (int)strlen(text));
    for (before = getcurx(stdscr); getcury(stdscr) == y && before < x + width; before++)
        addch(' ');
    attroff(attributes);
}

static void draw_line(int y, const char *text, int attributes)
{
    struct text t = TEXT_INIT;
    size_t width = (size_t)COLS;
    text_add(&t, text);
    while (text_columns(t.data) > width) { /* what is too long for the line */
        do
            t.len--;
        while (t.len && ((unsigned char)t.data[t.len] & 0xc0) == 0x80);
        t.data[t.len] = 0;
    }
    paint(y, 0, COLS, t.data, attributes);
    text_release(&t);
}

static void draw_curves(struct screen *s)
{
    const struct figures *f = &s->now;
    struct text t = TEXT_INIT;
    size_t half = (size_t)COLS / 2, width = COLS > 60 ? half - 22 : 8;
    uint64_t memory = f->heap_bytes ? f->heap_bytes : (uint64_t)f->rss;
    text_format(&t, " cpu %6.1f%% of %llu ", f->rate * 100, (unsigned long long)f->cpus);
    panel_curve(&t, s->cpu, s->curve, width, s->blocks);
    if (text_columns(t.data) < half)
        text_add_repeat(&t, ' ', half - text_columns(t.data));
    text_add(&t, f->heap_bytes ? " heap " : " memory ");
    text_add_bytes(&t, memory);
    text_add_char(&t, ' ');
    panel_curve(&t, s->memory, s->curve, width, s->blocks);
    draw_line(1, t.data, has_colors() ? COLOR_PAIR(COLOUR_BUSY) : 0);
    text_release(&t);
}

/* What the figures are of, or what is wrong. */
static void draw_state(const struct screen *s)
{
    struct text t = TEXT_INIT;
    bool trouble = s->trouble[0] && !s->over;
    int attributes = trouble && has_colors() ? COLOR_PAIR(COLOUR_TROUBLE) | A_BOLD : A_DIM;
    if (trouble) {
        text_format(&t, " %s", s->trouble);
    } else if (s->typing) {
        text_format(&t, " filter: %s_", s->filter);
    } else {
        text_format(&t, " sort %s  %s", panel_sort_name(s->options.sort),
                    s->options.recent ? "since the last look" : "since the beginning");
        if (s->filter[0])
            text_format(&t, "  filter %s", s->filter);
        if (s->pid)
            text_format(&t, "  process %d alone", s->pid);
        text_format(&t, "  %s", s->some ? s->now.command : "");
    }
    draw_line(2, t.data, attributes);
    text_release(&t);
}

static void draw_top(struct screen *s)
{
    const struct figures *f = &s->now;
    struct text t = TEXT_INIT;
    text_format(&t, " sonde top  %.1f s  ", f->seconds);
    figures_add_counts(f, &t);
    text_add(&t, s->paused ? "  PAUSED" : s->over ? "  ENDED" : "");
    draw_line(0, t.data, A_REVERSE | (has_colors() ? COLOR_PAIR(COLOUR_HEAD) : 0));
    text_release(&t);
    draw_curves(s);
    draw_state(s);
}

/* Keeps the chosen row in sight. */
static void draw_table(struct screen *s, const struct panel *r, int which, int y, int height)
{
    size_t *at = &s->at[which], *first = &s->first[which];
    bool focus = s->lower_focus == (which == 1);
    size_t most = height > 1 ? (size_t)height - 1 : 0;
    if (*at >= r->len)
        *at = r->len ? r->len - 1 : 0;
    if (*at < *first)
        *first = *at;
    if (most && *at >= *first + most)
        *first = *at - most + 1;
    draw_line(y, r->heading ? r->heading : "", A_BOLD | (focus ? A_UNDERLINE : 0));
    for (size_t i = 0; i < most; i++) {
        size_t row = *first + i;
        bool there = row < r->len;
        draw_line(y + 1 + (int)i, there ? r->data[row].text : "",
                  there && focus && row == *at ? A_REVERSE
                  : there && r->data[row].dim  ? A_DIM
                                               : 0);
    }
}

static void draw_help(void)
{
    for (size_t i = 0; keys[i]; i++) {
        struct text t = TEXT_INIT;
        text_format(&t, "  %s", keys[i]);
        draw_line(4 + (int)i, t.data, 0);
        text_release(&t);
    }
}

static void make_rows(struct screen *s)
{
    s->options.width = (unsigned)COLS;
    s->options.filter = s->filter;
    s->options.open = &s->open;
    panel_release(&s->upper);
    panel_release(&s->lower);
    panel_processes(&s->upper, &s->now, &s->options);
    panel_lower(&s->lower, &s->now, &s->options);
}

static void draw(struct screen *s)
{
    erase();
    if (LINES < 10 || COLS < 40) {
        mvaddnstr(0, 0, "the window is too small", COLS);
        refresh();
        return;
    }
    make_rows(s);
    int rows = (int)s->upper.len + 1, half = (LINES - 5) / 2;
    int upper = rows < half ? rows : half;
    draw_top(s);
    if (s->help) {
        draw_help();
    } else if (!s->some) {
        draw_line(4, s->trouble[0] ? "" : "  waiting for the session's first figures", 0);
    } else {
        draw_table(s, &s->upper, 0, 3, upper);
        struct text bar = TEXT_INIT;
        for (int i = 0; i < PANES; i++)
            text_format(&bar, i == (int)s->options.pane ? " [%d %s] " : "  %d %s  ", i + 1,
                        panel_pane_name((enum panel_pane)i));
        draw_line(3 + upper, bar.data, A_REVERSE);
        text_release(&bar);
        draw_table(s, &s->lower, 1, 4 + upper, LINES - 5 - upper);
    }
    draw_line(LINES - 1, COLS < 90 ? KEYS : KEYS "  r recent", A_DIM);
    refresh();
}

static void choose_process(struct screen *s, int32_t pid)
{
    if (s->pid == pid)
        return;
    s->pid = pid;
    figures_release(&s->now); /* differences against other functions would mean nothing */
    s->now = (struct figures){0};
    s->some = false;
    s->at[1] = s->first[1] = 0;
    feed_select(s->feed, pid);
}

static const struct row *chosen(const struct screen *s)
{
    const struct panel *r = s->lower_focus ? &s->lower : &s->upper;
    size_t at = s->at[s->lower_focus];
    return at < r->len ? &r->data[at] : NULL;
}

static void open_or_close(struct screen *s)
{
    const struct row *row = chosen(s);
    uint64_t kind = s->lower_focus;
    if (!row || !row->opens)
        return;
    if (!map_remove(&s->open, row->opens, kind))
        map_put(&s->open, row->opens, kind, 1, NULL);
}

static void move_by(struct screen *s, long by)
{
    const struct panel *r = s->lower_focus ? &s->lower : &s->upper;
    size_t *at = &s->at[s->lower_focus];
    long to = (long)*at + by;
    *at = to < 0 ? 0 : to >= (long)r->len ? (r->len ? r->len - 1 : 0) : (size_t)to;
}

static void on_typing(struct screen *s, int key)
{
    size_t len = strlen(s->filter);
    if (key == ESCAPE)
        s->filter[0] = 0;
    if (key == ESCAPE || key == '\n' || key == KEY_ENTER)
        s->typing = false;
    else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && len)
        s->filter[len - 1] = 0;
    else if (key >= ' ' && key < 127 && len + 1 < sizeof s->filter) {
        s->filter[len] = (char)key;
        s->filter[len + 1] = 0;
    }
}

static void on_escape(struct screen *s)
{
    if (s->help)
        s->help = false;
    else if (s->filter[0])
        s->filter[0] = 0;
    else
        choose_process(s, 0);
}

static void on_move(struct screen *s, int key)
{
    long page = LINES / 2 - 3;
    if (key == KEY_UP || key == 'k')
        move_by(s, -1);
    else if (key == KEY_DOWN || key == 'j')
        move_by(s, 1);
    else if (key == KEY_PPAGE)
        move_by(s, -page);
    else if (key == KEY_NPAGE)
        move_by(s, page);
    else if (key == KEY_HOME)
        move_by(s, -1000000);
    else if (key == KEY_END)
        move_by(s, 1000000);
}

/* False to leave. */
static bool on_key(struct screen *s, int key)
{
    const struct row *row = chosen(s);
    if (s->typing)
        on_typing(s, key);
    else if (key == 'q')
        return false;
    else if (key == '?' || key == 'h')
        s->help = !s->help;
    else if (key == '\t')
        s->lower_focus = !s->lower_focus;
    else if (key == 'p' || key == ' ')
        s->paused = !s->paused;
    else if (key == 's')
        s->options.sort = (s->options.sort + 1) % SORTS;
    else if (key == 'r')
        s->options.recent = !s->options.recent;
    else if (key == '/')
        s->typing = true;
    else if (key >= '1' && key < '1' + PANES) {
        s->options.pane = (enum panel_pane)(key - '1');
        s->at[1] = s->first[1] = 0;
    } else if (key == '\n' || key == KEY_ENTER)
        open_or_close(s);
    else if (key == 'f')
        choose_process(s, s->pid || !row ? 0 : row->pid);
    else if (key == ESCAPE)
        on_escape(s);
    else
        on_move(s, key);
    return true;
}

static void start_curses(struct screen *s)
{
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    curs_set(0);
    set_escdelay(50);
    timeout(KEY_WAIT);
    s->blocks = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (getenv("NO_COLOR") || !has_colors())
        return;
    start_color();
    use_default_colors();
    init_pair(COLOUR_HEAD, COLOR_CYAN, -1);
    init_pair(COLOUR_BUSY, COLOR_GREEN, -1);
    init_pair(COLOUR_TROUBLE, COLOR_RED, -1);
}

int top_screen(struct feed *feed, FILE *in, FILE *out, struct error *err)
{
    struct screen s = {.feed = feed, .options = {.recent = true, .sort = SORT_CPU}};
    setlocale(LC_ALL, "");
    SCREEN *terminal = newterm(NULL, out, in);
    if (!terminal)
        return error_set(err, FAULT_SYSTEM,
                         "this terminal cannot be drawn on (is TERM right?); `sonde top | cat` "
                         "prints tables");
    start_curses(&s);
    for (bool stay = true; stay;) {
        take_news(&s);
        draw(&s);
        int key = getch();
        if (key != ERR && key != KEY_RESIZE)
            stay = on_key(&s, key);
    }
    endwin();
    delscreen(terminal);
    panel_release(&s.upper);
    panel_release(&s.lower);
    figures_release(&s.now);
    map_release(&s.open);
    return 0;
}
