/* Views of open files and sockets; see tables.h. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "monitor/files.h"
#include "monitor/tables.h"

enum { FD, ACCESS, KIND, SIZE, OFFSET, NAME, FILE_PID, FILE_PROCESS, FILE_COLUMNS };

static const struct view_column file_columns[FILE_COLUMNS] = {
    [FD] = {.id = "fd", .heading = "fd", .kind = VIEW_TEXT},
    [ACCESS] = {.id = "access", .heading = "rw", .kind = VIEW_TEXT},
    [KIND] = {.id = "kind", .heading = "kind", .kind = VIEW_TEXT},
    [SIZE] = {.id = "size", .heading = "size", .kind = VIEW_BYTES},
    [OFFSET] = {.id = "offset", .heading = "offset", .kind = VIEW_COUNT, .from_width = 100},
    [NAME] = {.id = "name", .heading = "Open files", .kind = VIEW_TEXT, .fill = true},
    [FILE_PID] = {.id = "pid", .heading = "pid", .kind = VIEW_NUMBER},
    [FILE_PROCESS] = {.id = "process", .heading = "process", .kind = VIEW_TEXT, .from_width = 90},
};

/* A socket by what it is connected to, not by its number. */
static struct view_value name_of(struct view_section *s, const struct open_file *f,
                                 const struct sockets *sockets)
{
    const struct socket_entry *e =
        !strcmp(f->kind, "socket") ? sockets_of_inode(sockets, f->inode) : NULL;
    char text[300];
    if (!e)
        return view_text(s, f->name);
    snprintf(text, sizeof text, "%s %s%s%s%s%s", e->protocol, e->local, *e->remote ? " -> " : "",
             e->remote, *e->state ? " " : "", e->state);
    return view_text(s, text);
}

static void add_files(struct view_section *s, const struct watch_task *t, const struct files *files,
                      const struct sockets *sockets)
{
    for (size_t i = 0; i < files->list.len; i++) {
        const struct open_file *f = &files->list.data[i];
        struct view_value *cell = view_row(s, 0, VIEW_PLAIN);
        char access[2] = {f->access, 0};
        cell[FD] = view_text(s, f->fd);
        cell[ACCESS] = view_text(s, access);
        cell[KIND] = view_text(s, f->kind);
        if (!strcmp(f->kind, "file"))
            cell[SIZE] = view_number(f->size);
        cell[OFFSET] = view_number(f->offset);
        cell[NAME] = name_of(s, f, sockets);
        cell[FILE_PID] = view_number((uint64_t)t->pid);
        cell[FILE_PROCESS] = view_text(s, t->name);
    }
}

int tables_files(struct view *v, const struct listing *rows, struct error *err)
{
    struct view_section *s = view_add_table(v, "files", "", file_columns, FILE_COLUMNS);
    struct sockets sockets;
    size_t seen = 0;
    int rc = 0;
    sockets_read(&sockets);
    for (size_t i = 0; i < rows->list.len; i++) {
        const struct watch_task *t = rows->list.data[i].task;
        struct files files;
        if (t->pid != t->tid)
            continue;
        rc = files_read(&files, t->pid, err);
        if (rc)
            continue;
        seen++;
        add_files(s, t, &files, &sockets);
        files_release(&files);
    }
    sockets_release(&sockets);
    if (!seen && rc)
        return rc;
    *err = (struct error){0};
    return 0;
}

enum {
    PROTOCOL,
    SOCKET_STATE,
    LOCAL,
    REMOTE,
    RECEIVED,
    SENT,
    SOCKET_PID,
    SOCKET_USER,
    PORT,
    SOCKET_PROCESS,
    SOCKET_COLUMNS
};

static const struct view_column socket_columns[SOCKET_COLUMNS] = {
    [PROTOCOL] = {.id = "protocol", .heading = "proto", .kind = VIEW_TEXT},
    [SOCKET_STATE] = {.id = "state", .heading = "state", .kind = VIEW_TEXT},
    [LOCAL] = {.id = "local", .heading = "local", .kind = VIEW_TEXT},
    [REMOTE] = {.id = "remote", .heading = "remote", .kind = VIEW_TEXT, .from_width = 100},
    [RECEIVED] = {.id = "receive_queue",
                  .heading = "recv-q",
                  .kind = VIEW_COUNT,
                  .from_width = 110},
    [SENT] = {.id = "send_queue", .heading = "send-q", .kind = VIEW_COUNT, .from_width = 110},
    [SOCKET_PID] = {.id = "pid", .heading = "pid", .kind = VIEW_NUMBER},
    [SOCKET_USER] = {.id = "user", .heading = "user", .kind = VIEW_TEXT, .from_width = 90},
    [PORT] = {.id = "port", .heading = "port", .kind = VIEW_NUMBER, .from_width = VIEW_MACHINES},
    [SOCKET_PROCESS] = {.id = "process", .heading = "Held by", .kind = VIEW_TEXT, .fill = true},
};

static bool is_shown(const struct listing *rows, pid_t pid)
{
    if (!rows)
        return true;
    for (size_t i = 0; i < rows->list.len; i++)
        if (rows->list.data[i].task->pid == pid)
            return true;
    return false;
}

static void add_socket(struct view_section *s, const struct watch *w, const struct socket_entry *e,
                       pid_t pid)
{
    struct view_value *cell = view_row(s, 0, VIEW_PLAIN);
    const struct watch_task *t = pid ? watch_find(w, pid, pid) : NULL;
    cell[PROTOCOL] = view_text(s, e->protocol);
    cell[SOCKET_STATE] = view_text(s, e->state);
    cell[LOCAL] = view_text(s, e->local);
    cell[REMOTE] = view_text(s, e->remote);
    cell[RECEIVED] = view_number(e->received);
    cell[SENT] = view_number(e->sent);
    if (pid)
        cell[SOCKET_PID] = view_number((uint64_t)pid);
    cell[SOCKET_USER] = view_text(s, tables_user(e->user));
    if (e->port)
        cell[PORT] = view_number(e->port);
    if (t)
        cell[SOCKET_PROCESS] = view_text(s, t->command);
}

size_t tables_sockets(struct view *v, const struct watch *w, const struct listing *rows,
                      uint64_t port, bool listening_only)
{
    struct view_section *s = view_add_table(v, "sockets", "", socket_columns, SOCKET_COLUMNS);
    struct sockets sockets;
    size_t count = 0;
    sockets_read(&sockets);
    sockets_find_holders(&sockets);
    for (size_t i = 0; i < sockets.list.len; i++) {
        const struct socket_entry *e = &sockets.list.data[i];
        size_t n = e->inode ? sockets_holders(&sockets, e->inode) : 0;
        if ((port && e->port != port) || (listening_only && !e->listening))
            continue;
        for (size_t k = 0; k < n; k++) {
            pid_t pid = sockets_holder(&sockets, e->inode, k);
            if (!is_shown(rows, pid))
                continue;
            add_socket(s, w, e, pid);
            count++;
        }
        if (!n && !rows) {
            add_socket(s, w, e, 0);
            count += e->inode != 0; /* else only the kernel still waits for last packets */
        }
    }
    sockets_release(&sockets);
    return count;
}
