/* Bodies that come compressed: gzip, deflate, zstd, each in one piece or several. A few bytes may
 * stand for very many, so what comes out is bounded while it comes out. */
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

#include "serve/http_internal.h"

#define STEP ((size_t)65536)
#define USUAL 16         /* times as much as was sent is more than what most bodies become */
#define SMALL (1u << 20) /* what may be moved to a larger place without much ado */

static int too_large(const char **why)
{
    *why = "the body is too large when it is decompressed";
    return 413;
}

static int malformed(const char **why)
{
    *why = "the body cannot be decompressed: it is cut or damaged";
    return 400;
}

/* Room for another step. What is not used of it costs nothing, but growing by and by would: for a
 * while there would be the old and the new, and a bomb take twice the bound. */
static void make_room(struct text *out, const struct text *in, size_t max)
{
    size_t usual = in->len < SMALL / USUAL && SMALL < max ? in->len * USUAL : max;
    if (out->cap < out->len + STEP + 1)
        text_reserve(out, (out->cap ? max : usual) + STEP);
}

static int inflate_zlib(const struct text *in, size_t max, struct text *out, const char **why)
{
    z_stream z = {.next_in = (Bytef *)in->data, .avail_in = (uInt)in->len};
    if (in->len > UINT32_MAX || inflateInit2(&z, 15 + 32) != Z_OK)
        return malformed(why);
    int rc = Z_OK, status = 0;
    while (rc == Z_OK && !status) {
        make_room(out, in, max);
        z.next_out = (Bytef *)out->data + out->len;
        z.avail_out = (uInt)STEP;
        rc = inflate(&z, Z_NO_FLUSH);
        out->len += STEP - z.avail_out;
        if (out->len > max)
            status = too_large(why);
        else if (rc == Z_STREAM_END && z.avail_in)
            rc = inflateReset(&z);
    }
    if (!status && rc != Z_STREAM_END)
        status = malformed(why);
    inflateEnd(&z);
    return status;
}

static int inflate_zstd(const struct text *in, size_t max, struct text *out, const char **why)
{
    ZSTD_DCtx *z = ZSTD_createDCtx();
    ZSTD_inBuffer from = {.src = in->data, .size = in->len};
    size_t rc = 1;
    int status = z ? 0 : malformed(why);
    if (z)
        ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, 23);
    while (!status && (rc || from.pos < from.size) && !ZSTD_isError(rc)) {
        make_room(out, in, max);
        ZSTD_outBuffer to = {.dst = out->data + out->len, .size = STEP};
        size_t before = from.pos;
        rc = ZSTD_decompressStream(z, &to, &from);
        out->len += ZSTD_isError(rc) ? 0 : to.pos;
        if (out->len > max)
            status = too_large(why);
        else if (!to.pos && from.pos == before)
            break;
    }
    if (!status && (rc || from.pos < from.size))
        status = malformed(why);
    ZSTD_freeDCtx(z);
    return status;
}

int inflate_body(const char *encoding, const struct text *in, size_t max, struct text *out,
                 const char **why)
{
    int status;
    if (strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "deflate") == 0) {
        status = inflate_zlib(in, max, out, why);
    } else if (strcasecmp(encoding, "zstd") == 0) {
        status = inflate_zstd(in, max, out, why);
    } else {
        *why = "of content encodings gzip, deflate and zstd are known here";
        return 415;
    }
    if (!status) {
        text_reserve(out, 1);
        out->data[out->len] = 0;
    }
    return status;
}
