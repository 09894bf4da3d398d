/* Symbols with numbers that stay; see lexicon.h. The rule that names a frame is that of the tree.
 */
#include "analyze/lexicon.h"

#include <stdlib.h>

#include "analyze/tree_internal.h"

void lexicon_init(struct lexicon *x, const struct profile *p)
{
    *x = (struct lexicon){.profile = p};
    lexicon_update(x);
}

/* The number that the symbol has here, given now if it is new. */
static uint32_t keep(struct lexicon *x, const struct tree_symbol *symbol)
{
    const struct profile *p = x->profile;
    uint64_t a = PROFILE_NONE, b = symbol->module;
    if (symbol->function != PROFILE_NONE) {
        const struct profile_function *f = &p->functions.data[symbol->function];
        a = f->name;
        b |= (uint64_t)f->start_line << 32;
    }
    bool fresh;
    uint32_t number = (uint32_t)*map_put(&x->index, a, b, x->symbols.len, &fresh);
    if (fresh) {
        struct tree_symbol *kept = vector_push(&x->symbols);
        *kept = *symbol;
        kept->name = arena_strdup(&x->arena, symbol->name);
    }
    return number;
}

static void take_frame(struct lexicon *x, const struct tree_steps *st, const struct tree *t,
                       uint32_t frame)
{
    const struct profile_frame *f = &x->profile->frames.data[frame];
    uint64_t seen = (uint64_t)f->first_location << 32 | f->location_count;
    if (frame < x->seen.len && x->seen.data[frame] == seen)
        return;
    if (frame >= x->seen.len) {
        *vector_push(&x->seen) = seen;
        *vector_push(&x->first) = 0;
        *vector_push(&x->count) = 0;
    }
    x->seen.data[frame] = seen;
    x->first.data[frame] = (uint32_t)x->steps.len;
    x->count.data[frame] = st->first[frame + 1] - st->first[frame];
    for (uint32_t i = st->first[frame]; i < st->first[frame + 1]; i++) {
        const struct step *step = &st->steps.data[i];
        uint32_t symbol = keep(x, &t->symbols.data[step->symbol]);
        *vector_push(&x->steps) = (struct lexicon_step){symbol, step->line};
    }
    *vector_push(&x->changed) = frame;
}

void lexicon_update(struct lexicon *x)
{
    struct tree t = {.profile = x->profile};
    struct tree_steps st;
    tree_steps_init(&st, &t, false, &(struct tree_options){.by_module = true});
    x->changed.len = 0;
    for (uint32_t i = 0; i < x->profile->frames.len; i++)
        take_frame(x, &st, &t, i);
    tree_steps_release(&st);
    tree_release(&t);
}

void lexicon_release(struct lexicon *x)
{
    vector_release(&x->symbols);
    vector_release(&x->steps);
    vector_release(&x->first);
    vector_release(&x->count);
    vector_release(&x->changed);
    vector_release(&x->seen);
    map_release(&x->index);
    arena_release(&x->arena);
}
