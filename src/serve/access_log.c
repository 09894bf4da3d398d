/* The log of answers; see access_log.h. */
#include "serve/access_log.h"

#include <stdio.h>
#include <time.h>

#include "base/io.h"
#include "base/json.h"

/* An object that begins with the time. */
static void open_line(struct json *j, uint64_t ns)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm tm;
    char day[32], stamp[48];
    gmtime_r(&seconds, &tm);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(stamp, sizeof stamp, "%s.%03uZ", day, (unsigned)(ns / 1000000 % 1000));
    json_init(j, NULL, NULL);
    json_open_object(j);
    json_put_string(j, "time", stamp);
}

static void close_line(struct json *j, struct text *out)
{
    json_end(j);
    json_finish(j);
    text_add_len(out, j->out.data, j->out.len);
    text_add_char(out, '\n');
    json_release(j);
}

void access_log_line(const struct http_entry *e, struct text *out)
{
    static const char *const roles[] = {"none", "read", "write", "admin"};
    struct json j;
    open_line(&j, e->time);
    json_put_string(&j, "peer", e->peer);
    json_put_string(&j, "method", e->method);
    json_put_string(&j, "path", e->path);
    json_put_int(&j, "status", e->status);
    json_put_uint(&j, "bytes", e->bytes);
    json_put_double(&j, "ms", (double)(e->duration / 1000) / 1000);
    json_put_string(&j, "role", roles[e->role]);
    close_line(&j, out);
}

void access_log_message(uint64_t time, const char *level, const char *message, struct text *out)
{
    struct json j;
    open_line(&j, time);
    json_put_string(&j, "level", level);
    json_put_string(&j, "message", message);
    close_line(&j, out);
}

void access_log_to_fd(void *context, const struct http_entry *e)
{
    struct text line = TEXT_INIT;
    access_log_line(e, &line);
    io_write(*(const int *)context, line.data, line.len);
    text_release(&line);
}
