/* Spans into the recording: the part of writer.h that begins and ends them. */
#include "recording/writer.h"
#include "recording/writer_internal.h"

static void step(struct writer *w, uint32_t thread, uint64_t time, enum span_step what,
                 uint64_t operand)
{
    struct run *run = &w->spans;
    if (w->failed) {
        w->dropped += what == SPAN_BEGIN;
        return;
    }
    if (run->body.len && w->spans_thread != thread)
        writer_close_spans(w);
    size_t before = run->body.len;
    if (!before) {
        w->spans_thread = thread;
        writer_add_varint(&run->body, thread);
    }
    /* Times of one thread do not go back; if they seem to, nothing is gained by believing it. */
    uint64_t later = time > run->previous[0] ? time - run->previous[0] : 0;
    writer_add_varint(&run->body, later << 2 | what);
    if (what != SPAN_END)
        writer_add_varint(&run->body, operand);
    run->previous[0] += later;
    writer_gathered(w, run->body.len - before);
}

void writer_span_begin(struct writer *w, uint32_t thread, uint64_t time, uint32_t frame)
{
    step(w, thread, time, SPAN_BEGIN, frame);
}

void writer_span_end(struct writer *w, uint32_t thread, uint64_t time)
{
    step(w, thread, time, SPAN_END, 0);
}

void writer_span_end_at(struct writer *w, uint32_t thread, uint64_t time, uint64_t number)
{
    if (number)
        step(w, thread, time, SPAN_CUT, number << 1 | 1);
    else
        step(w, thread, time, SPAN_END, 0);
}

void writer_span_mark(struct writer *w, uint32_t thread, uint64_t time, uint32_t frame)
{
    step(w, thread, time, SPAN_MARK, frame);
}

void writer_span_cut(struct writer *w, uint32_t thread, uint64_t time, uint64_t lost)
{
    step(w, thread, time, SPAN_CUT, lost << 1);
}
