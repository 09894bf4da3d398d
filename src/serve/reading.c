/* Profiles in requests; see reading.h. */
#include "serve/reading.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "formats/open.h"
#include "serve/http_internal.h"

static bool is_gzip(const char *data, size_t len)
{
    return len > 2 && (unsigned char)data[0] == 0x1f && (unsigned char)data[1] == 0x8b;
}

/* The readers take a path: that of memory. */
static int read_memory(const char *data, size_t len, const struct format *format,
                       const struct load_options *how, struct profile *p, struct error *err)
{
    char path[64];
    int fd = memfd_create("profile", MFD_CLOEXEC);
    if (fd < 0 || io_write(fd, data, len) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        if (fd >= 0)
            close(fd);
        return error_errno(err, FAULT_SYSTEM, "cannot hold the profile in memory");
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int rc = format ? profile_open_as(format, path, how, p, err) : profile_open(path, how, p, err);
    close(fd);
    return rc;
}

int reading_profile(const char *data, size_t len, const struct format *format,
                    const struct load_options *how, struct profile *p, struct error *err)
{
    struct text packed = {.data = (char *)data, .len = len, .cap = 0}, plain = TEXT_INIT;
    const char *why = NULL;
    int rc = 0;
    if (is_gzip(data, len)) {
        int status = inflate_body("gzip", &packed, READING_MAX, &plain, &why);
        if (status)
            rc = error_set(err, status == 413 ? FAULT_LIMIT : FAULT_INPUT, "%s", why);
        data = plain.data;
        len = plain.len;
    } else if (len > READING_MAX) {
        rc = error_set(err, FAULT_LIMIT, "a profile may have %zu bytes, not %zu", READING_MAX, len);
    }
    if (!rc)
        rc = read_memory(data, len, format, how, p, err);
    text_release(&plain);
    return rc;
}

int reading_batch(struct batch *b, const struct format *format, const char *data, size_t len,
                  struct error *err)
{
    struct profile p;
    profile_init(&p);
    int rc = reading_profile(data, len, format, &(struct load_options){.hide_interpreter = true},
                             &p, err);
    if (!rc)
        batch_add_profile(b, &p, true);
    if (!rc && b->counts.len > BATCH_COUNTS_MAX)
        rc = error_set(err, FAULT_LIMIT, "the profile has more than %u values", BATCH_COUNTS_MAX);
    profile_release(&p);
    return rc;
}

const char *reading_key(struct arena *a, const char *path, const char *peer, const void *data,
                        size_t len)
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    char key[BATCH_KEY_MAX + 1];
    unsigned size = 0;
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    EVP_DigestInit_ex(c, EVP_sha256(), NULL);
    EVP_DigestUpdate(c, path, strlen(path) + 1);
    EVP_DigestUpdate(c, peer, strcspn(peer, ":") + 1);
    EVP_DigestUpdate(c, data, len);
    EVP_DigestFinal_ex(c, hash, &size);
    EVP_MD_CTX_free(c);
    for (unsigned i = 0; i < 24; i++)
        snprintf(key + 2 * i, 3, "%02x", hash[i]);
    return arena_strdup(a, key);
}
