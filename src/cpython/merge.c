/* One stack of native and Python frames; see cpython.h. */
#include "cpython/cpython.h"

struct mix {
    struct cpython_mixed *out;
    size_t count, max;
};

static void put(struct mix *mix, bool python, size_t index)
{
    if (mix->count < mix->max)
        mix->out[mix->count++] = (struct cpython_mixed){python, (uint32_t)index};
}

/* Calls of the interpreter loop that the Python frames tell of. */
static size_t count_entries(const struct cpython_frame *python, size_t count)
{
    size_t entries = 0;
    for (size_t i = 0; i < count; i++)
        entries += (python[i].flags & CPYTHON_FRAME_ENTRY) ||
                   (i + 1 == count && !(python[i].flags & CPYTHON_FRAME_TASK));
    return entries;
}

static size_t count_evals(const struct cpython_native *native)
{
    size_t evals = 0;
    for (size_t i = 0; i < native->count; i++)
        evals += native->is_eval(native->ctx, native->address[i], i);
    return evals;
}

size_t cpython_merge(const struct cpython_native *native, const struct cpython_frame *python,
                     size_t count, bool whole, struct cpython_mixed *out, size_t max)
{
    struct mix mix = {.out = out, .max = max};
    size_t next = 0, spare = 0;
    if (native->whole && whole) {
        size_t evals = count_evals(native), entries = count_entries(python, count);
        spare = evals > entries ? evals - entries : 0;
    }
    for (size_t i = 0; i < native->count; i++) {
        bool eval = native->is_eval(native->ctx, native->address[i], i);
        if (eval && spare)
            spare--;
        else if (eval && next < count) {
            do
                put(&mix, true, next);
            while (!(python[next++].flags & CPYTHON_FRAME_ENTRY) && next < count);
            continue;
        }
        put(&mix, false, i);
    }
    while (next < count)
        put(&mix, true, next++);
    return mix.count;
}
