/* A pool of fronts; see perf_data_front.h. */
#include "formats/perf_data_front.h"

#define SLAB 64        /* fronts made at a time */
#define SLABS_MAX 256u /* 64 MB */

static bool add_slab(struct perf_fronts *f)
{
    if (f->slabs.len >= SLABS_MAX)
        return false;
    struct perf_front *slab = memory_array(SLAB, sizeof *slab);
    *vector_push(&f->slabs) = slab;
    for (size_t i = 0; i < SLAB; i++)
        perf_front_free(f, &slab[i]);
    return true;
}

struct perf_front *perf_front_read(struct perf_fronts *f, struct source *in, uint64_t offset)
{
    if (!f->free && !add_slab(f))
        return NULL;
    struct perf_front *front = f->free;
    if (!source_at(in, offset - PERF_FRONT_BEFORE, front->bytes, sizeof front->bytes))
        return NULL;
    f->free = front->next;
    front->offset = offset;
    front->ended = false;
    return front;
}

void perf_front_free(struct perf_fronts *f, struct perf_front *front)
{
    if (!front)
        return;
    front->next = f->free;
    f->free = front;
}

void perf_fronts_release(struct perf_fronts *f)
{
    for (size_t i = 0; i < f->slabs.len; i++)
        free(f->slabs.data[i]);
    vector_release(&f->slabs);
    f->free = NULL;
}
