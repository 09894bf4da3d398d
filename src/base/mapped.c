/* Files as memory, and the handler of SIGBUS that makes this safe; see mapped.h. */
#include "base/mapped.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#define SLOTS 16 /* files at a time; others are read in the ordinary way */
#define PAGE ((uintptr_t)4096)
#define WINDOW ((size_t)16 << 20) /* pages that are let go at a time */
#define BEHIND (2 * WINDOW)

/* What the handler looks at. A slot is free while its end is 0. */
static struct slot {
    uintptr_t start, end;
    bool cut;
} slots[SLOTS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before; /* ours came */
static int used;

/* Puts zeros where the file has no more pages, from the one that was asked for to the end. A fault
 * elsewhere is none of ours: with the former handler back in place it comes again. */
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    (void)context;
    uintptr_t at = (uintptr_t)info->si_addr;
    for (int i = 0; i < SLOTS; i++) {
        uintptr_t end = __atomic_load_n(&slots[i].end, __ATOMIC_ACQUIRE), start = slots[i].start;
        if (!end || at < start || at >= end)
            continue;
        uintptr_t page = at / PAGE * PAGE;
        __atomic_store_n(&slots[i].cut, true, __ATOMIC_RELEASE);
        if (mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) != MAP_FAILED)
            return;
    }
    sigaction(signal, &before, NULL);
}

static int take_slot(uintptr_t start, uintptr_t end)
{
    struct sigaction ours = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_NODEFER};
    int slot = -1;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < SLOTS && slot < 0; i++)
        if (!slots[i].end)
            slot = i;
    if (slot >= 0 && !used++)
        sigaction(SIGBUS, &ours, &before);
    if (slot >= 0) {
        slots[slot].start = start;
        slots[slot].cut = false;
        __atomic_store_n(&slots[slot].end, end, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return slot;
}

static void free_slot(int slot)
{
    pthread_mutex_lock(&lock);
    __atomic_store_n(&slots[slot].end, 0, __ATOMIC_RELEASE);
    if (!--used)
        sigaction(SIGBUS, &before, NULL);
    pthread_mutex_unlock(&lock);
}

bool mapped_open(struct mapped *m, int fd, size_t size)
{
    *m = (struct mapped){.size = size};
    void *data = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (data == MAP_FAILED)
        return false;
    m->slot = take_slot((uintptr_t)data, ((uintptr_t)data + size + PAGE - 1) / PAGE * PAGE);
    if (m->slot < 0) {
        munmap(data, size);
        return false;
    }
    m->data = data;
    madvise(data, size, MADV_SEQUENTIAL);
    return true;
}

/* Where the file was cut, zeros stand in for it: those come back as zeros. */
void mapped_pass(struct mapped *m, size_t offset)
{
    while (m->data && m->gone + WINDOW + BEHIND <= offset && offset <= m->size) {
        madvise((void *)(m->data + m->gone), WINDOW, MADV_DONTNEED);
        m->gone += WINDOW;
    }
}

bool mapped_was_cut(const struct mapped *m)
{
    return m->data && __atomic_load_n(&slots[m->slot].cut, __ATOMIC_ACQUIRE);
}

void mapped_close(struct mapped *m)
{
    if (!m->data)
        return;
    munmap((void *)m->data, m->size);
    free_slot(m->slot);
    *m = (struct mapped){0};
}
