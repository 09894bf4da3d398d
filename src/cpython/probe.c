/* Trying memory through libc; see cpython.h. Apart, since the agent has a way of its own. */
#include "cpython/cpython.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

bool cpython_probe(uint64_t address)
{
    int kept = errno;
    long result = syscall(SYS_rt_sigprocmask, ~0l, address, NULL, (size_t)8);
    bool readable = result < 0 && errno == EINVAL;
    errno = kept;
    return readable;
}
