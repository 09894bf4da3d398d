/* Answers at rest; see answer_cache.h. */
#include "symbol/answer_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/io.h"
#include "base/memory.h"
#include "symbol/answer_wire.h"

#define MAGIC ((uint64_t)0x0131736e61646e73)
#define WORTH ((uint64_t)1 << 18) /* bytes of debug information that take long enough to read */
#define ADDRESSES_MAX ((uint64_t)1 << 14)
#define FILE_MAX ((size_t)8 << 20)
#define FILES_MAX 256
#define WIRE_INDEX 8 /* where an answer's index is in its message */

/* A file of the cache, in memory. */
struct shelf {
    char *data;
    size_t len;
    const char *address; /* u64 each, not aligned */
    uint64_t count;
    size_t *answer, *size; /* where each address's message is in data; 0: no name */
    size_t result, result_size;
};

static void shelf_release(struct shelf *s)
{
    free(s->data);
    free(s->answer);
    free(s->size);
    *s = (struct shelf){0};
}

static uint64_t shelf_address(const struct shelf *s, uint64_t i)
{
    uint64_t value;
    memcpy(&value, s->address + 8 * i, sizeof value);
    return value;
}

static uint64_t shelf_find(const struct shelf *s, uint64_t address)
{
    uint64_t low = 0, n = s->count;
    while (n > 0) {
        bool below = shelf_address(s, low + n / 2) < address;
        low = below ? low + n / 2 + 1 : low;
        n = below ? n - n / 2 - 1 : n / 2;
    }
    return low < s->count && shelf_address(s, low) == address ? low : UINT64_MAX;
}

static bool index_messages(struct shelf *s, size_t at, struct wire_message *message)
{
    while (at < s->len) {
        ssize_t size = wire_get(s->data + at, s->len - at, message);
        if (size <= 0 || s->result)
            return false;
        if (message->type == WIRE_RESULT) {
            s->result = at;
            s->result_size = (size_t)size;
        } else if (message->index < s->count) {
            s->answer[message->index] = at;
            s->size[message->index] = (size_t)size;
        } else {
            return false;
        }
        at += (size_t)size;
    }
    return s->result != 0;
}

/* Believes nothing of what it reads: somebody may have cut the file, or the disk did. */
static bool shelf_parse(struct shelf *s)
{
    uint64_t head[2];
    if (s->len < sizeof head)
        return false;
    memcpy(head, s->data, sizeof head);
    if (head[0] != MAGIC || head[1] > ADDRESSES_MAX || head[1] > (s->len - sizeof head) / 8)
        return false;
    s->count = head[1];
    s->address = s->data + sizeof head;
    s->answer = memory_array(s->count + 1, sizeof *s->answer);
    s->size = memory_array(s->count + 1, sizeof *s->size);
    struct wire_message *message = memory_alloc(sizeof *message);
    bool good = index_messages(s, sizeof head + 8 * s->count, message);
    wire_release(message);
    free(message);
    return good;
}

static bool shelf_open(struct shelf *s, const char *path)
{
    struct stat st;
    *s = (struct shelf){0};
    int fd = cache_open(path);
    if (fd >= 0 && !fstat(fd, &st) && st.st_size <= (off_t)FILE_MAX) {
        s->len = (size_t)st.st_size;
        s->data = memory_alloc(s->len + 1);
        if (io_read(fd, s->data, s->len) != (ssize_t)s->len)
            s->len = 0;
    }
    if (fd >= 0)
        close(fd);
    if (s->data && shelf_parse(s))
        return true;
    shelf_release(s);
    return false;
}

static uint64_t add_file(uint64_t hash, const struct image *image)
{
    struct stat st;
    if (!image || fstat(image->fd, &st))
        return hash_mix(hash, 0);
    hash = hash_mix(hash_mix(hash, (uint64_t)st.st_dev), (uint64_t)st.st_ino);
    hash = hash_mix(hash_mix(hash, (uint64_t)st.st_size), (uint64_t)st.st_mtim.tv_sec);
    return hash_mix(hash, (uint64_t)st.st_mtim.tv_nsec);
}

static uint64_t add_text(uint64_t hash, const char *text)
{
    return hash_mix(hash, text ? hash_bytes(text, strlen(text)) : 0);
}

/* A file that shares parts with another (dwz) depends on more than is looked at here. */
static bool is_worth_it(const struct module *m, const struct image *debug)
{
    const struct image_section *info = debug ? image_find(debug, ".debug_info") : NULL;
    return info && info->size >= WORTH && debug->fd >= 0 && m->build_id_len &&
           !m->options->no_debug_info && m->answers.count && m->answers.count <= ADDRESSES_MAX &&
           !image_find(debug, ".gnu_debugaltlink");
}

static bool find_path(const struct module *m, struct text *folder, struct text *path)
{
    const struct image *debug = m->debug ? m->debug : m->image;
    if (!is_worth_it(m, debug) || !cache_folder("answers", folder))
        return false;
    uint64_t hash = add_file(add_file(MAGIC, m->image), m->debug);
    hash = add_text(add_text(hash, m->request->path), m->request->root);
    hash = hash_mix(hash, m->options->no_demangle);
    text_format(path, "%s/", folder->data);
    for (size_t i = 0; i < m->build_id_len; i++)
        text_format(path, "%02x", m->build_id[i]);
    text_format(path, "-%016" PRIx64, hash);
    return true;
}

static void take_answer(struct module *m, size_t index, const struct wire_message *from)
{
    struct symbol_location *l = answers_place(&m->answers, index, from->n);
    for (uint32_t i = 0; i < from->n; i++) {
        const struct symbol_location *f = &from->location[i];
        l[i] = *f;
        l[i].function = answers_keep(&m->answers, f->function);
        l[i].linkage = answers_keep(&m->answers, f->linkage);
        l[i].file = answers_keep(&m->answers, f->file);
        l[i].module = answers_keep(&m->answers, f->module);
    }
    answers_mark_named(&m->answers, index);
}

static void take_all(struct module *m, const struct shelf *s)
{
    struct wire_message *message = memory_alloc(sizeof *message);
    for (size_t i = 0; i < m->answers.count; i++) {
        uint64_t at = shelf_find(s, m->answers.address[i]);
        if (s->answer[at] && wire_get(s->data + s->answer[at], s->size[at], message) > 0)
            take_answer(m, i, message);
    }
    if (wire_get(s->data + s->result, s->result_size, message) > 0) {
        *m->result = message->result;
        module_credit(m, m->result->source);
    }
    wire_release(message);
    free(message);
}

bool answer_cache_load(struct module *m)
{
    struct text folder = TEXT_INIT, path = TEXT_INIT;
    struct shelf s = {0};
    bool known = find_path(m, &folder, &path) && shelf_open(&s, path.data);
    for (size_t i = 0; i < m->answers.count && known; i++)
        known = shelf_find(&s, m->answers.address[i]) != UINT64_MAX;
    if (known)
        take_all(m, &s);
    m->from_cache = known;
    shelf_release(&s);
    text_release(&folder);
    text_release(&path);
    return known;
}

static void put_shelf(struct text *out, const struct shelf *s, uint64_t i, uint32_t index)
{
    if (!s->answer[i])
        return;
    text_add_len(out, s->data + s->answer[i], s->size[i]);
    memcpy(out->data + out->len - s->size[i] + WIRE_INDEX, &index, sizeof index);
}

/* Both lists ascend; of addresses in both the new answer counts. */
static uint64_t merge(const struct module *m, const struct shelf *s, struct text *addresses,
                      struct text *answers)
{
    const struct answers *a = &m->answers;
    uint32_t n = 0;
    for (uint64_t i = 0, old = 0; i < a->count || old < s->count; n++) {
        uint64_t next = i < a->count ? a->address[i] : UINT64_MAX;
        uint64_t before = old < s->count ? shelf_address(s, old) : UINT64_MAX;
        bool fresh = i < a->count && next <= before;
        text_add_len(addresses, fresh ? &next : &before, 8);
        if (!fresh)
            put_shelf(answers, s, old, n);
        else if (a->item[i].named)
            wire_put_answer(answers, n, a->item[i].location, a->item[i].n);
        while (i < a->count && fresh && a->address[i] == next)
            i++;
        old += old < s->count && (!fresh || before == next);
    }
    return n;
}

/* Makes room among the files of the cache: the one that was written longest ago goes. */
static void remove_oldest(const char *folder)
{
    DIR *d = opendir(folder);
    struct text oldest = TEXT_INIT;
    time_t when = 0;
    size_t files = 0;
    struct stat st;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
            continue;
        if (!files++ || st.st_mtime < when) {
            when = st.st_mtime;
            text_clear(&oldest);
            text_add(&oldest, e->d_name);
        }
    }
    if (files >= FILES_MAX)
        unlinkat(dirfd(d), oldest.data, 0);
    if (d)
        closedir(d);
    text_release(&oldest);
}

/* To a name of its own first, so that nobody ever sees half of it. */
static void write_file(const char *folder, const char *path, const struct text *content)
{
    struct text part = TEXT_INIT;
    text_format(&part, "%s/.new", folder);
    int fd = temporary_file(&part);
    if (fd >= 0 && (io_write(fd, content->data, content->len) || rename(part.data, path)))
        unlink(part.data);
    if (fd >= 0)
        close(fd);
    text_release(&part);
}

void answer_cache_store(struct module *m)
{
    struct text folder = TEXT_INIT, path = TEXT_INIT, all = TEXT_INIT, answers = TEXT_INIT;
    struct shelf s = {0};
    if (!m->from_cache && m->result->status == SYMBOL_FULL && find_path(m, &folder, &path)) {
        if (!shelf_open(&s, path.data))
            remove_oldest(folder.data);
        if (s.count + m->answers.count > ADDRESSES_MAX || s.len > FILE_MAX / 2)
            shelf_release(&s); /* begins anew */
        uint64_t head[2] = {MAGIC, 0};
        text_add_len(&all, head, sizeof head);
        head[1] = merge(m, &s, &all, &answers);
        memcpy(all.data, head, sizeof head);
        text_add_len(&all, answers.data, answers.len);
        wire_put_result(&all, m->result);
        if (all.len <= FILE_MAX)
            write_file(folder.data, path.data, &all);
    }
    shelf_release(&s);
    text_release(&folder);
    text_release(&path);
    text_release(&all);
    text_release(&answers);
}
