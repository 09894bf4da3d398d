/* The events there are; see event_list.h. */
#include "capture/event_list.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "capture/event_internal.h"

/* Opening a tracepoint patches the kernel, which takes some 40 ms: of many, one is tried. */
#define TRACEPOINTS_TRIED 4

struct lister {
    const char *pattern;
    void (*each)(void *context, const struct event_entry *e);
    void *context;
    enum event_group group;
    size_t tried;
    bool last_opens;
    char last_why[200];
};

static bool matches(const struct lister *l, const char *name)
{
    return !l->pattern || fnmatch(l->pattern, name, FNM_CASEFOLD) == 0;
}

/* On this process first, then, for what counts CPUs, on CPU 0. */
static bool try_open(const char *name, char *why, size_t size)
{
    struct event e;
    struct error err = {0};
    struct perf_event_attr a;
    *why = 0;
    if (event_parse(name, &e, &err)) {
        snprintf(why, size, "%.190s", err.text);
        return false;
    }
    event_count_attr(&e, &a);
    int fd = event_open(&a, 0, -1, -1);
    if (fd < 0 && (errno == EACCES || errno == EPERM)) {
        a.exclude_kernel = 1;
        fd = event_open(&a, 0, -1, -1);
        snprintf(why, size, fd >= 0 ? "the programs' side only (:u)" : "%s",
                 event_refusal(&e, errno));
    } else if (fd < 0 && errno == EINVAL) {
        a.exclude_hv = 0;
        fd = event_open(&a, -1, 0, -1);
        snprintf(why, size, "%s", fd >= 0 ? "with -a only" : event_refusal(&e, errno));
    } else if (fd < 0) {
        snprintf(why, size, "%s", event_refusal(&e, errno));
    }
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void tell(struct lister *l, const char *name, const char *alias, const char *what)
{
    char why[200];
    if (!matches(l, name) && !(alias && matches(l, alias)))
        return;
    struct event_entry e = {
        .group = l->group, .name = name, .alias = alias, .what = what, .why = why};
    if (l->group != EVENT_TRACEPOINT || l->tried < TRACEPOINTS_TRIED) {
        e.opens = try_open(name, why, sizeof why);
        if (l->group == EVENT_PFM && strstr(why, "is not an event"))
            snprintf(why, sizeof why, "needs one of its unit masks, as NAME:MASK");
        l->last_opens = e.opens;
        snprintf(l->last_why, sizeof l->last_why, "%s", why);
        l->tried++;
    } else { /* the rest is judged by those */
        e.opens = l->last_opens;
        snprintf(why, sizeof why, "%s", l->last_opens ? "" : l->last_why);
    }
    l->each(l->context, &e);
}

static void list_known(struct lister *l, uint32_t type)
{
    for (size_t i = 0; i < event_known_count; i++)
        if (event_known[i].type == type)
            tell(l, event_known[i].name, event_known[i].alias, "");
}

static void list_caches(struct lister *l)
{
    static const char *const caches[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
                                         "iTLB",      "branch",    "node"};
    static const char *const tails[] = {"loads",        "load-misses", "stores",
                                        "store-misses", "prefetches",  "prefetch-misses"};
    char name[64];
    for (size_t c = 0; c < sizeof caches / sizeof *caches; c++)
        for (size_t t = 0; t < sizeof tails / sizeof *tails; t++) {
            bool code = !strcmp(caches[c], "L1-icache") || !strcmp(caches[c], "iTLB") ||
                        !strcmp(caches[c], "branch");
            if (code && t >= 2)
                continue; /* nobody stores or prefetches there */
            snprintf(name, sizeof name, "%s-%s", caches[c], tails[t]);
            tell(l, name, NULL, "");
        }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct name_list {
    char **data;
    size_t len, cap;
};

/* Names in a folder, sorted; the caller frees them. */
static struct name_list read_folder(const char *path)
{
    struct name_list names = {0};
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.')
            *vector_push(&names) = memory_strdup(e->d_name);
    if (d)
        closedir(d);
    if (names.len)
        qsort(names.data, names.len, sizeof *names.data, compare_names);
    return names;
}

static void free_names(struct name_list *names)
{
    for (size_t i = 0; i < names->len; i++)
        free(names->data[i]);
    vector_release(names);
}

/* Each file of each folder of `root` (with `below` between), as folder, `joint`, file and `end`. */
static void list_tree(struct lister *l, const char *root, const char *below, const char *joint,
                      const char *end)
{
    struct name_list folders = read_folder(root);
    for (size_t i = 0; i < folders.len; i++) {
        struct text path = TEXT_INIT, name = TEXT_INIT;
        text_format(&path, "%s/%s%s", root, folders.data[i], below);
        struct name_list files = read_folder(path.data);
        for (size_t k = 0; k < files.len; k++) {
            const char *file = files.data[k];
            bool attribute = text_ends(file, ".unit") || text_ends(file, ".scale") ||
                             text_ends(file, ".snapshot") || text_ends(file, ".per-pkg") ||
                             !strcmp(file, "enable") || !strcmp(file, "filter");
            text_clear(&name);
            text_format(&name, "%s%s%s%s", folders.data[i], joint, file, end);
            if (!attribute)
                tell(l, name.data, NULL, "");
        }
        free_names(&files);
        text_release(&name);
        text_release(&path);
    }
    free_names(&folders);
}

static void list_pfm(void *context, const char *pmu, const char *name, const char *what)
{
    struct lister *l = context;
    struct text whole = TEXT_INIT;
    text_format(&whole, "%s::%s", pmu, name);
    tell(l, whole.data, NULL, what);
    text_release(&whole);
}

void event_list(const char *pattern, void (*each)(void *context, const struct event_entry *e),
                void *context)
{
    struct lister l = {.pattern = pattern, .each = each, .context = context};
    const char *tracing = event_tracing_root();
    char path[96];
    l.group = EVENT_HARDWARE;
    list_known(&l, PERF_TYPE_HARDWARE);
    l.group = EVENT_CACHE;
    list_caches(&l);
    l.group = EVENT_SOFTWARE;
    list_known(&l, PERF_TYPE_SOFTWARE);
    l.group = EVENT_PMU;
    list_tree(&l, EVENT_PMU_ROOT, "/events", "/", "/");
    l.group = EVENT_TRACEPOINT;
    l.tried = 0;
    snprintf(path, sizeof path, "%s/events", tracing ? tracing : "");
    if (tracing)
        list_tree(&l, path, "", ":", "");
    l.group = EVENT_PFM;
    event_pfm_each(list_pfm, &l);
}

bool event_listing_complete(void)
{
    return event_pfm_present();
}
