/* sonde symbolize: names and lines for a recording that has none, or has too few. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/command.h"
#include "recording/loader.h"
#include "recording/save.h"
#include "symbol/profile.h"

struct symbolize_options {
    const char *output, *sysroot;
    bool force, again, debuginfod, quiet;
};

static const struct option options[] = {
    {"output", 'o', OPTION_TEXT_AT(struct symbolize_options, output), .placeholder = "FILE",
     .default_text = "the recording itself", .help = "Write the result here instead."},
    {"force", 'f', OPTION_FLAG_AT(struct symbolize_options, force),
     .help = "Replace the output file if it exists."},
    {"sysroot", 0, OPTION_TEXT_AT(struct symbolize_options, sysroot), .placeholder = "DIR",
     .help = "Look for programs, libraries and debug information below this folder."},
    {"again", 0, OPTION_FLAG_AT(struct symbolize_options, again),
     .help = "Look up what has names already as well."},
    {"debuginfod", 0, OPTION_FLAG_AT(struct symbolize_options, debuginfod),
     .help = "Ask the servers in DEBUGINFOD_URLS for debug information."},
    {"quiet", 'q', OPTION_FLAG_AT(struct symbolize_options, quiet), .help = "No closing words."},
    {0}};

/* Beside the recording first, then in its place: whatever happens, one whole file is there. */
static int write_result(const struct profile *p, const char *to, bool replace, struct error *err)
{
    struct text beside = TEXT_INIT;
    struct writer *w;
    text_format(&beside, "%s.%d.new", to, (int)getpid());
    int rc = writer_new(beside.data, true, &w, err);
    if (!rc) {
        rc = recording_save(p, w, err);
        int closed = writer_free(w, p->complete, p->end, rc ? NULL : err);
        rc = rc ? rc : closed;
    }
    if (!rc && !replace && access(to, F_OK) == 0)
        rc = error_set(err, FAULT_SYSTEM, "%s exists already: use --force to replace it", to);
    if (!rc && rename(beside.data, to) < 0)
        rc = error_errno(err, FAULT_SYSTEM, "cannot replace %s", to);
    if (rc)
        unlink(beside.data);
    text_release(&beside);
    return rc;
}

static void say(const struct profile *p, const struct symbol_summary *s)
{
    fprintf(stderr, "sonde: %zu of %zu addresses have names now\n", s->named, s->asked);
    for (size_t i = 0; i < p->modules.len; i++) {
        const char *note = profile_text(p, p->modules.data[i].note);
        struct text t = TEXT_INIT;
        text_add_printable(&t, profile_module_name(p, (uint32_t)i));
        text_add(&t, ": ");
        text_add_printable(&t, note);
        if (*note)
            fprintf(stderr, "  %s\n", t.data);
        text_release(&t);
    }
}

static int run(struct invocation *inv)
{
    const struct symbolize_options *o = inv->options;
    const char *file = inv->argv[0];
    struct profile p;
    struct symbol_summary summary;
    struct symbol_options how = {.debuginfod = o->debuginfod};
    struct load_options load = {.keep_samples = true, .samples_apart = true, .keep_spans = true};
    profile_init(&p);
    int rc = recording_load(file, &load, &p, &inv->error);
    if (!rc)
        rc = symbol_profile(&p, o->sysroot, o->again, &how, &summary, &inv->error);
    if (!rc)
        rc = write_result(&p, o->output ? o->output : file, !o->output || o->force, &inv->error);
    if (!rc && !o->quiet)
        say(&p, &summary);
    profile_release(&p);
    return rc;
}

static const struct command_example examples[] = {
    {"sonde symbolize app.sonde", "names from the files of this machine"},
    {"sonde symbolize app.sonde --sysroot /srv/target -o named.sonde",
     "from a copy of the other machine's files"},
    {0}};

static const char *const see_also[] = {"run", "report", NULL};

const struct command command_symbolize = {
    .name = "symbolize",
    .summary = "Put names and lines into a recording",
    .usage = "[OPTION]... RECORDING",
    .description =
        "Looks up the functions, source lines and inlined calls behind the addresses of a "
        "recording that was made with --no-symbols, or on a machine without the debug "
        "information. A file is used only if its build-id is that of the file that ran.",
    .options = options,
    .options_size = sizeof(struct symbolize_options),
    .operands_min = 1,
    .operands_max = 1,
    .operand = "RECORDING",
    .examples = examples,
    .see_also = see_also,
    .run = run,
};
