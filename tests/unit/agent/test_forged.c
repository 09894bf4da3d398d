/*
 * Segments and callers that lie: the collector says so, or ignores them, and stays within bounds.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <fcntl.h>
#include <unistd.h>
#include <cmocka.h>

#include "capture/agents_segment.h"
#include "made_segment.h"
#include "wire/session.h"

struct seen {
    uint64_t samples, mappings, processes, ends, execs, refused;
    char why[200];
};

static void on_process(void *context, struct agents_process *p)
{
    (void)p;
    ((struct seen *)context)->processes++;
}

static void on_mapping(void *context, struct agents_process *p, const struct agents_mapping *m)
{
    (void)p;
    assert_true(m->start < m->end);
    assert_true(strlen(m->path) < SEGMENT_PATH);
    ((struct seen *)context)->mappings++;
}

static void on_sample(void *context, struct agents_process *p, struct agents_thread *t,
                      const struct agents_sample *s)
{
    (void)p;
    (void)t;
    assert_in_range(s->count, 1, SEGMENT_DEPTH);
    ((struct seen *)context)->samples++;
}

static void on_process_end(void *context, struct agents_process *p)
{
    struct seen *seen = context;
    seen->ends++;
    seen->execs += p->execed;
}

static void on_refused(void *context, pid_t pid, const char *why)
{
    struct seen *seen = context;
    assert_int_equal(pid, getpid());
    seen->refused++;
    snprintf(seen->why, sizeof seen->why, "%s", why);
}

static const struct agents_sink sink = {.process = on_process,
                                        .mapping = on_mapping,
                                        .sample = on_sample,
                                        .process_end = on_process_end,
                                        .refused = on_refused};

/* Whether draining a segment with this one lie in it is noticed. */
static bool is_noticed(void (*lie)(struct made_segment *m, struct agent_thread *t))
{
    struct made_segment m;
    struct segment_view *v;
    struct agents_process p = {0};
    struct seen seen = {0};
    struct agent_thread *t = aligned_alloc(64, (sizeof *t + 63) & ~63ul);
    memset(t, 0, sizeof *t);
    made_segment_init(&m);
    made_segment_thread(&m, 0, t);
    made_segment_put(t, 1, 5);
    assert_int_equal(segment_view_new(m.base, m.size, &v, NULL), 0);
    segment_view_drain(v, false, &p, &sink, &seen);
    assert_int_equal(seen.samples, 1);
    assert_false(p.damaged);
    lie(&m, t);
    segment_view_drain(v, false, &p, &sink, &seen);
    segment_view_drain(v, true, &p, &sink, &seen);
    segment_view_free(v);
    made_segment_release(&m);
    free(t);
    return p.damaged;
}

static void far_head(struct made_segment *m, struct agent_thread *t)
{
    (void)m;
    t->slot->head = UINT64_MAX - 7;
}

static void odd_head(struct made_segment *m, struct agent_thread *t)
{
    (void)m;
    t->slot->head += 3;
}

static void early_head(struct made_segment *m, struct agent_thread *t)
{
    (void)m;
    t->slot->head = 0;
}

static void many_slots(struct made_segment *m, struct agent_thread *t)
{
    (void)t;
    m->header->slots_used = UINT32_MAX;
}

static void many_modules(struct made_segment *m, struct agent_thread *t)
{
    (void)t;
    m->header->modules_used = UINT32_MAX;
    m->header->modules_version++;
}

static void long_path(struct made_segment *m, struct agent_thread *t)
{
    (void)t;
    m->modules[0] =
        (struct segment_module){.alive = 1, .start = 4096, .end = 8192, .path_len = UINT32_MAX};
    m->header->modules_used = 1;
    m->header->modules_version++;
}

static void backward_module(struct made_segment *m, struct agent_thread *t)
{
    (void)t;
    m->modules[0] = (struct segment_module){.alive = 1, .start = 8192, .end = 4096};
    m->header->modules_used = 1;
    m->header->modules_version++;
}

static void other_generation(struct made_segment *m, struct agent_thread *t)
{
    (void)m;
    t->slot->generation += 2;
}

/* A committed record whose sample claims more addresses than the record has words. */
static void hollow_sample(struct made_segment *m, struct agent_thread *t)
{
    (void)m;
    uint64_t at = t->slot->head;
    struct segment_sample s = {.time = 1, .count = 500};
    memcpy(&t->ring[at / 8 + 1], &s, sizeof s);
    t->ring[at / 8] = segment_word(at, t->slot->generation, SEGMENT_SAMPLE, 5);
    t->slot->head += 5 * 8;
}

static void put_record(struct agent_thread *t, uint32_t type, const void *payload, size_t words)
{
    uint64_t at = t->slot->head;
    memcpy(&t->ring[at / 8 + 1], payload, words * 8);
    t->ring[at / 8] = segment_word(at, t->slot->generation, type, (uint32_t)words + 1);
    t->slot->head += (words + 1) * 8;
}

/* A sample that claims to share more with the one before than that one has. */
static void shared_too_much(struct made_segment *m, struct agent_thread *t)
{
    (void)m;
    struct segment_sample s = {.time = 1, .count = 9, .shared = 9};
    put_record(t, SEGMENT_SAMPLE, &s, sizeof s / 8);
}

static void shared_more_than_all(struct made_segment *m, struct agent_thread *t)
{
    (void)m;
    struct segment_sample s = {.time = 1, .count = 3, .shared = 4};
    put_record(t, SEGMENT_SAMPLE, &s, sizeof s / 8);
}

static void python_shared_too_much(struct made_segment *m, struct agent_thread *t)
{
    (void)m;
    struct segment_sample s = {.time = 1, .count = 1, .shared = 1, .python = 2, .python_shared = 2};
    put_record(t, SEGMENT_SAMPLE, &s, sizeof s / 8);
}

/* Code whose name, path and table are not what the record has room for. */
static void hollow_code(struct made_segment *m, struct agent_thread *t)
{
    (void)m;
    struct segment_code c = {.code = 1, .name = 1000, .table = 60000};
    put_record(t, SEGMENT_CODE, &c, sizeof c / 8);
}

static void cut_code(struct made_segment *m, struct agent_thread *t)
{
    (void)m;
    struct segment_code c = {.code = 1};
    put_record(t, SEGMENT_CODE, &c, 1);
}

static void test_lies_are_noticed(void **state)
{
    (void)state;
    assert_true(is_noticed(far_head));
    assert_true(is_noticed(odd_head));
    assert_true(is_noticed(early_head));
    assert_true(is_noticed(many_slots));
    assert_true(is_noticed(many_modules));
    assert_true(is_noticed(long_path));
    assert_true(is_noticed(backward_module));
    assert_true(is_noticed(other_generation));
    assert_true(is_noticed(hollow_sample));
    assert_true(is_noticed(shared_too_much));
    assert_true(is_noticed(shared_more_than_all));
    assert_true(is_noticed(python_shared_too_much));
    assert_true(is_noticed(hollow_code));
    assert_true(is_noticed(cut_code));
}

static void test_headers_are_checked(void **state)
{
    (void)state;
    struct made_segment m;
    struct segment_view *v;
    struct error err = {0};
    made_segment_init(&m);
    struct segment_header good = *m.header;
    m.header->magic++;
    assert_int_equal(segment_view_new(m.base, m.size, &v, &err), FAULT_INPUT);
    assert_non_null(strstr(err.text, "another version"));
    *m.header = good;
    m.header->slots = 1u << 31;
    assert_int_equal(segment_view_new(m.base, m.size, &v, &err), FAULT_INPUT);
    *m.header = good;
    m.header->ring_bytes = 4104;
    assert_int_equal(segment_view_new(m.base, m.size, &v, &err), FAULT_INPUT);
    *m.header = good;
    assert_int_equal(segment_view_new(m.base, m.size - 1, &v, &err), FAULT_INPUT);
    assert_int_equal(segment_view_new(m.base, 100, &v, &err), FAULT_INPUT);
    made_segment_release(&m);
}

/* Says something to the session, with `fd` along unless it is -1. */
static void call(struct agents *a, const void *words, size_t len, int fd)
{
    const char *address = NULL;
    for (const char *const *e = agents_environment(a); *e; e++)
        if (!strncmp(*e, SESSION_ADDRESS "=", sizeof SESSION_ADDRESS))
            address = *e + sizeof SESSION_ADDRESS;
    assert_non_null(address);
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    memcpy(to.sun_path + 1, address + 1, strlen(address) - 1);
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(address));
    assert_int_equal(connect(s, (struct sockaddr *)&to, size), 0);
    struct iovec part = {.iov_base = (void *)(uintptr_t)words, .iov_len = len};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof fd),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
    }
    assert_int_equal(sendmsg(s, &message, MSG_NOSIGNAL), len);
    close(s);
}

static int segment_file(bool sealed)
{
    struct made_segment m;
    made_segment_init(&m);
    int fd = memfd_create("made", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(write(fd, m.base, m.size), m.size);
    if (sealed)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    made_segment_release(&m);
    return fd;
}

static const struct session_hello hello = {
    .magic = SESSION_MAGIC, .version = SESSION_VERSION, .kind = SESSION_SEGMENT};

static void test_callers_are_checked(void **state)
{
    (void)state;
    struct agents *a;
    struct seen seen = {0};
    struct agents_options options = {.library = "/lib/libsonde.so", .rate = 100};
    assert_int_equal(agents_new(&options, &a, NULL), 0);
    call(a, "junk", 4, -1);
    call(a, &hello, sizeof hello, -1);
    agents_drain(a, &sink, &seen);
    assert_int_equal(seen.processes + seen.refused, 0);

    int fd = segment_file(false);
    call(a, &hello, sizeof hello, fd);
    close(fd);
    agents_drain(a, &sink, &seen);
    assert_int_equal(seen.refused, 1);
    assert_non_null(strstr(seen.why, "not sealed"));

    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    call(a, &hello, sizeof hello, fd);
    close(fd);
    agents_drain(a, &sink, &seen);
    assert_int_equal(seen.refused, 2);
    assert_int_equal(agents_processes(a), 0);
    agents_free(a);
}

static void test_a_second_image_ends_the_first(void **state)
{
    (void)state;
    struct agents *a;
    struct seen seen = {0};
    struct agents_options options = {.library = "/lib/libsonde.so", .rate = 100};
    assert_int_equal(agents_new(&options, &a, NULL), 0);
    for (int i = 0; i < 3; i++) {
        int fd = segment_file(true);
        call(a, &hello, sizeof hello, fd);
        close(fd);
        agents_drain(a, &sink, &seen);
    }
    assert_int_equal(seen.processes, 3);
    assert_int_equal(seen.execs, 2);
    assert_int_equal(agents_processes(a), 1);
    agents_finish(a, &sink, &seen);
    assert_int_equal(seen.ends, 3);
    agents_free(a);
}

static void test_a_library_that_cannot_be_preloaded(void **state)
{
    (void)state;
    struct agents *a;
    struct error err = {0};
    struct agents_options options = {.library = "/my things/libsonde.so"};
    assert_int_equal(agents_new(&options, &a, &err), FAULT_USAGE);
    assert_non_null(strstr(err.text, "a space"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lies_are_noticed),
        cmocka_unit_test(test_headers_are_checked),
        cmocka_unit_test(test_callers_are_checked),
        cmocka_unit_test(test_a_second_image_ends_the_first),
        cmocka_unit_test(test_a_library_that_cannot_be_preloaded),
    };
    return cmocka_run_group_tests_name("agent forged", tests, NULL, NULL);
}
