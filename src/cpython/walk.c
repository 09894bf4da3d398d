/*
 * The frames of a thread, innermost first: cpython_walk of cpython.h. One loop for all versions;
 * the layout says where in a frame things are and what tells one that begins a native call.
 */
#include "cpython/cpython.h"

#include <string.h>

#include "cpython/reader.h"

#define CODE_MAX (1 << 28) /* bytes of one code object's instructions */

enum owner { OWNER_THREAD, OWNER_GENERATOR, OWNER_OBJECT, OWNER_C_STACK };

/* From 3.14 on the reference to the code says in its lowest bits how it is counted. */
#define TAGS 3ull

struct walk {
    const struct cpython *py;
    struct reader reader;
    struct cpython_frame *out;
    size_t count, max;
    struct chain chain;
    bool entered;                /* the innermost call of the loop has been walked through ... */
    uint64_t entered_from;       /* ... to this frame, which called it */
    uint64_t top_back, top_code; /* of the innermost, once read: code is 0 before */
};

/* The offset of the instruction, from a number or from its address. */
static bool read_lasti(const struct layout *l, const uint8_t *bytes, uint64_t code, int32_t *lasti)
{
    int64_t at;
    if (l->frame_instr == LAYOUT_ABSENT)
        at = (int64_t)(int32_t)half_of(bytes, l->frame_lasti) * l->lasti_scale;
    else
        at = (int64_t)(word_of(bytes, l->frame_instr) - (code + l->code_units));
    *lasti = (int32_t)at;
    return at >= -2 && at < CODE_MAX;
}

static bool is_frame_object(struct walk *w, const uint8_t *bytes)
{
    uint32_t offset = w->py->layout.frame_type;
    if (offset == LAYOUT_ABSENT)
        return true;
    uint64_t type = word_of(bytes, offset);
    return type == w->py->frame_type ||
           memory_type_is(w->reader.memory, type, w->py->frame_type, "frame");
}

/* Fills in *frame; false if there cannot be such a frame. */
static bool read_frame(struct walk *w, uint64_t address, const uint8_t *bytes,
                       struct cpython_frame *frame)
{
    const struct layout *l = &w->py->layout;
    *frame = (struct cpython_frame){.code = word_of(bytes, l->frame_code) & ~TAGS};
    if (!address_is_sane(frame->code) || !read_lasti(l, bytes, frame->code, &frame->lasti))
        return false;
    if (l->frame_gen != LAYOUT_ABSENT)
        frame->generator = word_of(bytes, l->frame_gen);
    else if (bytes[l->frame_owner] == OWNER_GENERATOR)
        frame->generator = address - l->gen_frame;
    if (frame->generator)
        frame->flags |= CPYTHON_FRAME_GENERATOR;
    if (l->entry == LAYOUT_ENTRY_EACH || (l->entry == LAYOUT_ENTRY_FLAG && bytes[l->frame_entry]))
        frame->flags |= CPYTHON_FRAME_ENTRY;
    return true;
}

/* One frame: *address becomes its caller's. */
static enum cpython_reason step(struct walk *w, uint64_t *address)
{
    const struct layout *l = &w->py->layout;
    if (!address_is_sane(*address))
        return CPYTHON_IMPOSSIBLE;
    if (chain_is_endless(&w->chain, *address))
        return CPYTHON_CYCLE;
    const uint8_t *bytes = reader_frame(&w->reader, *address);
    if (!bytes)
        return CPYTHON_UNREAD;
    uint8_t owner = l->frame_owner == LAYOUT_ABSENT ? OWNER_THREAD : bytes[l->frame_owner];
    uint64_t back = word_of(bytes, l->frame_back);
    if (w->chain.steps == 1) {
        w->top_back = back;
        w->top_code = word_of(bytes, l->frame_code);
    }
    if (owner > l->owner_last || (owner >= OWNER_C_STACK && l->entry != LAYOUT_ENTRY_SHIM) ||
        (l->entry == LAYOUT_ENTRY_FLAG && bytes[l->frame_entry] > 1) || !is_frame_object(w, bytes))
        return CPYTHON_IMPOSSIBLE;
    bool entry = owner >= OWNER_C_STACK;
    if (!entry) {
        if (w->count == w->max)
            return CPYTHON_DEPTH;
        if (!read_frame(w, *address, bytes, &w->out[w->count]))
            return CPYTHON_IMPOSSIBLE;
        entry = w->out[w->count++].flags & CPYTHON_FRAME_ENTRY;
    } else if (w->count) {
        w->out[w->count - 1].flags |= CPYTHON_FRAME_ENTRY;
    }
    if (entry && !w->entered) {
        w->entered = true;
        w->entered_from = back;
    }
    /* The outermost frame is the first of its call of the loop, or its caller is not written yet.
     */
    if (!back && !entry)
        return CPYTHON_MOVED;
    *address = back;
    return CPYTHON_COMPLETE;
}

/* Whether the thread is where it was when the walk began, its innermost frame and caller too. */
static bool is_still(struct walk *w, uint64_t state, uint64_t top)
{
    const struct layout *l = &w->py->layout;
    uint64_t now[4] = {0}, then[4] = {top, w->top_back, w->top_code, w->reader.cframe};
    struct cpython_piece piece[4] = {{w->reader.frame_word, &now[0], 8},
                                     {top + l->frame_back, &now[1], 8},
                                     {top + l->frame_code, &now[2], 8},
                                     {state + l->thread_frame, &now[3], 8}};
    size_t count = l->cframe_frame == LAYOUT_ABSENT ? 3 : 4;
    return memory_read_pieces(w->reader.memory, piece, count) && !memcmp(now, then, sizeof(now));
}

/* From the frame at *address outwards; where that ended. */
static enum cpython_reason follow(struct walk *w, uint64_t *address)
{
    enum cpython_reason reason = CPYTHON_COMPLETE;
    w->count = 0;
    w->chain = (struct chain){0};
    w->entered = false;
    while (*address && reason == CPYTHON_COMPLETE)
        reason = step(w, address);
    return reason;
}

/* A call of the loop that has only begun has not said yet which frame it runs: then what was found
 * is not what the call around it left, and that is where the thread is. */
static bool has_only_begun(const struct walk *w, enum cpython_reason reason)
{
    if (!w->reader.outer_known || (!w->entered && reason == CPYTHON_DEPTH))
        return false;
    return !w->entered || w->entered_from != w->reader.outer;
}

/* Nothing was found though a call of the loop runs: neither its frame nor the call around it is
 * written yet. Outside of any call the word leads into the thread's state. */
static bool is_unsettled(const struct walk *w, uint64_t state)
{
    uint64_t cframe = w->reader.cframe;
    return !w->count && cframe && cframe - state >= READER_STATE_MAX;
}

size_t cpython_walk(const struct cpython *py, const struct cpython_memory *memory, uint64_t state,
                    struct cpython_frame *out, size_t max, struct cpython_end *end)
{
    struct walk w;
    uint64_t top = 0, address = 0;
    enum cpython_reason reason = CPYTHON_UNREAD;
    w.py = py;
    w.out = out;
    w.max = max;
    w.count = 0;
    w.top_back = w.top_code = 0;
    if (reader_open(&w.reader, py, memory, state, &top)) {
        address = top;
        reason = follow(&w, &address);
        if (has_only_begun(&w, reason)) {
            address = w.reader.outer;
            reason = follow(&w, &address);
        }
    }
    if (reason == CPYTHON_COMPLETE && is_unsettled(&w, state))
        reason = CPYTHON_IMPOSSIBLE;
    if (w.top_code && memory->read && !is_still(&w, state, top))
        reason = CPYTHON_MOVED;
    reader_close(&w.reader);
    if (end)
        *end = (struct cpython_end){reason, address};
    return w.count;
}
