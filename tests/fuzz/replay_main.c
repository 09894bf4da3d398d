/*
 * Runs a fuzz target once over every file in the folders and files given, in
 * place of libFuzzer. No input at all is a failure: a corpus that has gone missing
 * must not pass for one that holds.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/text.h"

#define INPUT_MAX (16u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    struct error err;
    char *data;
    size_t len;
    if (io_slurp(path, INPUT_MAX, &data, &len, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    /* A copy of the exact size, so that ASan sees the first byte past the end. */
    uint8_t *exact = malloc(len ? len : 1);
    memcpy(exact, data, len);
    free(data);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
    return 1;
}

/* Inputs replayed, or -1. */
static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return replay_file(path);
    DIR *folder = opendir(path);
    if (!folder) {
        perror(path);
        return -1;
    }
    int count = 0;
    for (struct dirent *e; count >= 0 && (e = readdir(folder)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        struct text file = TEXT_INIT;
        text_format(&file, "%s/%s", path, e->d_name);
        count = replay_file(file.data) < 0 ? -1 : count + 1;
        text_release(&file);
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int count = replay(argv[i]);
        if (count < 0)
            return 1;
        total += count;
    }
    printf("%d inputs replayed\n", total);
    return total ? 0 : 1;
}
