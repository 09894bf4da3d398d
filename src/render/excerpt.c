/* Reads source files once and finds their lines; see source.h. */
#include "render/excerpt.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/vector.h"

#define FILES_MAX 256
#define FILE_SIZE_MAX ((size_t)8 << 20)

struct source_file {
    char *text; /* line ends replaced by NUL; NULL if it cannot be read */
    VECTOR(const char *) lines;
};

struct excerpt {
    struct names names;
    struct source_file files[FILES_MAX];
};

struct excerpt *excerpt_new(void)
{
    return memory_alloc(sizeof(struct excerpt));
}

void excerpt_free(struct excerpt *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < FILES_MAX; i++) {
        free(s->files[i].text);
        vector_release(&s->files[i].lines);
    }
    names_release(&s->names);
    free(s);
}

static void split(struct source_file *f, size_t len)
{
    char *at = f->text, *end = f->text + len;
    while (at < end) {
        *vector_push(&f->lines) = at;
        char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline)
            return;
        *newline = 0;
        if (newline > at && newline[-1] == '\r')
            newline[-1] = 0;
        at = newline + 1;
    }
}

static void read_file(struct source_file *f, const char *path)
{
    struct stat st;
    size_t len;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > FILE_SIZE_MAX)
        return;
    if (io_slurp(path, FILE_SIZE_MAX, &f->text, &len, NULL)) {
        f->text = NULL;
        return;
    }
    split(f, len);
}

const char *excerpt_line(void *context, const char *file, uint32_t line)
{
    struct excerpt *s = context;
    uint32_t known = (uint32_t)s->names.len, at = names_find(&s->names, file);
    if (at == NAMES_NONE) {
        if (known >= FILES_MAX)
            return NULL;
        at = names_add(&s->names, file);
        read_file(&s->files[at], file);
    }
    const struct source_file *f = &s->files[at];
    return line && line <= f->lines.len ? f->lines.data[line - 1] : NULL;
}
