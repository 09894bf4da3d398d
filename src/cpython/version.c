/*
 * Which version an interpreter is; see version.h. From 3.11 on there is a constant. Before, there
 * is only the text "3.8.18", which nothing names but the code of Py_GetVersion: that function is so
 * small that the addresses it computes can be tried one by one.
 */
#include "cpython/version.h"

#include <string.h>

#include "cpython/memory.h"

static bool number(const char **at, const char *end, uint8_t *value)
{
    unsigned sum = 0, digits = 0;
    for (; *at < end && **at >= '0' && **at <= '9' && digits < 3; (*at)++, digits++)
        sum = sum * 10 + (unsigned)(**at - '0');
    *value = (uint8_t)sum;
    return digits && sum < VERSION_MICRO_UNKNOWN;
}

static bool dot(const char **at, const char *end)
{
    return *at < end && *(*at)++ == '.';
}

bool version_parse(const char *text, size_t size, struct version *out)
{
    const char *at = text, *end = text + size;
    *out = (struct version){0};
    if (!number(&at, end, &out->major) || !dot(&at, end) || !number(&at, end, &out->minor) ||
        !dot(&at, end) || !number(&at, end, &out->micro))
        return false;
    if (at == end || *at == '\0' || *at == ' ' || *at == '+')
        return true;
    out->prerelease = *at == 'a' || *at == 'b';
    return out->prerelease || *at == 'r';
}

/* Py_Version: 0x030b07f0 is 3.11.7, release level f. */
static bool from_constant(const struct cpython_module *module, const struct cpython_memory *memory,
                          struct version *out)
{
    uint64_t address;
    uint8_t raw[sizeof(unsigned long)];
    if (!module->symbol(module->ctx, "Py_Version", &address) ||
        !memory_read(memory, address, raw, sizeof(raw)))
        return false;
    uint64_t hex = word_of(raw, 0);
    if (hex >> 32 || !(hex >> 24))
        return false;
    *out = (struct version){.major = (uint8_t)(hex >> 24),
                            .minor = (uint8_t)(hex >> 16),
                            .micro = (uint8_t)(hex >> 8),
                            .prerelease = (hex >> 4 & 15) < 12};
    return true;
}

/* Every "lea disp32(%rip), reg" of Py_GetVersion: the address may hold the version's text. */
static bool from_code(const struct cpython_module *module, const struct cpython_memory *memory,
                      struct version *out)
{
    uint64_t address;
    uint8_t code[128];
    char text[16];
    if (!module->symbol(module->ctx, "Py_GetVersion", &address) ||
        !memory_read(memory, address, code, sizeof(code)))
        return false;
    for (size_t i = 0; i + 7 <= sizeof(code); i++) {
        if ((code[i] & 0xfb) != 0x48 || code[i + 1] != 0x8d || (code[i + 2] & 0xc7) != 0x05)
            continue;
        uint64_t target = address + i + 7 + (uint64_t)(int64_t)(int32_t)half_of(code, i + 3);
        if (memory_read(memory, target, text, sizeof(text)) &&
            version_parse(text, sizeof(text), out) && out->major >= 2)
            return true;
    }
    return false;
}

/* Past "python" in the last part of a path: "3.8", "3.6m.so.1.0", or NULL. */
static const char *path_version(const char *path)
{
    const char *name = path;
    for (const char *slash; (slash = strchr(name, '/'));)
        name = slash + 1;
    if (!strncmp(name, "lib", 3))
        name += 3;
    return strncmp(name, "python", 6) ? NULL : name + 6;
}

static bool from_path(const char *path, struct version *out)
{
    const char *at = path ? path_version(path) : NULL;
    if (!at)
        return false;
    const char *end = at + strlen(at);
    *out = (struct version){.micro = VERSION_MICRO_UNKNOWN};
    return number(&at, end, &out->major) && dot(&at, end) && number(&at, end, &out->minor);
}

bool version_path_has(const char *path, char flag)
{
    const char *at = path ? path_version(path) : NULL;
    if (!at || *at < '0' || *at > '9')
        return false;
    while ((*at >= '0' && *at <= '9') || *at == '.')
        at++;
    for (; *at && strchr("dmtu", *at); at++) {
        if (*at == flag)
            return true;
    }
    return false;
}

int version_find(const struct cpython_module *module, const struct cpython_memory *memory,
                 struct version *out)
{
    return from_constant(module, memory, out) || from_code(module, memory, out) ||
                   from_path(module->path, out)
               ? CPYTHON_OK
               : CPYTHON_NO_VERSION;
}
