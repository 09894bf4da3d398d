/*
 * How fast windows of a timeline of many spans are answered, as a server does for a page:
 *
 *     spans_bench FILE
 */
#include <stdio.h>

#include "analyze/spans.h"
#include "base/clock.h"
#include "recording/loader.h"

#define PIXELS 2400
#define ROUNDS 5

static double since(uint64_t start)
{
    return (double)(clock_now() - start) / 1e6;
}

static void measure(const struct spans *s, uint64_t extent, uint64_t part)
{
    double least = 0, worst = 0;
    size_t boxes = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct spans_boxes b;
        uint64_t from = extent / part * (i * part / ROUNDS), start = clock_now();
        struct spans_window w = {.from = from,
                                 .to = from + extent / part,
                                 .least = extent / part / PIXELS,
                                 .depth_max = 64,
                                 .limit = 60000};
        spans_show(s, &w, &b);
        double ms = since(start);
        least = !i || ms < least ? ms : least;
        worst = ms > worst ? ms : worst;
        boxes = b.all.len > boxes ? b.all.len : boxes;
        vector_release(&b.all);
    }
    printf("1/%llu of the time: %.1f to %.1f ms, at most %zu boxes\n", (unsigned long long)part,
           least, worst, boxes);
}

int main(int argc, char **argv)
{
    struct profile p;
    struct spans s;
    struct error err = {0};
    uint64_t start = clock_now();
    if (argc != 2) {
        fprintf(stderr, "usage: spans_bench FILE\n");
        return 2;
    }
    profile_init(&p);
    if (recording_load(argv[1], &(struct load_options){.keep_spans = true}, &p, &err)) {
        fprintf(stderr, "spans_bench: %s\n", err.text);
        return 1;
    }
    printf("%zu spans read in %.0f ms\n", p.spans.len, since(start));
    start = clock_now();
    spans_init(&s, &p);
    printf("indexed in %.0f ms\n", since(start));
    for (uint64_t part = 1; part <= 100000; part *= 10)
        measure(&s, p.end - p.start, part);
    spans_release(&s);
    profile_release(&p);
    return 0;
}
