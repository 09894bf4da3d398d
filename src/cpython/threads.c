/* The threads of all interpreters of a process, and who holds the GIL; see cpython.h. */
#include "cpython/cpython.h"

#include "cpython/memory.h"

int cpython_interp(const struct cpython *py, const struct cpython_memory *memory, uint64_t state,
                   uint64_t *interp)
{
    return memory_word(memory, state + py->layout.thread_interp, interp) ? CPYTHON_OK
                                                                         : CPYTHON_UNREADABLE;
}

int cpython_gil(const struct cpython *py, const struct cpython_memory *memory, uint64_t interp,
                uint64_t *state)
{
    const struct layout *l = &py->layout;
    uint64_t gil;
    uint32_t locked;
    *state = 0;
    if (py->current)
        return memory_word(memory, py->current, state) ? CPYTHON_OK : CPYTHON_UNREADABLE;
    if (!interp && !memory_word(memory, py->interpreters, &interp))
        return CPYTHON_UNREADABLE;
    if (!interp)
        return CPYTHON_ABSENT;
    if (!memory_word(memory, interp + l->interp_gil, &gil))
        return CPYTHON_UNREADABLE;
    if (!gil)
        return CPYTHON_OK; /* while it starts or ends */
    const struct cpython_piece piece[] = {{gil + l->gil_holder, state, sizeof(*state)},
                                          {gil + l->gil_locked, &locked, sizeof(locked)}};
    if (!memory_read_pieces(memory, piece, 2)) {
        *state = 0;
        return CPYTHON_UNREADABLE;
    }
    /* The last holder is kept when the GIL is free. */
    if (locked != 1)
        *state = 0;
    return CPYTHON_OK;
}

/* Where the C library keeps the kernel's id in what a pthread_t points to: glibc, musl. */
static const uint16_t tid_offsets[] = {720, 48};

static uint32_t tid_at(const struct cpython_memory *memory, const struct cpython_thread *thread,
                       uint16_t offset)
{
    uint32_t tid;
    return address_is_sane(thread->ident) &&
                   memory_read(memory, thread->ident + offset, &tid, sizeof(tid))
               ? tid
               : 0;
}

/* The right offset is the one where some thread, the main one, has the process's own id. */
static void find_native(const struct cpython_memory *memory, pid_t pid, struct cpython_thread *out,
                        size_t count)
{
    for (size_t o = 0; o < sizeof(tid_offsets) / sizeof(tid_offsets[0]); o++) {
        bool right = false;
        for (size_t i = count; i-- && !right;) /* the main thread comes last */
            right = tid_at(memory, &out[i], tid_offsets[o]) == (uint32_t)pid;
        for (size_t i = 0; right && i < count; i++)
            out[i].native_id = tid_at(memory, &out[i], tid_offsets[o]);
        if (right)
            return;
    }
}

/* Adds the threads of one interpreter; the new count or a fault. */
static ssize_t add_threads(const struct cpython *py, const struct cpython_memory *memory,
                           const struct cpython_thread *like, uint64_t state,
                           struct cpython_thread *out, size_t count, size_t max)
{
    const struct layout *l = &py->layout;
    uint8_t bytes[LAYOUT_THREAD_MAX];
    struct chain chain = {0};
    uint64_t holder;
    if (cpython_gil(py, memory, like->interp, &holder))
        holder = 0;
    while (state && count < max) {
        if (!address_is_sane(state) || chain_is_endless(&chain, state))
            return CPYTHON_DAMAGED;
        if (!memory_read(memory, state, bytes, layout_thread_size(l)))
            return CPYTHON_UNREADABLE;
        if (word_of(bytes, l->thread_interp) != like->interp)
            return CPYTHON_DAMAGED;
        out[count] = *like;
        out[count].state = state;
        out[count].ident = word_of(bytes, l->thread_ident);
        if (l->thread_native != LAYOUT_ABSENT)
            out[count].native_id = word_of(bytes, l->thread_native);
        out[count].has_gil = holder == state;
        count++;
        state = word_of(bytes, l->thread_next);
    }
    return (ssize_t)count;
}

ssize_t cpython_threads(const struct cpython *py, const struct cpython_memory *memory, pid_t pid,
                        struct cpython_thread *out, size_t max)
{
    const struct layout *l = &py->layout;
    struct chain chain = {0};
    size_t count = 0;
    uint64_t interp, next, head;
    if (!memory_word(memory, py->interpreters, &interp))
        return CPYTHON_UNREADABLE;
    for (; interp && count < max; interp = next) {
        struct cpython_thread like = {.interp = interp};
        const struct cpython_piece piece[] = {
            {interp + l->interp_next, &next, 8},
            {interp + l->interp_threads, &head, 8},
            {interp + l->interp_id, &like.interp_id, sizeof(like.interp_id)}};
        if (!address_is_sane(interp) || chain_is_endless(&chain, interp))
            return CPYTHON_DAMAGED;
        if (!memory_read_pieces(memory, piece, l->interp_id == LAYOUT_ABSENT ? 2 : 3))
            return CPYTHON_UNREADABLE;
        ssize_t added = add_threads(py, memory, &like, head, out, count, max);
        if (added < 0)
            return added;
        count = (size_t)added;
    }
    if (pid && l->thread_native == LAYOUT_ABSENT)
        find_native(memory, pid, out, count);
    return (ssize_t)count;
}
