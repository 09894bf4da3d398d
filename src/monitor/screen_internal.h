/* State of the screen, shared by screen.c (life, keys), screen_draw.c and screen_act.c. */
#ifndef SONDE_WATCH_SCREEN_INTERNAL_H
#define SONDE_WATCH_SCREEN_INTERNAL_H

#include "base/text.h"
#include "monitor/screen.h"

/* What a key asks for before something is done to a process. */
enum screen_prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_SIGNAL, PROMPT_NICE, PROMPT_CPUS };

struct screen {
    struct watch *watch;
    struct screen_options options;
    struct listing_choice choice;
    struct listing rows;
    size_t selected, top; /* rows */
    pid_t selected_tid;   /* stays selected when rows move */
    bool paused, over;
    char filter[128];
    enum screen_prompt prompt;
    char answer[128];
    char message[160]; /* of what was done last */
    struct text page;  /* files, sockets, disks, help; empty: the processes */
    size_t page_top;
};

enum { COLOUR_GOOD = 1, COLOUR_WARM, COLOUR_HOT, COLOUR_DIM };

extern const char *const screen_sorts[LISTING_SORTS];

struct watch_task *screen_selected(const struct screen *s); /* NULL if there is none */
void screen_draw(struct screen *s);
size_t screen_rows(void); /* how many processes fit */
/* Carries out what was asked for; s->message tells how it went. */
void screen_act(struct screen *s);
/* Fills s->page. */
void screen_show_files(struct screen *s);
void screen_show_sockets(struct screen *s);
void screen_show_disks(struct screen *s);
void screen_show_help(struct screen *s);

#endif
