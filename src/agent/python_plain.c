/*
 * Instructions of CPython 3.11. Code that has run a few times is quickened there: it gets
 * instructions that fit what they meet, and of those some call C functions, or a __getitem__ of
 * Python's, at once, where no hook sees them. So we quicken the code before the interpreter does,
 * in the same way but for those, and mark it. The counter that stands before quickening is not
 * looked at any more afterwards: it has the mark.
 */
#include <string.h>

#include "agent/python.h"
#include "agent/python_hooks.h"

enum {
    LOAD_CONST = 100,
    EXTENDED_ARG = 144,
    EXTENDED_ARG_QUICK = 34,
    JUMP_BACKWARD = 140,
    JUMP_BACKWARD_QUICK = 38,
    LOAD_FAST = 124,
    RESUME = 151,
    RESUME_QUICK = 150,
    STORE_FAST = 125,
};

#define WARM (-3)    /* the counter counts up to 0, from -8 */
#define COLDEST -100 /* no counter is less */

/* Instructions of a kind, and words behind them that are theirs. */
static const struct family {
    uint8_t base, adaptive, words;
    bool is_call, is_subscript, is_builtin; /* those that stay plain */
    uint8_t more[16];
} families[] = {
    {25, 17, 4, .is_subscript = true, .more = {18, 19, 20, 21}},
    {60, 168, 1, .more = {169, 170}},
    {92, 177, 1, .more = {178, 179, 180}},
    {95, 153, 4, .more = {154, 158, 159}},
    {106, 39, 4, .more = {40, 41, 42, 43}},
    {107, 26, 2, .more = {27, 28, 29}},
    {116, 47, 5, .more = {48, 55}},
    {122, 3, 1, .more = {4, 5, 6, 7, 8, 13, 14, 16}},
    {160, 56, 10, .more = {57, 58, 59, 62, 63}},
    {166, 64, 1, .is_builtin = true,
     .more = {65, 66, 67, 72, 73, 76, 77, 78, 79, 80, 81, 113, 121, 127, 141, 143}},
    {171, 22, 4, .is_call = true, .more = {23, 24}},
};

/* Two in a row that are one. */
static const struct pair {
    uint8_t first, second, both;
} pairs[] = {{LOAD_FAST, LOAD_FAST, 46},
             {STORE_FAST, LOAD_FAST, 161},
             {LOAD_CONST, LOAD_FAST, 44},
             {STORE_FAST, STORE_FAST, 167},
             {LOAD_FAST, LOAD_CONST, 45}};

static const struct family *family_of[256];

static void init(void)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const struct family *f = &families[i];
        family_of[f->base] = family_of[f->adaptive] = f;
        for (size_t k = 0; k < sizeof f->more && f->more[k]; k++)
            family_of[f->more[k]] = f;
    }
}

static bool stays_plain(const struct family *f, enum python_plain how)
{
    return how != PYTHON_AS_IT_WAS &&
           (f->is_call || f->is_subscript || (f->is_builtin && how == PYTHON_PLAIN_CALLS));
}

/* An instruction that has no words of its own. */
static void quicken_single(uint8_t *at, uint8_t previous)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (previous == pairs[i].first && *at == pairs[i].second)
            at[-2] = pairs[i].both;
    *at = *at == EXTENDED_ARG    ? EXTENDED_ARG_QUICK
          : *at == JUMP_BACKWARD ? JUMP_BACKWARD_QUICK
          : *at == RESUME        ? RESUME_QUICK
                                 : *at;
}

static void rewrite(uint8_t *at, const uint8_t *end, enum python_plain how, bool quicken)
{
    uint8_t previous = 0;
    for (; at < end; at += 2) {
        const struct family *f = family_of[*at];
        uint8_t was = *at;
        if (!f) {
            if (quicken)
                quicken_single(at, previous);
            previous = was;
            continue;
        }
        bool plain = stays_plain(f, how);
        if (plain || quicken || (was == f->base && how == PYTHON_AS_IT_WAS)) {
            *at = plain ? f->base : f->adaptive;
            memset(at + 2, 0, 2); /* a counter */
        }
        at += 2 * f->words;
        previous = 0;
    }
}

/* Whether the interpreter could quicken it in the midst of a run. */
static bool has_loop(const uint8_t *at, const uint8_t *end)
{
    for (; at < end; at += 2) {
        if (*at == JUMP_BACKWARD)
            return true;
        at += family_of[*at] ? 2 * family_of[*at]->words : 0;
    }
    return false;
}

void python_plain_make(uint64_t code, enum python_plain how)
{
    const struct layout *l = &agent_python.py.layout;
    uint8_t *start = (uint8_t *)(uintptr_t)(code + l->code_units);
    const uint8_t *end = start + 2 * PYTHON_WORD(code, LAYOUT_SIZE);
    int16_t *warmup = (int16_t *)(uintptr_t)(code + PYTHON_CODE_WARMUP);
    if (!family_of[families[0].base])
        init();
    bool cold = *warmup < 0 && *warmup > COLDEST;
    if (cold && (how == PYTHON_AS_IT_WAS || (*warmup < WARM && !has_loop(start, end))))
        return;
    rewrite(start, end, how, cold);
    *warmup = (int16_t)how;
}

void python_plain_frames(void *thread, enum python_plain how)
{
    const struct layout *l = &agent_python.py.layout;
    uint64_t around = PYTHON_WORD(thread, l->thread_frame);
    uint64_t frame = around ? PYTHON_WORD(around, l->cframe_frame) : 0;
    for (; frame; frame = PYTHON_WORD(frame, l->frame_back))
        python_plain_make(PYTHON_WORD(frame, l->frame_code), how);
}
