/* Files as memory, and the handler of SIGBUS that makes this safe; see mapped.h. */
#include "base/mapped.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/memory.h"

#define SLOTS 16 /* files at a time; others are read in the ordinary way */
#define PAGE ((uintptr_t)4096)
#define PAGER_MIN ((size_t)64 << 20) /* bytes of a file that are worth a thread */
#define WINDOW ((size_t)4 << 20)
#define AHEAD (4 * WINDOW)
#define BEHIND (8 * WINDOW)

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

struct pager {
    uint8_t *data;
    size_t size, at;       /* where reading is */
    size_t ready, dropped; /* windows of pages: brought in up to, taken out up to */
    int slot;
    bool stop;
    pthread_mutex_t lock; /* of `at` and `stop` */
    pthread_cond_t moved;
    pthread_t thread;
};

/* One window, in or out; false if there is nothing to do at this place. */
static bool turn_page(struct pager *p, size_t at)
{
    if (p->ready < p->size && p->ready < at + AHEAD) {
        size_t len = p->size - p->ready < WINDOW ? p->size - p->ready : WINDOW;
        madvise(p->data + p->ready, len, MADV_POPULATE_READ);
        p->ready += len;
        return true;
    }
    if (p->dropped + WINDOW + BEHIND <= at) {
        madvise(p->data + p->dropped, WINDOW, MADV_DONTNEED);
        p->dropped += WINDOW;
        return true;
    }
    return false;
}

static void *turn_pages(void *context)
{
    struct pager *p = context;
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        size_t at = p->at;
        pthread_mutex_unlock(&p->lock);
        /* Where the file is cut, zeros were put that must stay. */
        bool cut = __atomic_load_n(&slots[p->slot].cut, __ATOMIC_ACQUIRE);
        bool turned = !cut && turn_page(p, at);
        pthread_mutex_lock(&p->lock);
        while (!turned && !p->stop && p->at == at)
            pthread_cond_wait(&p->moved, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static struct pager *pager_new(uint8_t *data, size_t size, int slot)
{
    struct pager *p = memory_alloc(sizeof *p);
    sigset_t all, before_it;
    *p = (struct pager){.data = data, .size = size, .slot = slot};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->moved, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_it);
    int rc = pthread_create(&p->thread, NULL, turn_pages, p);
    pthread_sigmask(SIG_SETMASK, &before_it, NULL);
    if (rc) {
        free(p);
        return NULL;
    }
    return p;
}

static void pager_free(struct pager *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_signal(&p->moved);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->moved);
    free(p);
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
    if (size >= PAGER_MIN)
        m->pager = pager_new(data, size, m->slot);
    return true;
}

void mapped_pass(struct mapped *m, size_t offset)
{
    struct pager *p = m->pager;
    if (!p || offset / WINDOW == p->at / WINDOW)
        return;
    pthread_mutex_lock(&p->lock);
    p->at = offset;
    pthread_cond_signal(&p->moved);
    pthread_mutex_unlock(&p->lock);
}

bool mapped_was_cut(const struct mapped *m)
{
    return m->data && __atomic_load_n(&slots[m->slot].cut, __ATOMIC_ACQUIRE);
}

void mapped_close(struct mapped *m)
{
    if (!m->data)
        return;
    pager_free(m->pager);
    munmap((void *)m->data, m->size);
    free_slot(m->slot);
    *m = (struct mapped){0};
}
