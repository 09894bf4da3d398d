/* Telling files apart and reading them; see open.h. */
#include "formats/open.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "profile/interpreter.h"
#include "profile/merge.h"

#define MAGIC "SONDE\r\n\x1a"
#define MAGIC_LEN 8
#define PATIENCE_MS 2000

/* A pipe's first bytes, left in the pipe: tee(2) copies without consuming. */
static bool pipe_has_magic(int fd)
{
    char head[MAGIC_LEN] = "";
    const struct timespec pause = {.tv_nsec = 5000000};
    for (int waited = 0; waited < PATIENCE_MS; waited += 5) {
        int copy[2];
        if (pipe2(copy, O_CLOEXEC) < 0)
            return false;
        ssize_t n = tee(fd, copy[1], MAGIC_LEN, 0);
        if (n > 0 && io_read(copy[0], head, (size_t)n) != n)
            n = -1;
        close(copy[0]);
        close(copy[1]);
        if (n <= 0 || memcmp(head, MAGIC, (size_t)n))
            return false;
        if (n == MAGIC_LEN)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

static bool is_recording(const char *path)
{
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
                               : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    struct stat st;
    char head[MAGIC_LEN];
    bool yes = false;
    if (fd < 0)
        return false;
    if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
        yes = pipe_has_magic(fd);
    else if (S_ISREG(st.st_mode))
        yes = io_pread(fd, head, sizeof head, 0) == MAGIC_LEN && !memcmp(head, MAGIC, MAGIC_LEN);
    close(fd);
    return yes;
}

static bool is_blank(const struct profile *p)
{
    return !p->processes.len && !p->events.len && !p->cells.len && !p->meta.len && !p->notes.len;
}

/* Adds what was read to what the caller has; takes `fresh` over. */
static int hand_over(struct profile *fresh, struct profile *p, struct error *err)
{
    int rc = 0;
    if (is_blank(p)) {
        profile_release(p);
        *p = *fresh;
    } else {
        rc = profile_merge(p, fresh, err);
        profile_release(fresh);
    }
    return rc;
}

static int refuse(const struct source *in, struct error *err)
{
    struct text names = TEXT_INIT;
    format_names(false, &names);
    int rc = error_set(err, FAULT_INPUT,
                       "%s is neither a recording of sonde nor a profile of a kind that it reads "
                       "(%s): look at what made it, or name the format with `sonde import "
                       "--format`",
                       source_name(in), names.data);
    text_release(&names);
    return rc;
}

static int read_source(struct source *in, const struct format *format,
                       const struct load_options *options, struct profile *p, struct error *err)
{
    const uint8_t *bytes;
    ssize_t len = source_peek(in, SOURCE_PEEK_MAX, &bytes, err);
    if (len < 0)
        return (int)len;
    if (!len)
        return error_set(err, FAULT_INPUT, "%s is empty", source_name(in));
    if (!format)
        format = format_detect(bytes, (size_t)len);
    if (!format)
        return refuse(in, err);
    struct import_options how = {0};
    if (options) {
        how = (struct import_options){.from = options->from,
                                      .to = options->to,
                                      .keep_samples = options->keep_samples,
                                      .keep_spans = options->keep_spans,
                                      .samples_apart = options->samples_apart};
        source_set_progress(in, options->progress, options->context);
    }
    struct profile fresh;
    profile_init(&fresh);
    int rc = format->read(in, &how, &fresh, err);
    if (rc) {
        profile_release(&fresh);
        return rc;
    }
    return hand_over(&fresh, p, err);
}

int profile_open_as(const struct format *format, const char *path,
                    const struct load_options *options, struct profile *p, struct error *err)
{
    struct source *in;
    int rc = source_open(path, &in, err);
    if (rc)
        return rc;
    rc = read_source(in, format, options, p, err);
    source_free(in);
    return rc;
}

int profile_open(const char *path, const struct load_options *options, struct profile *p,
                 struct error *err)
{
    if (!is_recording(path))
        return profile_open_as(NULL, path, options, p, err);
    struct profile fresh;
    profile_init(&fresh);
    int rc = recording_load(path, options, &fresh, err);
    if (rc) {
        profile_release(&fresh);
        return rc;
    }
    if (options && options->hide_interpreter)
        profile_hide_interpreter(&fresh);
    return hand_over(&fresh, p, err);
}
