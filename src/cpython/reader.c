/* Reading frames in bulk; see reader.h. */
#include "cpython/reader.h"

#include <string.h>

#define CHUNK_MAX (64ull << 20)
#define CHUNK_USUAL 16384u /* no chunk is smaller */

static bool in_window(const struct reader *r, uint64_t address, size_t size)
{
    uint64_t have = r->end - r->start;
    return address >= r->start && size <= have && address - r->start <= have - size;
}

/* In this process: how large the chunk is, all of it readable, as its own head says; or 0. */
static uint64_t chunk_size_here(const struct reader *r, uint64_t chunk)
{
    uint64_t size;
    if (!address_is_sane(chunk) || !memory_is_readable(r->memory, chunk, r->layout->chunk_data))
        return 0;
    size = word_of((const uint8_t *)chunk, r->layout->chunk_size);
    return size < CHUNK_USUAL || size > CHUNK_MAX ? 0 : size;
}

static void window_here(struct reader *r, uint64_t chunk, uint64_t size)
{
    r->chunk = r->start = chunk;
    r->high = r->end = chunk + size;
    r->data = (const uint8_t *)chunk;
}

/* The part of the chunk that ends at `high`, as much as the buffer holds: frames further out lie
 * lower. Not read yet. */
static void window_place(struct reader *r, uint64_t high)
{
    r->start = high - r->chunk > CPYTHON_AHEAD_BYTES ? high - CPYTHON_AHEAD_BYTES : r->chunk;
    r->end = high;
    r->data = r->memory->ahead->bytes;
}

static bool window_read(struct reader *r, uint64_t high)
{
    window_place(r, high);
    if (memory_read(r->memory, r->start, r->memory->ahead->bytes, r->end - r->start))
        return true;
    r->start = r->end = 0;
    return false;
}

static bool in_chunk(const struct reader *r, uint64_t address)
{
    return r->chunk && address >= r->chunk + r->layout->chunk_data && address < r->high &&
           r->frame_size <= r->high - address;
}

/* Moves the window to where the frame lies: in the same chunk, or in the one before it. */
static bool window_move(struct reader *r, uint64_t address)
{
    const struct layout *l = r->layout;
    uint64_t before;
    if (!r->chunk || (!r->memory->ahead && r->memory->read))
        return false;
    if (in_chunk(r, address))
        return r->memory->read && window_read(r, address + r->frame_size);
    if (in_window(r, r->chunk, l->chunk_data))
        before = word_of(r->data + (r->chunk - r->start), l->chunk_prev);
    else if (!memory_word(r->memory, r->chunk + l->chunk_prev, &before))
        return false;
    if (!address_is_sane(before) || address <= before)
        return false;
    if (!r->memory->read) {
        uint64_t size = chunk_size_here(r, before);
        if (address - before >= size || r->frame_size > size - (address - before))
            return false;
        window_here(r, before, size);
        return true;
    }
    if (address - before >= CHUNK_USUAL)
        return false;
    r->chunk = before;
    r->high = before + CHUNK_USUAL;
    return in_chunk(r, address) && window_read(r, address + r->frame_size);
}

static void keep(struct reader *r, uint64_t address)
{
    if (r->kept < CPYTHON_AHEAD_FRAMES)
        r->keep[r->kept++] = address;
}

/* Among the frames that were read before the walk. Mostly the next one is the next one. */
static const uint8_t *frame_ahead(struct reader *r, uint64_t address)
{
    struct cpython_ahead *ahead = r->memory->ahead;
    for (uint32_t i = 0; i < ahead->read; i++) {
        uint32_t at = r->hint + i < ahead->read ? r->hint + i : r->hint + i - ahead->read;
        if (ahead->address[at] == address) {
            r->hint = at + 1 < ahead->read ? at + 1 : 0;
            return ahead->frame[at];
        }
    }
    return NULL;
}

const uint8_t *reader_frame(struct reader *r, uint64_t address)
{
    if (in_window(r, address, r->frame_size))
        return r->data + (address - r->start);
    const uint8_t *found = NULL;
    if (r->memory->ahead && (found = frame_ahead(r, address))) {
        keep(r, address);
        return found;
    }
    if (window_move(r, address))
        return r->data + (address - r->start);
    if (!r->memory->read)
        return memory_is_readable(r->memory, address, r->frame_size) ? (const uint8_t *)address
                                                                     : NULL;
    keep(r, address);
    return memory_read(r->memory, address, r->scratch, r->frame_size) ? r->scratch : NULL;
}

/* Reads the first `must` pieces and, in the same call, as many known frames as can be had. */
static bool read_with_ahead(struct reader *r, struct cpython_piece *piece, size_t must)
{
    struct cpython_ahead *ahead = r->memory->ahead;
    if (!ahead)
        return memory_read_pieces(r->memory, piece, must);
    for (uint32_t i = 0; i < ahead->known; i++)
        piece[must + i] = (struct cpython_piece){ahead->address[i], ahead->frame[i], r->frame_size};
    size_t done = r->memory->read(r->memory->ctx, piece, must + ahead->known);
    ahead->read = done > must ? (uint32_t)(done - must) : 0;
    return done >= must;
}

/* Where frames are objects on the heap: the thread's word and all known frames in one call. */
static __attribute__((noinline)) bool open_objects(struct reader *r, uint64_t *top)
{
    struct cpython_piece piece[1 + CPYTHON_AHEAD_FRAMES];
    piece[0] = (struct cpython_piece){r->frame_word, top, sizeof(*top)};
    return read_with_ahead(r, piece, 1);
}

/* Where they have a stack of their own: the thread's state, then all that it leads to. */
static __attribute__((noinline)) bool open_stack(struct reader *r, uint64_t state, uint64_t *top)
{
    const struct layout *l = r->layout;
    struct cpython_piece piece[2 + CPYTHON_AHEAD_FRAMES];
    uint8_t thread[LAYOUT_THREAD_MAX];
    size_t must = 0;
    if (!memory_read(r->memory, state, thread, layout_thread_size(l)))
        return false;
    *top = word_of(thread, l->thread_frame);
    if (l->cframe_frame != LAYOUT_ABSENT) {
        r->cframe = *top;
        if (!address_is_sane(r->cframe))
            return r->cframe == 0;
        r->frame_word = r->cframe + l->cframe_frame;
        piece[must++] = (struct cpython_piece){r->frame_word, top, sizeof(*top)};
    }
    uint64_t chunk = word_of(thread, l->thread_chunk), high = word_of(thread, l->thread_top);
    if (r->memory->ahead && address_is_sane(chunk) && high > chunk + l->chunk_data &&
        high - chunk < CHUNK_MAX) {
        r->chunk = chunk;
        r->high = high;
        window_place(r, high);
        piece[must++] = (struct cpython_piece){r->start, r->memory->ahead->bytes, high - r->start};
    }
    return read_with_ahead(r, piece, must);
}

/* In this process: what a call of the loop finds when it begins. The word that leads there may not
 * be written yet either, so it is taken only if it can be: further out on the stack, or the
 * first one, which lies in the thread's state. */
static void find_outer(struct reader *r, uint64_t state)
{
    uint64_t prev;
    r->outer_known = false;
    if (!r->cframe || !memory_word(r->memory, r->cframe + r->layout->cframe_prev, &prev) ||
        (prev & 7))
        return;
    bool on_stack = prev > r->cframe && prev < r->memory->stack_high;
    if (on_stack || (prev > state && prev - state < READER_STATE_MAX))
        r->outer_known = memory_word(r->memory, prev + r->layout->cframe_frame, &r->outer);
}

/* In this process, with a word between: a call of the loop that has only begun has not set it yet,
 * and it may point to where a frame was long ago. What was readable then is asked for again. */
static bool top_is_readable(const struct reader *r, uint64_t top)
{
    return r->layout->cframe_frame == LAYOUT_ABSENT || !top || in_window(r, top, r->frame_size) ||
           memory_probe(r->memory, top, r->frame_size);
}

/* In this process; little is put on the stack, which may be a signal's. */
static bool open_here(struct reader *r, uint64_t state, uint64_t *top)
{
    const struct layout *l = r->layout;
    if (!memory_is_readable(r->memory, state, layout_thread_size(l)))
        return false;
    *top = word_of((const uint8_t *)state, l->thread_frame);
    if (l->thread_chunk == LAYOUT_ABSENT)
        return true;
    uint64_t chunk = word_of((const uint8_t *)state, l->thread_chunk);
    uint64_t size = chunk_size_here(r, chunk);
    if (size)
        window_here(r, chunk, size);
    if (l->cframe_frame != LAYOUT_ABSENT) {
        r->cframe = *top;
        if (!address_is_sane(r->cframe) ||
            !memory_word(r->memory, r->cframe + l->cframe_frame, top))
            return r->cframe == 0;
    }
    find_outer(r, state);
    if (top_is_readable(r, *top))
        return true;
    *top = r->outer_known ? r->outer : 0;
    return r->outer_known;
}

bool reader_open(struct reader *r, const struct cpython *py, const struct cpython_memory *memory,
                 uint64_t state, uint64_t *top)
{
    r->memory = memory;
    r->layout = &py->layout;
    r->frame_size = layout_frame_size(&py->layout);
    r->start = r->end = r->chunk = r->high = r->cframe = 0;
    r->frame_word = state + py->layout.thread_frame;
    r->data = NULL;
    r->outer_known = false;
    r->hint = r->kept = 0;
    if (!address_is_sane(state))
        return false;
    if (!memory->read)
        return open_here(r, state, top);
    if (memory->ahead)
        memory->ahead->read = 0;
    if (py->layout.thread_chunk == LAYOUT_ABSENT)
        return open_objects(r, top);
    return open_stack(r, state, top);
}

void reader_close(struct reader *r)
{
    struct cpython_ahead *ahead = r->memory->ahead;
    if (!ahead)
        return;
    memcpy(ahead->address, r->keep, r->kept * sizeof(r->keep[0]));
    ahead->known = r->kept;
}
