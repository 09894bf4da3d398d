/* Numbers as people type them; see quantity.h. */
#include "cmd/quantity.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit counts[] = {{"", 1},        {"k", 1000},       {"K", 1000},
                                     {"M", 1000000}, {"G", 1000000000}, {0}};

static const struct unit durations[] = {{"", 1000000000},
                                        {"ns", 1},
                                        {"us", 1000},
                                        {"µs", 1000},
                                        {"ms", 1000000},
                                        {"s", 1000000000},
                                        {"m", 60000000000},
                                        {"min", 60000000000},
                                        {"h", 3600000000000},
                                        {"d", 86400000000000},
                                        {0}};

static const struct unit sizes[] = {{"", 1},
                                    {"B", 1},
                                    {"K", 1ull << 10},
                                    {"k", 1ull << 10},
                                    {"KiB", 1ull << 10},
                                    {"M", 1ull << 20},
                                    {"MiB", 1ull << 20},
                                    {"G", 1ull << 30},
                                    {"GiB", 1ull << 30},
                                    {"T", 1ull << 40},
                                    {"TiB", 1ull << 40},
                                    {0}};

/* Digits at *p as a number; false if there are none or too many. */
static bool read_digits(const char **p, uint64_t *value, unsigned *count)
{
    *value = 0;
    *count = 0;
    while (isdigit((unsigned char)**p)) {
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(**p - '0'), value))
            return false;
        (*p)++;
        (*count)++;
    }
    return *count > 0;
}

/* [digits][.digits]unit, computed in integers so that 1.1s is 1,100,000,000 exactly. */
static bool read_scaled(const char *p, const struct unit *units, uint64_t *value)
{
    uint64_t whole = 0, part = 0, scale = 1;
    unsigned digits;
    if (!read_digits(&p, &whole, &digits))
        return false;
    if (*p == '.') {
        p++;
        if (!read_digits(&p, &part, &digits) || digits > 9)
            return false;
        while (digits--)
            scale *= 10;
    }
    for (; units->name; units++) {
        if (strcmp(units->name, p) != 0)
            continue;
        unsigned __int128 all = (unsigned __int128)whole * units->factor +
                                (unsigned __int128)part * units->factor / scale;
        *value = (uint64_t)all;
        return all <= UINT64_MAX;
    }
    return false;
}

bool quantity_unsigned(const char *text, bool suffix, uint64_t *value)
{
    if (suffix)
        return read_scaled(text, counts, value);
    unsigned digits;
    return read_digits(&text, value, &digits) && !*text;
}

bool quantity_double(const char *text, double *value)
{
    /* strtod would also take "nan", "inf", hexadecimal and leading space. */
    if (!*text || text[strspn(text, "0123456789.eE+-")])
        return false;
    char *end;
    *value = strtod(text, &end);
    return !*end && isfinite(*value);
}

bool quantity_percent(const char *text, double *value)
{
    char digits[64];
    size_t len = strlen(text);
    if (len && text[len - 1] == '%')
        len--;
    if (!len || len >= sizeof digits)
        return false;
    memcpy(digits, text, len);
    digits[len] = 0;
    return quantity_double(digits, value);
}

bool quantity_duration(const char *text, uint64_t *ns)
{
    return read_scaled(text, durations, ns);
}

bool quantity_size(const char *text, uint64_t *bytes)
{
    return read_scaled(text, sizes, bytes);
}

static void add_scaled(struct text *t, uint64_t value, const struct unit *units)
{
    while (units->factor > 1 && (value == 0 || value % units->factor != 0))
        units++;
    text_format(t, "%llu%s", (unsigned long long)(value / units->factor), units->name);
}

void quantity_add_duration(struct text *t, uint64_t ns)
{
    static const struct unit units[] = {{"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
                                        {"ms", 1000000},      {"us", 1000},       {"ns", 1}};
    if (ns)
        add_scaled(t, ns, units);
    else
        text_add(t, "0s");
}

void quantity_add_size(struct text *t, uint64_t bytes)
{
    static const struct unit units[] = {
        {"T", 1ull << 40}, {"G", 1ull << 30}, {"M", 1ull << 20}, {"K", 1ull << 10}, {"", 1}};
    add_scaled(t, bytes, units);
}
