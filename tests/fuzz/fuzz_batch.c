/* Any bytes as a push: refused with a sentence, or what is written of it is read back the same. */
#include <stdlib.h>
#include <string.h>

#include "store/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch b = {0}, again = {0};
    struct error err = {0};
    struct text out = TEXT_INIT;
    if (batch_parse(&b, (const char *)data, size, &err)) {
        if (!err.text[0])
            abort();
    } else {
        batch_write(&b, &out);
        text_add_len(&out, b.recording, b.recording_size);
        if (batch_parse(&again, out.data, out.len, &err) || again.counts.len != b.counts.len ||
            again.bench.len != b.bench.len || again.recording_size != b.recording_size ||
            strcmp(again.key, b.key) != 0)
            abort();
    }
    text_release(&out);
    batch_release(&b);
    batch_release(&again);
    return 0;
}
