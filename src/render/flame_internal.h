/* What the two writers of flame graphs share: tones, facts and numbers. */
#ifndef SONDE_FLAME_INTERNAL_H
#define SONDE_FLAME_INTERNAL_H

#include "base/text.h"
#include "render/flame.h"

/* What a box is, as far as its colour tells. The order is that of the palettes in page/. */
enum flame_tone {
    TONE_NATIVE,
    TONE_INLINED,
    TONE_PYTHON,
    TONE_KERNEL,
    TONE_JIT,
    TONE_NAMELESS, /* no symbols, or no module */
    TONE_GROUP,    /* root, processes, threads */
    TONE_WAIT,
    TONES
};

enum flame_tone flame_tone_of(const struct tree_symbol *symbol, bool inlined);
extern const char *const flame_tone_names[TONES];

/* How a box changed, from -4 (vanished, or nearly) over 0 to 4 (new, or nearly). */
int flame_change_of(const struct flame_box *box);

/* A value of the selection, for people. */
void flame_add_value(struct text *out, enum value_unit unit, uint64_t value);
void flame_add_percent(struct text *out, uint64_t part, uint64_t whole);

/* What ran: the title given, the recorded command, or the first process's name. */
const char *flame_title(const struct flame_picture *picture);
/* "cpu · 12.3 s · 12,345 samples · 3 lost · profiler 0.4 % of one CPU" */
void flame_add_facts(struct text *out, const struct flame_picture *picture);
/* The profiler's share of one CPU over the recording, in per cent; negative if unknown. */
double flame_cost_percent(const struct profile *p);

#endif
