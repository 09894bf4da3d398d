/*
 * The constructor. Without a session in the environment it returns at once and everything here
 * stays inert for good. It never waits: a collector that is not there is no reason to be late.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/alone.h"
#include "agent/arch.h"
#include "agent/attach.h"
#include "agent/fork.h"
#include "agent/heap.h"
#include "agent/heap_real.h"
#include "agent/modules.h"
#include "agent/publish.h"
#include "agent/python.h"
#include "agent/python_alloc.h"
#include "agent/real.h"
#include "agent/registry.h"
#include "agent/sample.h"
#include "agent/session.h"
#include "agent/signals.h"
#include "agent/threads.h"
#include "agent/trace.h"
#include "agent/python_hooks.h"

/* This library is initialised first of all (-z initfirst), so that what other libraries allocate at
 * their start is seen; libc's own environment is not there yet. */
static char **environment;

static const char *variable(const char *name)
{
    size_t len = strlen(name);
    for (char **v = environment; v && *v; v++)
        if (strncmp(*v, name, len) == 0 && (*v)[len] == '=')
            return *v + len + 1;
    return NULL;
}

static uint64_t number(const char *text, uint64_t otherwise, uint64_t max)
{
    uint64_t n = 0;
    if (!text || !*text)
        return otherwise;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || n > max)
            return otherwise;
        n = n * 10 + (uint64_t)(*text - '0');
    }
    return n <= max ? n : otherwise;
}

static bool text_take(char *to, size_t size, const char *from)
{
    size_t len = from ? strlen(from) : 0;
    if (len == 0 || len >= size)
        return false;
    memcpy(to, from, len + 1);
    return true;
}

static bool settings_read(void)
{
    struct agent_settings *s = &agent_settings;
    if (!text_take(s->address, sizeof s->address, variable(SESSION_ADDRESS)))
        return false;
    text_take(s->rows, sizeof s->rows, variable(SESSION_ROWS));
    text_take(s->pack, sizeof s->pack, variable(SESSION_PACK));
    uint64_t rate = number(variable(SESSION_RATE), SESSION_RATE_DEFAULT, SESSION_RATE_MAX);
    s->interval = rate ? 1000000000u / rate : 0;
    s->ring_bytes =
        (uint32_t)number(variable(SESSION_RING), SESSION_RING_DEFAULT, SEGMENT_RING_MAX);
    struct segment_layout unused;
    if (!segment_layout(8, s->ring_bytes, AGENT_MODULES, &unused))
        s->ring_bytes = SESSION_RING_DEFAULT;
    const char *only = variable(SESSION_ONLY);
    s->python_only = only && strcmp(only, "python") == 0;
    s->pymalloc = variable(SESSION_PYMALLOC) != NULL;
    s->single = variable(SESSION_SINGLE) != NULL;
    return true;
}

/* How many seccomp filters are in force ("Seccomp_filters:", Linux 5.9; before that the mode). By
 * calls that the loader itself has just made, so they are allowed. */
static uint64_t filters_in_force(void)
{
    static const char count[] = "\nSeccomp_filters:\t", mode[] = "\nSeccomp:\t";
    char text[4096];
    long fd = raw4(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    long got = raw3(SYS_read, fd, text, sizeof text - 1);
    raw1(SYS_close, fd);
    text[got > 0 ? got : 0] = 0;
    const char *at = strstr(text, count);
    at = at ? at + sizeof count - 1 : strstr(text, mode);
    if (!at)
        return 0;
    at += *at == '\n' ? sizeof mode - 1 : 0;
    uint64_t n = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        n = n * 10 + (uint64_t)(*at - '0');
    return n;
}

/* A program of the tree may have put a filter on itself and then run this one under it, and that
 * filter may kill for what we need. What the collector itself lives under is no hindrance. */
static bool filtered(void)
{
    return filters_in_force() > number(variable(SESSION_FILTERS), 0, 1000);
}

static void stacks_learn(void)
{
    struct agent_settings *s = &agent_settings;
    struct rlimit limit = {.rlim_cur = 8u << 20};
    raw4(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit);
    /* The sixteen random bytes lie above the arguments, at the top of the initial stack. */
    s->main_stack_end = getauxval(AT_RANDOM) & ~7ull;
    s->main_stack_size = limit.rlim_cur < 64u << 20 ? limit.rlim_cur : 64u << 20;
    pthread_attr_t attr;
    size_t size = 0;
    if (pthread_attr_init(&attr) == 0) {
        pthread_attr_getstacksize(&attr, &size);
        pthread_attr_destroy(&attr);
    }
    s->other_stack_size = size;
}

static bool process_make(void)
{
    size_t size = (sizeof(struct agent_process) + 4095) & ~4095ul;
    long at =
        raw6(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at < 0 && at > -4096) {
        session_send(SESSION_REFUSED, SESSION_NO_MEMORY, (int)-at, -1);
        return false;
    }
    long wiped = raw3(SYS_madvise, at, size, MADV_WIPEONFORK);
    if (wiped != 0) {
        raw2(SYS_munmap, at, size);
        session_send(SESSION_REFUSED, SESSION_NO_WIPE, (int)-wiped, -1);
        return false;
    }
    struct agent_process *p = (struct agent_process *)at;
    p->pid = (int32_t)raw0(SYS_getpid);
    p->start = agent_now();
    p->phase = AGENT_WAITING;
    __atomic_store_n(&agent_process, p, __ATOMIC_RELEASE);
    return true;
}

static void heap_read(struct heap_settings *heap)
{
    const char *mode = variable(SESSION_HEAP_MODE);
    *heap = (struct heap_settings){
        .mode = !mode                          ? HEAP_OFF
                : strcmp(mode, "sampled") == 0 ? HEAP_SAMPLED
                : strcmp(mode, "exact") == 0   ? HEAP_EXACT
                                               : HEAP_OFF,
        .interval = number(variable(SESSION_HEAP_INTERVAL), HEAP_INTERVAL_DEFAULT, 1ull << 40),
        .memory =
            number(variable(SESSION_HEAP_MEMORY), HEAP_MEMORY_DEFAULT, HEAP_MEMORY_MAX) & ~4095ull};
    if (!heap->interval)
        heap->interval = 1;
}

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (; list && *list; list += strcspn(list, ","), list += *list == ',')
        if (strncmp(list, word, len) == 0 && (!list[len] || list[len] == ','))
            return true;
    return false;
}

static void trace_read(void)
{
    struct trace_settings *t = &trace_settings;
    const char *what = variable(SESSION_TRACE_WHAT), *clock = variable(SESSION_TRACE_CLOCK);
    struct trace_layout unused;
    t->on = what != NULL;
    t->calls = has_word(what, "calls");
    t->builtins = has_word(what, "builtins");
    t->lines = has_word(what, "lines");
    t->tsc = clock && strcmp(clock, "tsc") == 0;
    t->depth = (uint32_t)number(variable(SESSION_TRACE_DEPTH), 0, 1u << 20);
    t->ring = (uint32_t)number(variable(SESSION_TRACE_RING), TRACE_RING, TRACE_RING_MAX);
    if (!trace_layout(8, t->ring, TRACE_NAMES, TRACE_LINES, &unused))
        t->ring = TRACE_RING;
    text_take(t->only, sizeof t->only, variable(SESSION_TRACE_ONLY));
    text_take(t->skip, sizeof t->skip, variable(SESSION_TRACE_SKIP));
    t->rss = variable(SESSION_LINES_RSS) != NULL;
    text_take(t->chosen, sizeof t->chosen, variable(SESSION_LINES));
}

static void begin(const struct heap_settings *heap)
{
    struct agent_settings *settings = &agent_settings;
    if (filtered())
        return;
    long len = raw3(SYS_readlink, "/proc/self/exe", settings->exe, sizeof settings->exe - 1);
    settings->exe[len > 0 ? len : 0] = 0;
    real_resolve();
    stacks_learn();
    if (!process_make())
        return;
    publish_segment();
    if (agent_phase() == AGENT_OFF)
        return;
    if (agent_settings.interval && !signals_init(sample_on_signal))
        agent_declare(SEGMENT_NO_SIGNAL);
    if (!threads_init() || !fork_init())
        return;
    agent_settings.active = true;
    modules_refresh();
    agent_self.hidden = signals_unblock();
    uint64_t low = settings->main_stack_end - settings->main_stack_size;
    uint64_t end = settings->main_stack_end;
    if (attach_active && !attach_stack((uint64_t)(uintptr_t)&low, &low, &end))
        low = end = 0;
    threads_adopt_self(low, end);
    threads_scan();
    heap_start(heap, variable(SESSION_HEAP_TREE));
    python_alloc_hook(NULL, settings->pymalloc);
    if (trace_start())
        python_hooks_init(NULL);
}

/* No collector, but the variables of gperftools: the process keeps what it sees, and writes it
 * itself. */
static void begin_alone(void)
{
    struct agent_settings *s = &agent_settings;
    s->ring_bytes = SEGMENT_RING_MIN;
    s->interval = 0;
    begin(&(struct heap_settings){.mode = alone.heap[0] ? HEAP_EXACT : HEAP_OFF,
                                  .interval = HEAP_INTERVAL_DEFAULT,
                                  .memory = HEAP_MEMORY_DEFAULT});
    if (agent_phase() == AGENT_RUNNING)
        alone_start();
}

/* Once it is known whether there is an interpreter: who is not to be sampled is not, and who is not
 * to be observed at all stays as it is. One that cannot be read is left to those who look from
 * outside. */
static void begin_or_wait(void)
{
    struct agent_settings *s = &agent_settings;
    struct heap_settings heap;
    heap_read(&heap);
    trace_read();
    if (s->python_only && !agent_python.ready) {
        if (agent_python.fault)
            session_send(SESSION_REFUSED, SESSION_PYTHON, -agent_python.fault, -1);
        s->interval = 0;
        if (heap.mode == HEAP_OFF) {
            s->python_awaited = !agent_python.fault;
            return;
        }
    }
    begin(&heap);
}

/* A second time: what was here belongs to a session that is over. */
static bool begin_again(const struct heap_settings *heap)
{
    struct agent_process *p = agent_process;
    p->tries = 0;
    p->segment = NULL;
    __atomic_store_n(&p->phase, AGENT_WAITING, __ATOMIC_RELEASE);
    agent_settings.active = true;
    publish_segment();
    modules_refresh();
    return agent_phase() == AGENT_RUNNING && heap_restart(heap, variable(SESSION_HEAP_TREE));
}

bool agent_attach(char **variables)
{
    struct heap_settings heap;
    environment = variables;
    if (!settings_read())
        return false;
    agent_settings.interval = 0;
    heap_read(&heap);
    if (agent_process)
        return begin_again(&heap);
    begin(&heap);
    return heap_process != NULL;
}

__attribute__((constructor)) static void agent_start(int argc, char **argv, char **envp)
{
    (void)argc;
    (void)argv;
    if (!gnu_get_libc_version)
        return;
    environment = environ ? environ : envp;
    heap_new_resolve();
    if (settings_read()) {
        python_look(NULL);
        begin_or_wait();
    } else if (alone_read(variable)) {
        begin_alone();
    }
    dlerror(); /* what was looked for in vain is no failure of the program's */
}

bool agent_begin_late(void)
{
    struct agent_settings *s = &agent_settings;
    struct heap_settings none = {.mode = HEAP_OFF};
    if (agent_process || !__atomic_exchange_n(&s->python_awaited, false, __ATOMIC_ACQ_REL))
        return trace_process != NULL;
    environment = environ;
    s->interval = 0; /* it is sampled from outside */
    begin(&none);
    return trace_process != NULL;
}

/* The session of before is over, its timers are off: a new segment, with the threads there are. */
static void join_again(void)
{
    struct agent_process *p = agent_process;
    struct segment_header *before = p->segment;
    uint64_t size = p->layout.size;
    __atomic_store_n(&p->phase, AGENT_WAITING, __ATOMIC_RELEASE);
    p->segment = NULL;
    p->tries = 0;
    p->start = agent_now();
    publish_segment();
    agent_settings.active = agent_phase() == AGENT_RUNNING;
    registry_begin_again();
    if (before)
        raw2(SYS_munmap, before, size);
    if (agent_settings.active && trace_start())
        python_hooks_init(NULL);
}

void agent_leave(void)
{
    if (!agent_process)
        return;
    registry_disarm_all();
    trace_stop();
}

/* Into a collector's session that a program started for itself, or into another one than before. */
bool agent_join(void)
{
    environment = environ;
    if (!settings_read())
        return false;
    trace_read();
    if (!agent_python.ready)
        python_look(NULL);
    if (!agent_process) {
        struct heap_settings none = {.mode = HEAP_OFF};
        begin(&none);
    } else {
        join_again();
    }
    return agent_phase() == AGENT_RUNNING && trace_process;
}

void agent_after_load(void *handle)
{
    if (attach_active)
        attach_after_load();
    if (!agent_settings.python_awaited) {
        modules_refresh();
        if (!python_is_here() && handle && python_look(handle) && agent_phase() == AGENT_RUNNING)
            python_show(agent_process->segment);
        if (trace_process && agent_python.ready)
            python_hooks_init(handle);
        if (handle)
            python_alloc_hook(handle, agent_settings.pymalloc);
    } else if (handle && python_look(handle) &&
               __atomic_exchange_n(&agent_settings.python_awaited, false, __ATOMIC_ACQ_REL)) {
        environment = environ;
        settings_read();
        begin_or_wait();
    }
}
