/* Reserve, write, commit: see ring.h. */
#include "agent/ring.h"

static uint64_t room_needed(size_t words)
{
    return (1 + words) * SEGMENT_WORD_BYTES;
}

static bool room_at(const struct segment_thread *s, uint64_t head, uint64_t bytes)
{
    uint64_t tail = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
    /* A tail ahead of head is not the collector's doing: there is no room in such a ring. */
    return tail <= head && head - tail + bytes <= agent_settings.ring_bytes;
}

bool ring_has_room(const struct agent_thread *t, size_t words)
{
    return room_at(t->slot, __atomic_load_n(&t->slot->head, __ATOMIC_RELAXED), room_needed(words));
}

/* Atomic not against other threads, which never write here, but against this one's handlers. */
static void bump(uint64_t *counter, uint64_t by)
{
    __atomic_fetch_add(counter, by, __ATOMIC_RELAXED);
}

static void count_lost(struct segment_count *count, uint64_t value)
{
    bump(&count->lost, 1);
    bump(&count->value_lost, value);
}

void ring_drop(struct agent_thread *t, enum segment_record type, uint64_t value)
{
    struct segment_count *count = &t->slot->count[type - 1];
    bump(&count->generated, 1);
    bump(&count->value, value);
    count_lost(count, value);
}

bool ring_put(struct agent_thread *t, enum segment_record type, uint64_t value,
              const uint64_t *head, size_t head_words, const uint64_t *body, size_t body_words)
{
    struct segment_thread *s = t->slot;
    struct segment_count *count = &s->count[type - 1];
    size_t words = head_words + body_words;
    bump(&count->generated, 1);
    bump(&count->value, value);
    uint64_t at = __atomic_load_n(&s->head, __ATOMIC_RELAXED);
    do {
        if (!room_at(s, at, room_needed(words))) {
            count_lost(count, value);
            return false;
        }
    } while (!__atomic_compare_exchange_n(&s->head, &at, at + room_needed(words), false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    uint64_t mask = agent_settings.ring_bytes / SEGMENT_WORD_BYTES - 1;
    uint64_t word = at / SEGMENT_WORD_BYTES;
    for (size_t i = 0; i < head_words; i++)
        t->ring[(word + 1 + i) & mask] = head[i];
    for (size_t i = 0; i < body_words; i++)
        t->ring[(word + 1 + head_words + i) & mask] = body[i];
    __atomic_store_n(&t->ring[word & mask],
                     segment_word(at, s->generation, type, (uint32_t)(1 + words)),
                     __ATOMIC_RELEASE);
    bump(&count->recorded, 1);
    return true;
}
