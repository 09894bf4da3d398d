/* Views on standard output; see printing.h. */
#include "cmd/printing.h"

#include <errno.h>
#include <unistd.h>

#include "base/io.h"
#include "render/csv.h"
#include "render/terminal.h"
#include "render/view_json.h"

static int put_out(void *context, const char *data, size_t len)
{
    return io_write(*(const int *)context, data, len);
}

int view_print_to(int fd, const struct view *v, bool as_json, bool as_csv, struct error *err)
{
    int rc;
    if (as_json) {
        struct json j;
        json_init(&j, put_out, &fd);
        j.pretty = isatty(fd);
        view_json(v, &j);
        text_add_char(&j.out, '\n');
        rc = json_finish(&j);
        json_release(&j);
    } else {
        struct text out = TEXT_INIT;
        if (as_csv)
            csv_write(v, &out);
        else
            terminal_write(v, terminal_style_of(fd), &out);
        rc = put_out(&fd, out.data, out.len);
        text_release(&out);
    }
    if (rc && errno != EPIPE)
        return error_errno(err, FAULT_SYSTEM, "cannot write the report");
    return 0;
}

int view_print(const struct view *v, bool as_json, bool as_csv, struct error *err)
{
    return view_print_to(STDOUT_FILENO, v, as_json, as_csv, err);
}
