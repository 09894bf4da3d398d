/* See nesting.h. */
#include "capture/nesting.h"

#include "base/vector.h"
#include "capture/proc.h"

void nesting_init(struct nesting *n, pid_t pid, pid_t inner)
{
    if (!inner)
        inner = proc_innermost(pid, pid);
    *n = (struct nesting){.pid = pid, .inner = inner ? inner : pid};
}

void nesting_release(struct nesting *n)
{
    map_release(&n->here);
    map_release(&n->there);
}

/* Those that were not there at the last look. */
static void look(struct nesting *n)
{
    struct pids threads = {0};
    proc_threads(n->pid, &threads);
    for (size_t i = 0; i < threads.len; i++) {
        bool added;
        uint64_t *inner = map_put(&n->there, (uint64_t)threads.data[i], 0, 0, &added);
        if (!added)
            continue;
        *inner = (uint64_t)proc_innermost(n->pid, threads.data[i]);
        *map_put(&n->here, *inner, 0, 0, NULL) = (uint64_t)threads.data[i];
    }
    vector_release(&threads);
}

pid_t nesting_here(struct nesting *n, pid_t inner)
{
    if (n->inner == n->pid)
        return inner;
    if (inner == n->inner)
        return n->pid;
    const uint64_t *at = map_get(&n->here, (uint64_t)inner, 0);
    if (at && proc_innermost(n->pid, (pid_t)*at) == inner)
        return (pid_t)*at;
    if (at) /* numbers are used again */
        nesting_release(n);
    look(n);
    at = map_get(&n->here, (uint64_t)inner, 0);
    return at ? (pid_t)*at : inner;
}
