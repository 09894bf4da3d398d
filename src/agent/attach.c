/* Coming late and leaving early; see attach.h. */
#include "agent/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "agent/agent.h"
#include "agent/arch.h"
#include "agent/got.h"
#include "agent/heap.h"
#include "agent/real.h"

#define SETTINGS 2048
#define VARIABLES 32

bool attach_active;
static uint32_t state; /* 0 not here, 1 coming, 2 here, 3 leaving */
static char text[SETTINGS];
static char *variables[VARIABLES + 1];

/* "NAME=value", a line each; kept, since settings are looked up later as well. */
static bool settings_take(const char *settings)
{
    size_t len = strlen(settings), count = 0;
    if (len >= sizeof text)
        return false;
    memcpy(text, settings, len + 1);
    for (char *at = text; *at && count < VARIABLES;) {
        variables[count++] = at;
        at += strcspn(at, "\n");
        if (*at)
            *at++ = 0;
    }
    variables[count] = NULL;
    return count > 0;
}

EXPORT int sonde_attach_begin(const char *settings);

EXPORT int sonde_attach_begin(const char *settings)
{
    uint32_t none = 0;
    int saved = errno;
    if (!__atomic_compare_exchange_n(&state, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return -1;
    attach_active = true;
    bool done = settings_take(settings) && agent_attach(variables) && got_hook();
    __atomic_store_n(&state, done ? 2 : 0, __ATOMIC_RELEASE);
    errno = saved;
    return done ? 0 : -1;
}

void attach_after_load(void)
{
    if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == 2)
        got_hook();
}

void attach_leave(void)
{
    uint32_t here = 2;
    if (!__atomic_compare_exchange_n(&state, &here, 3, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return;
    bool done = got_unhook();
    if (done)
        agent_settings.active = false; /* nor do children begin anything */
    __atomic_store_n(&state, done ? 0 : 2, __ATOMIC_RELEASE);
}

static uint64_t hex(const char **at)
{
    uint64_t n = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9')
            n = n << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            n = n << 4 | (uint64_t)(c - 'a' + 10);
        else
            return n;
    }
}

/* "start-end …", the start of a line of /proc/self/maps. */
static bool line_has(const char *line, uint64_t address, uint64_t *low, uint64_t *end)
{
    *low = hex(&line);
    if (*line++ != '-')
        return false;
    *end = hex(&line);
    return address >= *low && address < *end;
}

bool attach_stack(uint64_t address, uint64_t *low, uint64_t *end)
{
    char bytes[1024], line[40];
    size_t used = 0;
    bool found = false;
    long fd = raw4(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    for (long n; fd >= 0 && !found && (n = raw3(SYS_read, fd, bytes, sizeof bytes)) > 0;)
        for (long i = 0; i < n && !found; i++) {
            if (bytes[i] != '\n' && used < sizeof line - 1)
                line[used++] = bytes[i];
            if (bytes[i] != '\n')
                continue;
            line[used] = 0;
            used = 0;
            found = line_has(line, address, low, end);
        }
    if (fd >= 0)
        raw1(SYS_close, fd);
    return found;
}
