/* The lines that `sonde top` shows, in any width: what the screen and the plain table have in
 * common. */
#ifndef SONDE_TOP_PANEL_H
#define SONDE_TOP_PANEL_H

#include "base/text.h"
#include "top/figures.h"

enum panel_pane { PANE_FUNCTIONS, PANE_PATH, PANE_HEAP, PANE_THREADS, PANES };
enum panel_sort { SORT_CPU, SORT_MEMORY, SORT_NAME, SORT_TREE, SORTS };

struct panel_options {
    enum panel_sort sort;
    enum panel_pane pane;
    bool recent;        /* since the moment before, not since the beginning */
    const char *filter; /* part of a name, any case; "" for all */
    struct map *open;   /* (pid, 0): with its threads; (stack's key, 1): with its frames. Or NULL */
    unsigned width;
};

struct row {
    char *text;
    int32_t pid;    /* that it belongs to, or 0 */
    uint64_t opens; /* what Enter opens or closes, as in `open`; 0: nothing */
    bool dim;
};

struct panel {
    struct row *data;
    size_t len, cap;
    char *heading;
};

void panel_release(struct panel *r);
void panel_processes(struct panel *r, const struct figures *f, const struct panel_options *o);
void panel_lower(struct panel *r, const struct figures *f, const struct panel_options *o);
const char *panel_pane_name(enum panel_pane pane);
const char *panel_sort_name(enum panel_sort sort);

/* "▁▂▅█" of the newest `width` values, scaled to the largest; in ASCII where blocks cannot be
 * shown. */
void panel_curve(struct text *out, const double *values, size_t count, size_t width, bool blocks);

#endif
