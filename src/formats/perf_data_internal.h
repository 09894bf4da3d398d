/*
 * perf.data from the inside. perf_data.c walks the file and puts records in the order
 * of their times, perf_data_sample.c takes a record apart, perf_data_header.c knows attributes and
 * features, perf_data_task.c keeps who runs and counts, perf_data_space.c turns addresses and
 * copied stacks into frames, perf_data_work.c shares the walks out among threads,
 * perf_data_front.c reads the beginnings of long records.
 */
#ifndef SONDE_PERF_DATA_INTERNAL_H
#define SONDE_PERF_DATA_INTERNAL_H

#include <linux/perf_event.h>
#include <string.h>

#include "base/ranges.h"
#include "formats/import.h"
#include "formats/perf_data_front.h"
#include "unwind/map.h"

#define PERF_CHAIN_MAX 4096     /* entries of a call chain that are used */
#define PERF_MET 4096           /* frames remembered */
#define PERF_ATTRS_MAX 256      /* events of a file */
#define PERF_IDS_MAX (1u << 20) /* counters of all events */

/* What an attribute says that matters for reading. */
struct perf_attr {
    uint32_t type;
    uint64_t config, period, sample_type, read_format, flags;
    uint64_t branch_type, regs_user, regs_intr;
    uint32_t event; /* of the profile, or PROFILE_NONE before the first sample */
    uint32_t name;  /* string of the profile, 0: not told */
    uint64_t lost;
};

#define PERF_FLAG_FREQ ((uint64_t)1 << 10)
#define PERF_FLAG_SAMPLE_ID_ALL ((uint64_t)1 << 18)
#define PERF_FLAG_BUILD_ID ((uint64_t)1 << 34)

/* A record's bytes, header included. Of a sample with a long copy of a stack this may be the front
 * alone: the rest is in the file. */
struct perf_bytes {
    const uint8_t *data;
    size_t len;
    bool stays;               /* until all is read, as the file's own do, or its front is freed */
    struct perf_front *front; /* NULL: this is all of it */
};

/* A sample, as far as it is used. Pointers lead into the record. */
struct perf_sample {
    uint64_t ip, time, id, period;
    int32_t pid, tid;
    const uint8_t *chain; /* u64 each, not aligned */
    size_t chain_len;
    uint64_t regs_abi;
    const uint8_t *regs; /* u64 each */
    size_t regs_len;
    const uint8_t *stack;
    size_t stack_len;
    const uint8_t *far_stack; /* the same in the file, as long as it is there; NULL: no more */
    size_t far_stack_len;
};

/* A sample on its way: taken apart, walked by whichever thread comes first, then counted. */
struct perf_item {
    struct perf_sample sample;
    const struct perf_space *space;
    struct perf_front *front; /* that the sample leads into, or NULL */
    uint32_t event, thread;
    uint64_t regs_mask;
    bool in_kernel, timed, has_ip, copied; /* copied: registers and stack are there */
    /* What the walk found. */
    size_t first, count; /* its addresses among those of its load, innermost first */
    size_t interrupted;
    bool whole;
};

struct perf_module {
    uint32_t module;       /* of the profile */
    bool opened, readable; /* the file was looked for; is there and the right one */
    struct rows rows;
};

struct perf_build_id {
    uint8_t bytes[20];
    uint8_t len;
};

/* The code that a process has mapped. */
struct perf_space {
    struct ranges maps; /* numbered by modules of the profile */
    struct unwind_map unwind;
};

/* A frame that was looked for before: most addresses of a program are met again and again. */
struct perf_met {
    const struct perf_space *space; /* NULL: none */
    uint64_t address;
    uint32_t frame, version;
};

struct perf_data {
    struct import im;
    struct source *in;
    const uint8_t *file; /* all of it as memory, or NULL */
    VECTOR(struct perf_attr) attrs;
    struct map ids;       /* of a counter -> attribute */
    bool maps_have_ids;   /* some event asked for build-ids with mappings */
    struct map build_ids; /* path (string) -> index into known_ids */
    VECTOR(struct perf_build_id) known_ids;
    struct map modules; /* of the profile -> index into files */
    VECTOR(struct perf_module *) files;
    struct map biases; /* (module, file offset) -> bias - start */
    struct map spaces; /* process -> index into all_spaces */
    VECTOR(struct perf_space *) all_spaces;
    uint32_t kernel, unknown; /* modules */
    uint64_t kernel_text;     /* where the kernel stood, 0: not told */
    uint32_t cut_frame;
    bool stacks_copied; /* some event copies user stacks */
    uint64_t lost;      /* of no event that is known */
    uint64_t odd;       /* records that made no sense */
    struct text release, host;
    /* The stack that was unwound last, outermost first: the next one often begins the same. */
    const struct perf_space *last_space;
    size_t last_len;
    uint64_t last_root, last_address[PERF_CHAIN_MAX];
    uint32_t last_stack[PERF_CHAIN_MAX];
    struct perf_met met[PERF_MET];
    uint32_t version; /* of what is mapped: entries of another hold no more */
    struct perf_work *work;
    struct perf_fronts fronts;
};

static inline uint64_t perf_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint32_t perf_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint16_t perf_u16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Takes a sample apart by its event's layout; false if it ends too early. */
bool perf_sample_decode(struct perf_data *d, struct perf_bytes record, const struct perf_attr *a,
                        struct perf_sample *out);
/* The event a sample or another record belongs to; NULL if it names one that nobody told of. */
struct perf_attr *perf_attr_of(struct perf_data *d, struct perf_bytes record);
/* The time of any record of the kernel's; 0 if it has none. */
uint64_t perf_bytes_time(struct perf_data *d, struct perf_bytes record);

/* An attribute of `len` bytes and its counters. */
int perf_attr_add(struct perf_data *d, const uint8_t *attr, size_t len, const uint8_t *ids,
                  size_t id_count, struct error *err);
/* The profile's event of an attribute, made on first use; PROFILE_NONE if there are too many. */
uint32_t perf_attr_event(struct perf_data *d, struct perf_attr *a);
void perf_attr_rename(struct perf_data *d, struct perf_attr *a, const char *name, size_t len);
/* What a feature section (or record) says; unknown ones are passed over. */
void perf_feature(struct perf_data *d, unsigned feature, struct perf_bytes content);
/* One build-id event: its header, the process, the id and the path. */
void perf_build_id(struct perf_data *d, struct perf_bytes event);

/* A record of the kernel's, in the order of time. */
int perf_bytes_use(struct perf_data *d, struct perf_bytes record, struct error *err);

struct perf_space *perf_space_of(struct perf_data *d, uint32_t process);
void perf_space_forget(struct perf_data *d, uint32_t process); /* as exec does */
void perf_space_copy(struct perf_data *d, uint32_t from, uint32_t to);
int perf_space_map(struct perf_data *d, uint32_t process, uint64_t start, uint64_t len,
                   uint64_t offset, const char *path, const uint8_t *build_id, size_t id_len,
                   struct error *err);
/* The frame of an address in a process's own code. */
uint32_t perf_space_frame(struct perf_data *d, const struct perf_space *s, uint64_t address);
/* Walks a copied stack: addresses, innermost first, to `address` (PERF_CHAIN_MAX). Any thread may,
 * as long as nobody changes the space. */
void perf_space_walk(struct perf_item *item, uint64_t *address);
/* Puts the frames of a walk onto *stack, outermost first. */
int perf_space_push(struct perf_data *d, const struct perf_item *item, const uint64_t *address,
                    uint32_t *stack, struct error *err);

/* Counts a sample whose walk is done, and frees its front. */
int perf_item_use(struct perf_data *d, const struct perf_item *item, const uint64_t *address,
                  struct error *err);
/* Samples are used in the order in which they are added, but not at once. */
int perf_work_add(struct perf_data *d, const struct perf_item *item, struct error *err);
/* Uses all that were added: before what is mapped changes, or the records' bytes go. */
int perf_work_flush(struct perf_data *d, struct error *err);
void perf_work_free(struct perf_work *w); /* NULL-safe */
/* Settles build-ids and whether kernel addresses mean something here; releases all. */
void perf_space_finish(struct perf_data *d);
void perf_space_release(struct perf_data *d);

#endif
