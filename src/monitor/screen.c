/* The screen's life and keys; see screen.h. */
#include "monitor/screen.h"

#include <curses.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "monitor/screen_internal.h"

#define INTERVAL_MIN 200000000ull
#define INTERVAL_MAX 60000000000ull

static int start(FILE *out, FILE *in, struct error *err)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return error_set(err, FAULT_SYSTEM, "the monitor needs a terminal; --once does not");
    setlocale(LC_CTYPE, "");
    SCREEN *screen = newterm(NULL, out, in);
    if (!screen)
        return error_set(err, FAULT_SYSTEM,
                         "this terminal (TERM=%s) is not known; --once needs none",
                         getenv("TERM") ? getenv("TERM") : "");
    set_term(screen);
    noecho();
    cbreak();
    keypad(stdscr, TRUE);
    curs_set(0);
    set_escdelay(50);
    if (!getenv("NO_COLOR") && has_colors()) {
        start_color();
        use_default_colors();
        init_pair(COLOUR_GOOD, COLOR_GREEN, -1);
        init_pair(COLOUR_WARM, COLOR_YELLOW, -1);
        init_pair(COLOUR_HOT, COLOR_RED, -1);
    }
    return 0;
}

/* New rows; the selection stays with its task. */
static void arrange(struct screen *s)
{
    s->choice.filter = s->filter;
    listing_make(&s->rows, s->watch, &s->choice);
    for (size_t i = 0; i < s->rows.list.len; i++)
        if (s->rows.list.data[i].task->tid == s->selected_tid)
            s->selected = i;
    if (s->selected >= s->rows.list.len)
        s->selected = s->rows.list.len ? s->rows.list.len - 1 : 0;
}

static void select_row(struct screen *s, long by)
{
    long last = (long)s->rows.list.len - 1, to = (long)s->selected + by;
    s->selected = (size_t)(to < 0 ? 0 : to > last ? (last < 0 ? 0 : last) : to);
    const struct watch_task *t = screen_selected(s);
    s->selected_tid = t ? t->tid : 0;
}

static void on_prompt_key(struct screen *s, int key)
{
    size_t len = strlen(s->answer);
    if (key == '\n' || key == KEY_ENTER)
        screen_act(s);
    else if (key == 27)
        s->prompt = PROMPT_NONE;
    else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && len)
        s->answer[len - 1] = 0;
    else if (key >= 32 && key < 127 && len + 1 < sizeof s->answer)
        s->answer[len] = (char)key;
}

static void ask(struct screen *s, enum screen_prompt prompt)
{
    s->prompt = prompt;
    memset(s->answer, 0, sizeof s->answer);
}

static void sort_by(struct screen *s, enum listing_sort sort)
{
    s->choice.sort = sort;
    s->choice.tree = false;
}

static bool on_move(struct screen *s, int key)
{
    long page = (long)screen_rows();
    long by = key == KEY_UP      ? -1
              : key == KEY_DOWN  ? 1
              : key == KEY_PPAGE ? -page
              : key == KEY_NPAGE ? page
              : key == KEY_HOME  ? -(long)s->rows.list.len
              : key == KEY_END   ? (long)s->rows.list.len
                                 : 0;
    if (by)
        select_row(s, by);
    return by != 0;
}

static void on_switch(struct screen *s, int key)
{
    struct screen_options *o = &s->options;
    if (key == 't')
        s->choice.tree = !s->choice.tree;
    else if (key == 'H')
        s->watch->with_threads = !s->watch->with_threads;
    else if (key == 'K')
        s->choice.kernel = !s->choice.kernel;
    else if (key == 'p')
        s->paused = !s->paused;
    else if (key == '+' && o->interval < INTERVAL_MAX)
        o->interval *= 2;
    else if (key == '-' && o->interval > INTERVAL_MIN)
        o->interval /= 2;
}

static void on_key(struct screen *s, int key)
{
    static const char sorts[] = "PMTIF#NW"; /* in the order of enum listing_sort */
    const char *sort = key > 0 && key < 128 ? strchr(sorts, key) : NULL;
    *s->message = 0;
    if (on_move(s, key))
        return;
    if (key == 'q' || key == 3)
        s->over = true;
    else if (sort)
        sort_by(s, (enum listing_sort)(sort - sorts));
    else if (key == '/')
        ask(s, PROMPT_FILTER);
    else if (key == 'k')
        ask(s, PROMPT_SIGNAL);
    else if (key == 'n')
        ask(s, PROMPT_NICE);
    else if (key == 'a')
        ask(s, PROMPT_CPUS);
    else if (key == 'f')
        screen_show_files(s);
    else if (key == 's')
        screen_show_sockets(s);
    else if (key == 'd')
        screen_show_disks(s);
    else if (key == '?' || key == 'h')
        screen_show_help(s);
    else
        on_switch(s, key);
}

static void on_page_key(struct screen *s, int key)
{
    if (key == KEY_DOWN)
        s->page_top++;
    else if (key == KEY_UP && s->page_top)
        s->page_top--;
    else if (key == KEY_NPAGE)
        s->page_top += screen_rows();
    else if (key == KEY_PPAGE)
        s->page_top = s->page_top > screen_rows() ? s->page_top - screen_rows() : 0;
    else if (key != KEY_RESIZE)
        text_clear(&s->page);
}

static void take_key(struct screen *s, int key)
{
    if (s->page.len)
        on_page_key(s, key);
    else if (s->prompt)
        on_prompt_key(s, key);
    else
        on_key(s, key);
}

/* Waits for a key until the next look is due. */
static void wait_for_key(struct screen *s, uint64_t due)
{
    for (uint64_t now = clock_now(); now < due && !s->over; now = clock_now()) {
        timeout((int)((due - now) / 1000000) + 1);
        int key = getch();
        if (key == ERR)
            continue;
        take_key(s, key);
        arrange(s);
        screen_draw(s);
    }
}

int screen_run(struct watch *w, const struct screen_options *options, struct error *err)
{
    struct screen s = {.watch = w, .options = *options, .choice = options->rows, .page = TEXT_INIT};
    int rc = start(options->out, options->in, err);
    if (rc)
        return rc;
    if (options->rows.filter)
        snprintf(s.filter, sizeof s.filter, "%s", options->rows.filter);
    while (!s.over) {
        uint64_t due = clock_now() + s.options.interval;
        if (!s.paused)
            watch_look(w);
        if (options->looked && options->looked(options->context, w))
            break;
        arrange(&s);
        screen_draw(&s);
        wait_for_key(&s, due);
    }
    endwin();
    listing_release(&s.rows);
    text_release(&s.page);
    return 0;
}
