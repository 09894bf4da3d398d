/* A truth: any text is read, or refused with a sentence; what is read can be checked and shown. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "analyze/truth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = memory_strndup((const char *)data, size);
    struct truth t;
    struct error err = {0};
    struct profile p;
    profile_init(&p);
    if (truth_parse(&t, text, &err)) {
        if (!err.text[0])
            abort();
    } else {
        struct view v;
        truth_check(&t, &p);
        for (size_t i = 0; i < t.claims.len; i++)
            if (!isfinite(t.claims.data[i].value) || t.claims.data[i].value < 0)
                abort();
        view_init(&v, "verify", "", "claims");
        truth_view_claims(&v, &(const struct truth *){&t}, 1, false);
        view_release(&v);
    }
    truth_release(&t);
    profile_release(&p);
    free(text);
    return 0;
}
