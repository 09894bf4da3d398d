/* Several files in, one recording out; see combine.h. */
#include "cmd/combine.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "cmd/progress.h"
#include "cmd/reading.h"
#include "recording/save.h"

static int save_to(const struct profile *p, const struct output *out, struct error *err)
{
    struct writer *w;
    int fd = fcntl(out->fd, F_DUPFD_CLOEXEC, 3);
    int rc = fd < 0 ? output_failed(out, err) : writer_new_fd(fd, &w, err);
    if (rc)
        return rc;
    struct progress progress;
    progress_begin(&progress, "writing");
    writer_watch(w, progress_show, &progress);
    rc = recording_save(p, w, err);
    int closed = writer_free(w, !rc, p->end, rc ? NULL : err);
    progress_end(&progress);
    return rc ? rc : closed;
}

int combine_save(const struct profile *p, const char *output, bool replace, struct error *err)
{
    struct output out;
    if (!strcmp(output, "-") && isatty(STDOUT_FILENO))
        return error_set(err, FAULT_USAGE,
                         "a recording is binary and not for a terminal: name a file with -o");
    int rc = output_open(&out, output, replace, 0600, err);
    if (rc)
        return rc;
    rc = save_to(p, &out, err);
    int closed = output_close(&out, !rc, rc ? NULL : err);
    return rc ? rc : closed;
}

int combine(char *const *paths, int count, const struct format *format, const char *output,
            bool replace, struct error *err)
{
    struct profile p;
    struct load_options how = {.keep_samples = true, .samples_apart = true, .keep_spans = true};
    int rc = 0;
    profile_init(&p);
    for (int i = 0; i < count && !rc; i++)
        rc = reading_open(paths[i], format, &how, &p, err);
    if (!rc)
        rc = combine_save(&p, output, replace, err);
    profile_release(&p);
    return rc;
}
