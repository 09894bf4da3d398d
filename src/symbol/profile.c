/* Symbolising a profile; see profile.h. */
#include "symbol/profile.h"

#include "base/kernel.h"
#include "symbol/batch.h"

enum symbol_kind symbol_kind_of(enum code_kind kind)
{
    static const enum symbol_kind kinds[CODE_KINDS] = {
        [CODE_ELF] = SYMBOL_ELF,      [CODE_KERNEL] = SYMBOL_KERNEL, [CODE_VDSO] = SYMBOL_VDSO,
        [CODE_JIT] = SYMBOL_PERF_MAP, [CODE_PYTHON] = SYMBOL_OTHER,  [CODE_UNKNOWN] = SYMBOL_OTHER,
        [CODE_SPAN] = SYMBOL_OTHER,
    };
    return kinds[kind];
}

struct naming {
    struct profile *profile;
    struct symbol_summary *summary;
    const struct symbol_options *options;
};

static void on_answer(void *context, size_t module, uint32_t frame,
                      const struct symbol_location *at, size_t n)
{
    struct naming *k = context;
    struct profile_location out[SYMBOL_INLINE_MAX];
    for (size_t i = 0; i < n; i++) {
        out[i].function = profile_function_add(k->profile, at[i].function, at[i].linkage,
                                               at[i].file, at[i].start_line, (uint32_t)module);
        out[i].line = at[i].line;
    }
    profile_frame_locate(k->profile, frame, out, (uint32_t)n);
    k->summary->named++;
    if (k->options->progress)
        k->options->progress(k->options->context, k->summary->named, k->summary->asked);
}

/* A function's place stands in for its name until that is found. */
static bool has_names(const struct profile *p, const struct profile_frame *f)
{
    uint32_t function = f->location_count ? p->locations.data[f->first_location].function : 0;
    return f->location_count &&
           !profile_name_is_place(profile_text(p, p->functions.data[function].name));
}

/* The kernel's addresses mean something only under the boot that they come from. */
static bool is_this_kernel(const struct profile *p)
{
    const char *release = profile_meta_get(p, "kernel"), *host = profile_meta_get(p, "host");
    return !release || !host ||
           (kernel_is(release, host) && (!p->wall_start || kernel_ran(p->wall_start)));
}

static void gather(struct profile *p, const char *sysroot, bool again, struct symbol_batch *b)
{
    bool ours = is_this_kernel(p);
    for (size_t i = 0; i < p->modules.len; i++) {
        const struct profile_module *m = &p->modules.data[i];
        struct symbol_request r = {
            .kind = symbol_kind_of(m->kind),
            .path = m->kind == CODE_ELF || m->kind == CODE_JIT ? profile_text(p, m->path) : NULL,
            .root = sysroot,
            .build_id = m->build_id_len ? m->build_id : NULL,
            .build_id_len = m->build_id_len};
        symbol_batch_module(b, i, &r, -1);
    }
    for (size_t i = 0; i < p->frames.len; i++) {
        const struct profile_frame *f = &p->frames.data[i];
        bool named_only = f->location_count && !f->address;
        bool foreign = !ours && p->modules.data[f->module].kind == CODE_KERNEL;
        if (!named_only && !foreign && (again || !has_names(p, f)))
            symbol_batch_add(b, f->module, f->address, (uint32_t)i);
    }
}

int symbol_profile(struct profile *p, const char *sysroot, bool again,
                   const struct symbol_options *options, struct symbol_summary *summary,
                   struct error *err)
{
    *summary = (struct symbol_summary){0};
    struct symbol_batch *b = symbol_batch_new(p->modules.len);
    gather(p, sysroot, again, b);
    summary->asked = symbol_batch_count(b);
    struct naming k = {.profile = p, .summary = summary, .options = options};
    int rc = symbol_batch_run(b, options, on_answer, &k, err);
    for (size_t i = 0; i < p->modules.len && !rc; i++) {
        const struct symbol_result *r = symbol_batch_result(b, i);
        if (r && (r->note[0] || r->resolved))
            p->modules.data[i].note = profile_string(p, r->note);
    }
    p->symbolized |= summary->named > 0;
    symbol_batch_free(b);
    return rc;
}

void symbol_demangle_profile(struct profile *p)
{
    char plain[SYMBOL_TEXT_MAX];
    for (size_t i = 0; i < p->functions.len; i++) {
        struct profile_function *f = &p->functions.data[i];
        const char *name = profile_text(p, f->name);
        if (f->linkage || name[0] != '_' || !symbol_demangle(name, plain))
            continue;
        f->linkage = f->name;
        f->name = profile_string(p, plain);
    }
}
