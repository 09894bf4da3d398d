/* Sentences about failures; see error.h. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void make_printable(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p; p++)
        if (*p < 0x20 || *p == 0x7f)
            *p = '?';
}

int error_set(struct error *err, enum fault fault, const char *format, ...)
{
    if (!err)
        return fault;
    va_list args;
    va_start(args, format);
    err->fault = fault;
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    make_printable(err->text);
    return fault;
}

int error_errno(struct error *err, enum fault fault, const char *format, ...)
{
    int saved = errno;
    if (!err)
        return fault;
    va_list args;
    va_start(args, format);
    err->fault = fault;
    int len = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (len >= 0 && (size_t)len < sizeof err->text)
        snprintf(err->text + len, sizeof err->text - (size_t)len, ": %s", strerror(saved));
    make_printable(err->text);
    errno = saved;
    return fault;
}

int error_prefix(struct error *err, const char *format, ...)
{
    if (!err)
        return FAULT_SYSTEM;
    char rest[sizeof err->text];
    memcpy(rest, err->text, sizeof rest);
    va_list args;
    va_start(args, format);
    int len = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (len >= 0 && (size_t)len < sizeof err->text)
        snprintf(err->text + len, sizeof err->text - (size_t)len, ": %s", rest);
    make_printable(err->text);
    return err->fault;
}
