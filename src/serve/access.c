/* Tokens in a file; see access.h. */
#include "serve/access.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/memory.h"
#include "base/vector.h"

#define FILE_MAX ((size_t)1 << 20)
#define NAME_MAX_LEN 64

struct entry {
    char name[NAME_MAX_LEN + 1];
    enum http_role role;
    char hash[TOKEN_HASH];
};

struct entries {
    struct entry *data;
    size_t len, cap;
};

struct access {
    char *path;
    bool unreadable; /* there is a file, but what it says is not known */
    struct stat seen;
    struct entries entries;
};

static const char *const roles[] = {"none", "read", "write", "admin"};

enum http_role access_role(const char *name)
{
    for (enum http_role r = HTTP_ROLE_READ; r <= HTTP_ROLE_ADMIN; r++)
        if (!strcmp(roles[r], name))
            return r;
    return HTTP_ROLE_NONE;
}

static bool name_valid(const char *name)
{
    size_t len = strlen(name);
    return len && len <= NAME_MAX_LEN &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

static bool parse_line(char *line, struct entry *e)
{
    const char *name = strsep(&line, " "), *role = strsep(&line, " ");
    if (!role || !line || !name_valid(name) || strlen(line) != TOKEN_HASH - 1)
        return false;
    snprintf(e->name, sizeof e->name, "%s", name);
    memcpy(e->hash, line, TOKEN_HASH);
    e->role = access_role(role);
    return e->role != HTTP_ROLE_NONE;
}

/* Lines that are none of ours are left out: a damaged file opens fewer doors, not more. */
static int read_entries(const char *path, struct entries *out, struct error *err)
{
    char *data;
    out->len = 0;
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    int rc = io_slurp(path, FILE_MAX, &data, NULL, err);
    if (rc)
        return rc;
    for (char *rest = data, *line; (line = strsep(&rest, "\n"));) {
        struct entry e;
        if (parse_line(line, &e))
            *vector_push(out) = e;
    }
    free(data);
    return 0;
}

struct access *access_new(const char *path)
{
    struct access *a = memory_alloc(sizeof *a);
    a->path = memory_strdup(path);
    return a;
}

void access_free(struct access *a)
{
    if (!a)
        return;
    vector_release(&a->entries);
    free(a->path);
    free(a);
}

static void refresh(struct access *a)
{
    struct stat now = {0};
    if (stat(a->path, &now) < 0)
        now = (struct stat){0};
    if (now.st_ino == a->seen.st_ino && now.st_size == a->seen.st_size &&
        now.st_mtim.tv_sec == a->seen.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == a->seen.st_mtim.tv_nsec)
        return;
    a->unreadable = read_entries(a->path, &a->entries, NULL) != 0;
    if (!a->unreadable)
        a->seen = now;
}

bool access_any(struct access *a)
{
    refresh(a);
    return a->entries.len > 0 || a->seen.st_size > 0 || a->unreadable;
}

enum http_role access_check(void *context, const char *token)
{
    struct access *a = context;
    char hash[TOKEN_HASH];
    enum http_role role = HTTP_ROLE_NONE;
    refresh(a);
    token_hash(token, hash);
    for (size_t i = 0; i < a->entries.len; i++)
        if (CRYPTO_memcmp(a->entries.data[i].hash, hash, TOKEN_HASH - 1) == 0)
            role = a->entries.data[i].role;
    return role;
}

/* What root makes in the folder of a server that runs as somebody else is for that one. */
static int hand_over(int fd, const char *path)
{
    char *folder = memory_strdup(path), *slash = strrchr(folder, '/');
    struct stat at = {0};
    if (slash)
        *slash = 0;
    int rc = geteuid() || !slash || stat(folder, &at) < 0 || !at.st_uid
                 ? 0
                 : fchown(fd, at.st_uid, at.st_gid);
    free(folder);
    return rc;
}

/* The new file takes the place of the old one at once. */
static int write_entries(const char *path, const struct entries *entries, struct error *err)
{
    struct text out = TEXT_INIT, fresh = TEXT_INIT;
    int rc = 0;
    for (size_t i = 0; i < entries->len; i++) {
        const struct entry *e = &entries->data[i];
        text_format(&out, "%s %s %s\n", e->name, roles[e->role], e->hash);
    }
    text_format(&fresh, "%s.new", path);
    int fd = open(fresh.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || hand_over(fd, path) < 0 || io_write(fd, out.data, out.len) < 0 || fsync(fd) < 0 ||
        rename(fresh.data, path) < 0)
        rc = error_errno(err, FAULT_SYSTEM, "cannot write %s", path);
    if (fd >= 0)
        close(fd);
    text_release(&out);
    text_release(&fresh);
    return rc;
}

static size_t find(const struct entries *entries, const char *name)
{
    size_t i = 0;
    while (i < entries->len && strcmp(entries->data[i].name, name) != 0)
        i++;
    return i;
}

/* Two who change the file take turns. */
static int lock(const char *path, int *fd, struct error *err)
{
    struct text name = TEXT_INIT;
    text_format(&name, "%s.lock", path);
    *fd = open(name.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = *fd < 0 || hand_over(*fd, path) < 0 || flock(*fd, LOCK_EX) < 0
                 ? error_errno(err, FAULT_SYSTEM, "cannot lock %s", name.data)
                 : 0;
    text_release(&name);
    return rc;
}

int access_add(const char *path, const char *name, enum http_role role, char token[TOKEN_TEXT],
               struct error *err)
{
    struct entries entries = {0};
    int fd = -1;
    if (!name_valid(name))
        return error_set(err, FAULT_USAGE,
                         "a token's name has 1 to %d letters, digits and . _ -, unlike '%s'",
                         NAME_MAX_LEN, name);
    int rc = lock(path, &fd, err);
    if (!rc)
        rc = read_entries(path, &entries, err);
    if (!rc && find(&entries, name) < entries.len)
        rc = error_set(err, FAULT_USAGE, "there is a token '%s' already; remove it first", name);
    if (!rc)
        rc = token_make(token, err);
    if (!rc) {
        struct entry e = {.role = role};
        snprintf(e.name, sizeof e.name, "%s", name);
        token_hash(token, e.hash);
        *vector_push(&entries) = e;
        rc = write_entries(path, &entries, err);
    }
    vector_release(&entries);
    if (fd >= 0)
        close(fd);
    return rc;
}

int access_remove(const char *path, const char *name, struct error *err)
{
    struct entries entries = {0};
    int fd = -1;
    int rc = lock(path, &fd, err);
    if (!rc)
        rc = read_entries(path, &entries, err);
    size_t at = find(&entries, name);
    if (!rc && at == entries.len)
        rc = error_set(err, FAULT_MISSING, "there is no token '%s'", name);
    if (!rc) {
        entries.data[at] = entries.data[--entries.len];
        rc = write_entries(path, &entries, err);
    }
    vector_release(&entries);
    if (fd >= 0)
        close(fd);
    return rc;
}

int access_list(const char *path, struct text *out, struct error *err)
{
    struct entries entries = {0};
    int rc = read_entries(path, &entries, err);
    for (size_t i = 0; !rc && i < entries.len; i++)
        text_format(out, "%-24s %s\n", entries.data[i].name, roles[entries.data[i].role]);
    vector_release(&entries);
    return rc;
}
