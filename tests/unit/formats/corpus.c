/* See corpus.h. */
#include "corpus.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>

#include "base/io.h"
#include "base/text.h"

#define FILE_MAX ((size_t)1 << 20)

void corpus_each(const char *folder, corpus_visit *visit, const void *context)
{
    struct text path = TEXT_INIT;
    text_format(&path, "%s/%s", CORPUS, folder);
    DIR *all = opendir(path.data);
    assert_non_null(all);
    size_t files = 0;
    for (const struct dirent *e; (e = readdir(all));) {
        struct error err = {0};
        char *data;
        size_t len;
        if (e->d_name[0] == '.')
            continue;
        text_clear(&path);
        text_format(&path, "%s/%s/%s", CORPUS, folder, e->d_name);
        assert_int_equal(io_slurp(path.data, FILE_MAX, &data, &len, &err), 0);
        visit(context, e->d_name, (const uint8_t *)data, len);
        free(data);
        files++;
    }
    closedir(all);
    text_release(&path);
    assert_true(files > 0);
}
