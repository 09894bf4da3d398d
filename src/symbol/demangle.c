/*
 * Mangled names through libiberty. Names come from files, so both ends are bounded: a short name
 * can expand to gigabytes (each substitution doubling the last), therefore output is taken piece by
 * piece and the demangler is left by longjmp at the cap. The callback forms keep their state on
 * the stack, so leaving them loses nothing but, for Rust punycode, one small buffer.
 */
#include "symbol/symbol.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/* Beyond this many bytes libiberty refuses unless its recursion limit is lifted; templates of real
 * programs reach further. SYMBOL_TEXT_MAX levels need some 4 MiB of stack at worst. */
#define LIMITED_LEN 1000

struct output {
    char *data;
    size_t len;
    jmp_buf full;
};

static void take_piece(const char *piece, size_t len, void *context)
{
    struct output *o = context;
    size_t room = SYMBOL_TEXT_MAX - 1 - o->len;
    memcpy(o->data + o->len, piece, len < room ? len : room);
    o->len += len < room ? len : room;
    if (len > room)
        longjmp(o->full, 1);
}

static bool run_demangler(const char *linkage, size_t len, struct output *o)
{
    const int plain = DMGL_PARAMS | DMGL_ANSI;
    const int options = len > LIMITED_LEN ? plain | DMGL_NO_RECURSE_LIMIT : plain;
    if (setjmp(o->full) != 0) {
        memcpy(o->data + SYMBOL_TEXT_MAX - 4, "...", 4);
        return true;
    }
    if (rust_demangle_callback(linkage, plain, take_piece, o)) {
        o->data[o->len] = '\0';
        return true;
    }
    o->len = 0;
    if (!cplus_demangle_v3_callback(linkage, options, take_piece, o))
        return false;
    o->data[o->len] = '\0';
    return o->len > 0;
}

bool symbol_demangle(const char *linkage, char out[SYMBOL_TEXT_MAX])
{
    size_t len = strnlen(linkage, SYMBOL_TEXT_MAX);
    if (len < SYMBOL_TEXT_MAX && linkage[0] == '_' && (linkage[1] == 'Z' || linkage[1] == 'R')) {
        struct output o = {.data = out};
        if (run_demangler(linkage, len, &o))
            return true;
    }
    if (len >= SYMBOL_TEXT_MAX)
        len = SYMBOL_TEXT_MAX - 1;
    memcpy(out, linkage, len);
    out[len] = '\0';
    return false;
}
