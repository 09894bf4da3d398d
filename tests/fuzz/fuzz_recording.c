/* A recording's file and its records: any bytes give a profile or a sentence, never a crash. */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "profile/rescue.h"
#include "recording/block.h"
#include "recording/loader.h"

static void read_records(const uint8_t *data, size_t size)
{
    struct profile p;
    struct load_options o = {.keep_samples = true};
    profile_init(&p);
    struct loader *l = loader_new(&p, &o);
    loader_feed(l, data, size);
    loader_free(l);
    profile_meta_set(&p, "heap_mode", "exact");
    profile_rescue_heaps(&p);
    for (uint32_t i = 0; i < p.processes.len; i++)
        profile_process_name(&p, i);
    profile_release(&p);
}

static void read_file(const uint8_t *data, size_t size)
{
    struct block_reader *r;
    struct error err;
    const uint8_t *records;
    size_t len;
    int fd = memfd_create("recording", MFD_CLOEXEC);
    if (fd < 0 || io_write(fd, data, size) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
        block_reader_new(fd, "input", &r, &err))
        return;
    while (block_read(r, &records, &len, &err) > 0)
        read_records(records, len);
    block_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == 'S')
        read_file(data, size);
    else
        read_records(data, size);
    return 0;
}
