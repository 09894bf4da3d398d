/* A recording as it grows; see follow.h. */
#include "live/follow.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/memory.h"
#include "recording/block.h"
#include "recording/loader.h"

struct follow {
    struct profile profile;
    struct loader *loader;
    struct block_reader *reader;
};

int follow_new(const char *path, bool keep_samples, struct follow **out, struct error *err)
{
    struct follow *f = memory_alloc(sizeof *f);
    profile_init(&f->profile);
    f->loader = loader_new(&f->profile, &(struct load_options){.keep_samples = keep_samples,
                                                               .keep_spans = keep_samples});
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int rc = fd < 0 ? error_errno(err, FAULT_SYSTEM, "cannot open %s", path)
                    : block_reader_new(fd, path, &f->reader, err);
    if (rc) {
        follow_free(f);
        return rc;
    }
    block_reader_follow(f->reader, true);
    *out = f;
    return 0;
}

void follow_free(struct follow *f)
{
    if (!f)
        return;
    loader_free(f->loader);
    block_reader_free(f->reader);
    profile_release(&f->profile);
    free(f);
}

int follow_read(struct follow *f, bool last, struct error *err)
{
    const uint8_t *records;
    size_t len;
    int rc, blocks = 0;
    if (last)
        block_reader_follow(f->reader, false);
    while ((rc = block_read(f->reader, &records, &len, err)) > 0) {
        loader_feed(f->loader, records, len);
        blocks++;
    }
    return rc < 0 ? rc : blocks;
}

struct profile *follow_profile(struct follow *f)
{
    return &f->profile;
}

uint64_t follow_bytes(const struct follow *f)
{
    return block_reader_offset(f->reader);
}
