/* Ranges that cut one another; see ranges.h. */
#include "base/ranges.h"

#include <string.h>

/* Index of the first range that ends after `address`. */
static size_t first_after(const struct ranges *r, uint64_t address)
{
    size_t low = 0, high = r->all.len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (r->all.data[mid].end <= address)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void insert(struct ranges *r, size_t at, const struct range *fresh)
{
    vector_reserve(&r->all, r->all.len + 1);
    memmove(r->all.data + at + 1, r->all.data + at, (r->all.len - at) * sizeof *r->all.data);
    r->all.data[at] = *fresh;
    r->all.len++;
}

void ranges_put(struct ranges *r, const struct range *fresh)
{
    if (fresh->end <= fresh->start)
        return;
    size_t at = first_after(r, fresh->start);
    if (at < r->all.len && r->all.data[at].start < fresh->start) {
        struct range tail = r->all.data[at];
        r->all.data[at++].end = fresh->start;
        if (tail.end > fresh->end) {
            tail.start = fresh->end;
            insert(r, at, &tail);
        }
    }
    size_t gone = at;
    while (gone < r->all.len && r->all.data[gone].end <= fresh->end)
        gone++;
    if (gone < r->all.len && r->all.data[gone].start < fresh->end)
        r->all.data[gone].start = fresh->end;
    if (gone > at)
        memmove(r->all.data + at, r->all.data + gone, (r->all.len - gone) * sizeof *r->all.data);
    r->all.len -= gone - at;
    insert(r, at, fresh);
}

const struct range *ranges_find(const struct ranges *r, uint64_t address)
{
    size_t at = first_after(r, address);
    return at < r->all.len && r->all.data[at].start <= address ? &r->all.data[at] : NULL;
}

void ranges_copy(struct ranges *to, const struct ranges *from)
{
    to->all.len = 0;
    vector_reserve(&to->all, from->all.len);
    if (from->all.len)
        memcpy(to->all.data, from->all.data, from->all.len * sizeof *from->all.data);
    to->all.len = from->all.len;
}

void ranges_release(struct ranges *r)
{
    vector_release(&r->all);
}
