/* Names for a profile that was recorded without, or whose debug information came later. */
#ifndef SONDE_SYMBOL_PROFILE_H
#define SONDE_SYMBOL_PROFILE_H

#include "profile/profile.h"
#include "symbol/symbol.h"

struct symbol_summary {
    size_t asked, named; /* frames */
};

/* The kind under which a module's addresses are looked up. */
enum symbol_kind symbol_kind_of(enum code_kind kind);

/* Looks up every frame that has no names (all of them with `again`), below `sysroot` if not NULL,
 * and puts what is found into the profile. Modules get a note where something is missing. */
int symbol_profile(struct profile *p, const char *sysroot, bool again,
                   const struct symbol_options *options, struct symbol_summary *summary,
                   struct error *err);

/* Names that a linker knows, as other tools' files may give them, as people write them. */
void symbol_demangle_profile(struct profile *p);

#endif
