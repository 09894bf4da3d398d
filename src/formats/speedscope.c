/*
 * speedscope's JSON: one sampled profile a thread, over shared frames. Samples stand in
 * the order of their times where those are known, so its time order view is the
 * run itself; else each stack is one sample with the weight of all.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "formats/places.h"
#include "formats/speedscope_read.h"
#include "formats/thread_order.h"

#define SHORT 16

struct piece {
    uint32_t at, len;
};

struct speedscope_writer {
    const struct profile *p;
    struct places places;
    struct json json;
    struct thread_order list;
    struct text digits;   /* the places of all frames */
    struct piece *pieces; /* where those of a frame stand there */
    char *line;           /* the stack in hand, at the end of `room` bytes */
    size_t room;
};

static const char *unit_name(enum value_unit unit)
{
    return unit == UNIT_NANOSECONDS ? "nanoseconds" : unit == UNIT_BYTES ? "bytes" : "none";
}

static void write_frames(struct speedscope_writer *w)
{
    struct json *j = &w->json;
    struct text name = TEXT_INIT;
    json_key(j, "shared");
    json_open_object(j);
    json_key(j, "frames");
    json_open_array(j);
    for (uint32_t i = 0; i < w->places.items.len; i++) {
        text_clear(&name);
        places_name(&w->places, i, &name);
        json_open_object(j);
        json_put_string(j, "name", name.data);
        const char *file = places_file(&w->places, i);
        if (file[0])
            json_put_string(j, "file", file);
        if (w->places.items.data[i].line)
            json_put_uint(j, "line", w->places.items.data[i].line);
        json_end(j);
    }
    json_end(j);
    json_end(j);
    text_release(&name);
}

/* ",12,13": the places of each frame, outermost first, as they stand in a stack. */
static void write_pieces(struct speedscope_writer *w)
{
    const struct profile *p = w->p;
    w->pieces = memory_array(p->frames.len + 1, sizeof *w->pieces);
    text_add_repeat(&w->digits, ' ', SHORT);
    for (uint32_t i = 0; i < p->frames.len; i++) {
        uint32_t k = p->frames.data[i].location_count;
        w->pieces[i].at = (uint32_t)w->digits.len;
        do {
            text_add_char(&w->digits, ',');
            json_add_uint(&w->digits, places_find(&w->places, i, k ? k - 1 : 0));
        } while (k && --k);
        w->pieces[i].len = (uint32_t)w->digits.len - w->pieces[i].at;
    }
}

/* Moves what is written from `at` on to the end of a larger line. */
static size_t make_room(struct speedscope_writer *w, size_t at, size_t more)
{
    size_t written = w->room - at, room = w->room * 2 + more;
    w->line = memory_grow(w->line, room, 1);
    memmove(w->line + room - written, w->line + at, written);
    w->room = room;
    return room - written;
}

/* From the innermost frame leftwards, because that is the way that a stack is linked. */
static void write_stack(struct speedscope_writer *w, uint32_t stack)
{
    size_t at = w->room - 1; /* where the closing bracket is */
    if (!stack) {
        json_raw(&w->json, "[]", 2);
        return;
    }
    for (; stack; stack = w->p->stacks.data[stack].parent) {
        struct piece piece = w->pieces[w->p->stacks.data[stack].frame];
        if (piece.len + SHORT > at)
            at = make_room(w, at, piece.len + SHORT);
        at -= piece.len;
        /* Most are short; a copy of a fixed size, the left part of which is overwritten, is faster.
         */
        if (piece.len <= SHORT)
            memcpy(w->line + at + piece.len - SHORT, w->digits.data + piece.at + piece.len - SHORT,
                   SHORT);
        else
            memcpy(w->line + at, w->digits.data + piece.at, piece.len);
    }
    w->line[at] = '[';
    json_raw(&w->json, w->line + at, w->room - at);
}

static uint64_t sum_of_thread(struct speedscope_writer *w, uint32_t thread)
{
    struct thread_value v;
    uint64_t sum = 0;
    thread_order_begin(&w->list, thread);
    while (!w->json.failed && thread_order_next(&w->list, &v))
        sum += v.value;
    return sum;
}

static void write_thread(struct speedscope_writer *w, uint32_t thread, enum value_unit unit)
{
    struct json *j = &w->json;
    struct text name = TEXT_INIT;
    struct thread_value v;
    places_thread(w->p, thread, &name);
    json_open_object(j);
    json_put_string(j, "type", "sampled");
    json_put_string(j, "name", name.data);
    json_put_string(j, "unit", unit_name(unit));
    json_put_uint(j, "startValue", 0);
    json_put_uint(j, "endValue", sum_of_thread(w, thread));
    json_key(j, "samples");
    json_open_array(j);
    thread_order_begin(&w->list, thread);
    while (!j->failed && thread_order_next(&w->list, &v))
        write_stack(w, v.stack);
    json_end(j);
    json_key(j, "weights");
    json_open_array(j);
    thread_order_begin(&w->list, thread);
    while (!j->failed && thread_order_next(&w->list, &v))
        json_uint(j, v.value);
    json_end(j);
    json_end(j);
    text_release(&name);
}

static void write_profiles(struct speedscope_writer *w, uint32_t event)
{
    struct json *j = &w->json;
    json_key(j, "profiles");
    json_open_array(j);
    for (uint32_t i = 0; i < w->p->threads.len; i++)
        if (thread_order_has(&w->list, i))
            write_thread(w, i, w->p->events.data[event].unit);
    json_end(j);
}

static int speedscope_write(const struct profile *p, const struct export_options *options,
                            struct sink *out, struct error *err)
{
    struct speedscope_writer w = {.p = p};
    uint32_t event = options->event == PROFILE_NONE ? format_main_event(p) : options->event;
    if (event == PROFILE_NONE)
        return error_set(err, FAULT_MISSING, "there are no samples to write");
    json_init(&w.json, sink_json, out);
    places_init(&w.places, p);
    places_add_all(&w.places);
    thread_order_init(&w.list, p, event);
    text_init(&w.digits);
    write_pieces(&w);
    w.room = 4096;
    w.line = memory_alloc(w.room);
    w.line[w.room - 1] = ']';
    json_open_object(&w.json);
    json_put_string(&w.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_put_string(&w.json, "exporter", "sonde");
    json_put_string(&w.json, "name", p->processes.len ? profile_process_name(p, 0) : "profile");
    json_put_uint(&w.json, "activeProfileIndex", 0);
    write_frames(&w);
    write_profiles(&w, event);
    json_end(&w.json);
    json_finish(&w.json);
    json_release(&w.json);
    places_release(&w.places);
    text_release(&w.digits);
    free(w.pieces);
    free(w.line);
    return thread_order_release(&w.list, err);
}

static const char *const extensions[] = {".speedscope.json", NULL};

const struct format format_speedscope = {
    .name = "speedscope",
    .description = "speedscope's JSON, a profile a thread",
    .extensions = extensions,
    .timed = true,
    .detect = speedscope_detect,
    .read = speedscope_read,
    .write = speedscope_write,
};
