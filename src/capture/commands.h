/*
 * What programs were called with, taken down by the kernel when they start: many are gone before
 * anyone could look at /proc. Part of tree_filter.h, which see for what it needs.
 */
#ifndef SONDE_COMMANDS_H
#define SONDE_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define COMMANDS_ARGUMENTS 1024 /* bytes that are taken down at most */

struct commands;

/* What the map `tree` says of a process. */
enum { TREE_MUTED, TREE_SAMPLED, TREE_TOLD };

/* Where the kernel keeps them. */
struct commands_places {
    uint32_t memory;       /* in the task: its memory */
    uint32_t arguments[2]; /* in that: where they start and end */
    uint32_t file;         /* in what the program is loaded by: its file */
    uint32_t entry;        /* in that: its place in a folder */
    uint32_t name;         /* in that: what it is called */
};

/* Of the processes in the map `tree`, where each program begins as TREE_SAMPLED, and Python, by the
 * name of its file, as `python`. NULL if that is not to be had. */
struct commands *commands_new(int tree, const struct commands_places *places, int python);
/* Takes in what has come. */
void commands_refresh(struct commands *c);
/* Copies the arguments of the program that the process started at `time` (just before they were
 * taken down), with spaces between them. False if they are not known. Each is told once. */
bool commands_take(struct commands *c, pid_t pid, uint64_t time, char *out, size_t size);
void commands_free(struct commands *c);

#endif
