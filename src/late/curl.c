/* libcurl: the server's clients, ClickHouse and debuginfod; see base/late.h. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <stdarg.h>

#include "base/late.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

static struct late_library curl = {.name = LATE_CURL};

LATE(curl, CURLcode, curl_global_init, (long flags), (flags))
LATE(curl, CURL *, curl_easy_init, (void), ())
LATE(curl, void, curl_easy_cleanup, (CURL * handle), (handle))
LATE(curl, void, curl_easy_reset, (CURL * handle), (handle))
LATE(curl, CURLcode, curl_easy_perform, (CURL * handle), (handle))
LATE(curl, const char *, curl_easy_strerror, (CURLcode code), (code))
LATE(curl, char *, curl_easy_escape, (CURL * handle, const char *text, int length),
     (handle, text, length))
LATE(curl, void, curl_free, (void *pointer), (pointer))
LATE(curl, struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *text),
     (list, text))
LATE(curl, void, curl_slist_free_all, (struct curl_slist * list), (list))

/* The one value after `option` is a pointer, a long or a curl_off_t: a word, on all that sonde runs
 * on. */
_Static_assert(sizeof(void *) == sizeof(long) && sizeof(void *) == sizeof(curl_off_t), "one word");

CURLcode curl_easy_setopt(CURL *handle, CURLoption option, ...)
{
    static _Atomic(void *) slot;
    __typeof__(&curl_easy_setopt) real =
        (__typeof__(&curl_easy_setopt))late_find(&curl, &slot, "curl_easy_setopt");
    va_list values;
    va_start(values, option);
    void *value = va_arg(values, void *);
    va_end(values);
    return real(handle, option, value);
}

CURLcode curl_easy_getinfo(CURL *handle, CURLINFO info, ...)
{
    static _Atomic(void *) slot;
    __typeof__(&curl_easy_getinfo) real =
        (__typeof__(&curl_easy_getinfo))late_find(&curl, &slot, "curl_easy_getinfo");
    va_list values;
    va_start(values, info);
    void *value = va_arg(values, void *);
    va_end(values);
    return real(handle, info, value);
}
