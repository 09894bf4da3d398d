/*
 * What the files of this room share: the answers being gathered for one request, the module with
 * its open files, and the vtable of resolvers.
 */
#ifndef SONDE_SYMBOL_INTERNAL_H
#define SONDE_SYMBOL_INTERNAL_H

#include "base/arena.h"
#include "base/map.h"
#include "symbol/image.h"
#include "symbol/symbol.h"

/*
 * What is known of one address. A location's function may be NULL until the end: it then comes
 * from its linkage name. The outermost linkage name may be NULL until a symbol table gives it:
 * debug information leaves it out for functions that only their own file sees.
 */
struct answer {
    struct symbol_location *location;
    uint32_t n;
    bool named;
};

struct answers {
    const uint64_t *address;
    size_t count;
    struct answer *item; /* by index of address */
    size_t open;         /* addresses not named yet */
    struct arena arena;
    struct names strings;
};

void answers_init(struct answers *a, const struct symbol_request *request);
void answers_release(struct answers *a);
/* A copy that lives as long as the answers, cut to SYMBOL_TEXT_MAX; NULL gives NULL. */
const char *answers_keep(struct answers *a, const char *text);
/* Index of the first address >= `address`. */
size_t answers_from(const struct answers *a, uint64_t address);
/* Room for `n` locations at an address, zeroed; what was there is forgotten. */
struct symbol_location *answers_place(struct answers *a, size_t index, size_t n);
/* Names an address that has none; a line that is known already stays. */
void answers_name(struct answers *a, size_t index, const char *linkage, uint64_t start);
void answers_mark_named(struct answers *a, size_t index);

struct module {
    const struct symbol_request *request;
    const struct symbol_options *options;
    struct answers answers;
    struct image *image; /* the file itself; NULL if missing or not the one that ran */
    struct image *debug; /* a separate debug file; NULL if none */
    const uint8_t *build_id;
    size_t build_id_len; /* as asked for, or else the file's own; 0: not known */
    bool had_debug_info; /* some was found and named an address */
    bool lacks_split;    /* a .dwo file that some of it is in was not found */
    bool had_symtab;     /* a full symbol table, not only exported names */
    bool from_cache;     /* all answers are those of an earlier time */
    const char *source;  /* the file that answers came from; lives with the answers */
    struct symbol_result *result;
};

/*
 * One way to find names, or a file to find them in. Resolvers of the module's kind run in the
 * table's order; each looks first whether it has anything to do.
 *
 * run: names addresses of m->answers that have no name yet, or sets m->debug. 0, also when there
 * was nothing to find; a fault, with a sentence that becomes the module's note, when something was
 * there and could not be used. Must not undo what others found.
 */
struct resolver {
    const char *name;
    enum symbol_kind kind;
    int (*run)(struct module *m, struct error *err);
};

extern const struct resolver resolver_build_id;   /* debug file by build-id */
extern const struct resolver resolver_debug_link; /* debug file by .gnu_debuglink */
extern const struct resolver resolver_debuginfod; /* debug file from a server */
extern const struct resolver resolver_dwarf;
extern const struct resolver resolver_symtab;
extern const struct resolver resolver_mini; /* .gnu_debugdata */
extern const struct resolver resolver_plt;
extern const struct resolver resolver_frame_table; /* .eh_frame_hdr: no names, but functions */
extern const struct resolver resolver_vdso;
extern const struct resolver resolver_kernel;
extern const struct resolver resolver_perf_map;
extern const struct resolver resolver_jitdump;

/* The module's own file or debug file has a filled section of that name. */
bool module_has(const struct image *image, const char *section);
/* Notes where answers come from, unless something better did before. */
void module_credit(struct module *m, const char *path);
void module_set_status(struct module *m, enum symbol_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Counts an address that is handed out. */
void result_count(struct symbol_result *r, const struct symbol_location *innermost);

/* Names what is open from one of an image's tables; 0 if that table has no symbols of code. */
size_t symtab_resolve(struct module *m, const struct image *image, const char *section);

/* The bytes of .gnu_debugdata unpacked to an image of its own, or NULL. */
struct image *mini_unpack(const struct image *image, struct error *err);

/* `path` is a separate debug file of this module if it opens and its build-id fits: then m->debug
 * is set. */
bool debug_file_try(struct module *m, const char *root, const char *path);

/* The image that the kernel maps into this process as vdso, or NULL. */
struct image *vdso_image(struct error *err);

/* Reads kallsyms text into the answers; public for tests and fuzzing. `hidden` is set if every
 * address was zero. */
void kallsyms_scan(struct answers *a, const char *data, size_t len, bool *hidden);
void perf_map_scan(struct answers *a, const char *data, size_t len);
int jitdump_scan(struct answers *a, const uint8_t *data, size_t len, const char *path,
                 struct error *err);

#endif
