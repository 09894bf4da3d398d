/* sonde.conf: any bytes are read or refused with a sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "cmd/conf.h"

struct values {
    uint64_t rate, time, size;
    double budget;
    bool follow;
    const char *output;
    struct option_list events;
    int kind;
};

static const char *const kinds[] = {"flame", "tree", NULL};

static const struct option options[] = {
    {"rate", 'r', OPTION_UNSIGNED_AT(struct values, rate), .min = 1, .max = 4000, .suffix = true},
    {"time", 't', OPTION_DURATION_AT(struct values, time)},
    {"size", 's', OPTION_SIZE_AT(struct values, size)},
    {"budget", 'b', OPTION_PERCENT_AT(struct values, budget), .low = 0, .high = 100},
    {"follow", 'f', OPTION_FLAG_AT(struct values, follow), .negatable = true},
    {"output", 'o', OPTION_TEXT_AT(struct values, output)},
    {"event", 'e', OPTION_LIST_AT(struct values, events)},
    {"kind", 'k', OPTION_CHOICE_AT(struct values, kind), .choices = kinds},
    {0}};

static const struct command command = {
    .name = "run", .options = options, .options_size = sizeof(struct values)};
static const struct command *const table[] = {&command, NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("conf", MFD_CLOEXEC);
    if (fd < 0 || io_write(fd, data, size))
        abort();
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct values values = {0};
    struct option_set set;
    struct error err = {0};
    option_set_init(&set, options, &values);
    int result = conf_read(path, table, &command, &set, &err);
    /* A refusal without a sentence, and a bad value let through, are both bugs. */
    if ((result && !err.text[0]) || values.rate > 4000 || values.kind > 1)
        abort();
    option_set_release(&set);
    close(fd);
    return 0;
}
