/*
 * What runs on this machine now: every process (threads too, if asked for) with what it uses, from
 * /proc, and how fast that grows from one look to the next. Of a task that did not run since, a
 * look reads only that it did not (its schedstat, a fifth of what its stat file costs), of others
 * their stat file, through descriptors that stay open; what costs more is read only for those that
 * are asked about.
 */
#ifndef SONDE_WATCH_H
#define SONDE_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"
#include "base/vector.h"

#define WATCH_HISTORY 60

/* A process, or a thread of one. */
struct watch_task {
    pid_t pid; /* of the process */
    pid_t tid; /* the same as pid for a process as a whole */
    pid_t parent;
    char name[32]; /* as the kernel has it */
    char *command; /* with its arguments; the name in brackets if it has none */
    uid_t user;
    char state;
    int nice, processor;
    unsigned threads;
    uint64_t started;               /* clock ticks after boot: tells two owners of a number apart */
    uint64_t cpu;                   /* ns, user and system */
    uint64_t minor, major;          /* faults */
    uint64_t rss, virtual;          /* bytes */
    double cpu_rate;                /* CPUs: 1 is one whole */
    double fault_rate;              /* a second */
    uint8_t history[WATCH_HISTORY]; /* % of one CPU, at most 255; the latest last */
    uint64_t look;                  /* the last one that saw it */
    uint64_t seen;                  /* when that was */
    int stat_fd, ran_fd;            /* of its stat and schedstat files, or -1 */
    uint64_t ran;                   /* ns on a CPU by its schedstat; 0: not known, or not enough */
    /* Bytes a second over TCP; see traffic.h. */
    bool net_known;
    double net_in, net_out;
    /* watch_detail fills these in; unknown (false) where this user may not see them. */
    bool io_known, memory_known;
    uint64_t read, written; /* bytes from and to disks */
    double read_rate, write_rate, switch_rate;
    uint64_t pss, swap;
    uint64_t switches;
    uint64_t memory_read, memory_cost; /* when, ns: the kernel walks every page for it */
    uint64_t memory_ran;               /* `ran` then */
    uint64_t detailed, detailed_ran;   /* when, and `ran` then */
};

/* The machine as a whole. */
struct watch_machine {
    unsigned cpus;
    uint64_t up; /* ns */
    double load[3];
    double user, system, wait, steal, idle;                    /* CPUs */
    uint64_t memory, free, available, cached, swap, swap_free; /* bytes */
    bool pressure_known;
    double pressure[3]; /* % of the last ten seconds in which some waited: CPU, memory, I/O */
    double disk_read, disk_written, net_in, net_out; /* bytes a second */
    unsigned processes, running, threads;
    uint8_t cpu_history[WATCH_HISTORY], memory_history[WATCH_HISTORY]; /* % */
};

struct watch {
    bool with_threads;
    VECTOR(struct watch_task *) tasks; /* in order of pid, then tid */
    struct map by_id;
    struct watch_machine machine;
    struct traffic *traffic; /* see traffic.h; NULL: not looked at. Released with the watch */
    uint64_t look, now;      /* how many looks; when the last one was */
    size_t open, open_max;   /* descriptors that are kept */
    struct watch_counts {
        uint64_t cpu[8]; /* as /proc/stat has them, ticks */
        uint64_t disk_read, disk_written, net_in, net_out;
    } last;
};

void watch_init(struct watch *w, bool with_threads);
/* One look at everything. Rates are those since the look before; 0 at the first. */
void watch_look(struct watch *w);
struct watch_task *watch_find(const struct watch *w, pid_t pid, pid_t tid); /* NULL if not there */
/* "/proc/PID/FILE", or below its task folder for a thread. */
void watch_path(const struct watch_task *t, const char *file, char *out, size_t size);
/* Reads what costs more for one task: disk I/O, swap and shares of memory, context switches. */
void watch_detail(struct watch *w, struct watch_task *t);
void watch_release(struct watch *w);

#endif
