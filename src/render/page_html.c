/*
 * The page as one file: style, markup and script stand in it, held by their digests in its
 * policy, and the document compressed and in base64. The same parts as files for a server.
 */
#include <string.h>
#include <zlib.h>

#include "render/page/assets.h"
#include "render/page_internal.h"
#include "render/xml.h"

#define LEVEL 6
#define CHUNK 49152 /* a multiple of 3: base64 without padding in between */

/* Document -> deflate -> base64 -> the file. */
struct packer {
    page_sink *sink;
    void *context;
    z_stream z;
    struct text text;
    size_t held;
    uint8_t out[CHUNK];
};

static int put_base64(struct packer *k, const uint8_t *data, size_t len)
{
    text_clear(&k->text);
    text_add_base64(&k->text, data, len);
    return k->sink(k->context, k->text.data, k->text.len);
}

static int pack_flush(struct packer *k, const char *data, size_t len, int flush)
{
    k->z.next_in = (uint8_t *)(uintptr_t)data;
    int result = 0;
    do {
        size_t piece = len > 1 << 30 ? 1 << 30 : len;
        k->z.avail_in = (unsigned)piece;
        len -= piece;
        do {
            k->z.next_out = k->out + k->held;
            k->z.avail_out = (unsigned)(CHUNK - k->held);
            deflate(&k->z, len ? Z_NO_FLUSH : flush);
            k->held = CHUNK - k->z.avail_out;
            if (k->held < CHUNK)
                break;
            result = put_base64(k, k->out, CHUNK);
            k->held = 0;
        } while (!result);
    } while (len && !result);
    return result;
}

static int pack(void *context, const char *data, size_t len)
{
    return len ? pack_flush(context, data, len, Z_NO_FLUSH) : 0;
}

static int pack_finish(struct packer *k)
{
    int result = pack_flush(k, "", 0, Z_FINISH);
    return result ? result : put_base64(k, k->out, k->held);
}

/* What the first view does not need is packed apart, behind a line feed, and unpacked after it. */
static int pack_turn(void *context)
{
    struct packer *k = context;
    int result = pack_finish(k);
    k->held = 0;
    if (!result && deflateReset(&k->z) != Z_OK)
        result = -1;
    return result ? result : k->sink(k->context, "\n", 1);
}

static int put_document(const struct profile *p, const struct page_options *o, const char *id,
                        page_sink *sink, void *context)
{
    static const char end[] = "</script>\n";
    struct packer k = {.sink = sink, .context = context, .text = TEXT_INIT};
    struct text tag = TEXT_INIT;
    text_format(&tag, "<script type=\"application/x-sonde\" id=\"%s\">", id);
    int result = sink(context, tag.data, tag.len);
    text_release(&tag);
    if (!result && deflateInit2(&k.z, LEVEL, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        result = -1;
    if (result)
        return result;
    struct page *g = page_new(p, o);
    result = page_write_parts(g, pack, pack_turn, &k);
    if (!result)
        result = pack_finish(&k);
    deflateEnd(&k.z);
    text_release(&k.text);
    page_free(g);
    return result ? result : sink(context, end, sizeof end - 1);
}

static void add_head(struct text *out, const char *title)
{
    text_format(out,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; "
                "form-action 'none'\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n"
                "<meta name=\"generator\" content=\"sonde\">\n<title>",
                asset_web_js_digest, asset_web_css_digest);
    xml_escape(out, title);
    text_format(out, "</title>\n<style>%s</style>\n</head>\n<body>\n<div id=\"app\"></div>\n",
                asset_web_css);
}

static const char *title_of(const struct profile *p, const struct page_options *o)
{
    const char *command = profile_meta_get(p, "command");
    if (o && o->title)
        return o->title;
    return command && *command ? command : "sonde";
}

int page_html(const struct profile *p, const struct profile *base, const struct page_options *o,
              page_sink *sink, void *context)
{
    struct text out = TEXT_INIT;
    add_head(&out, title_of(p, o));
    int result = sink(context, out.data, out.len);
    if (!result)
        result = put_document(p, o, "data", sink, context);
    if (!result && base)
        result = put_document(base, NULL, "base", sink, context);
    text_clear(&out);
    text_format(&out, "<script>%s</script>\n</body>\n</html>\n", asset_web_js);
    if (!result)
        result = sink(context, out.data, out.len);
    text_release(&out);
    return result;
}

#define SERVED(what)                                                                               \
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"                      \
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"                   \
    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>sonde</title>\n"                  \
    "<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" "                               \
    "href=\"page.css\">\n</head>\n<body>\n<div id=\"app\"" what "></div>\n"                        \
    "<script src=\"page.js\"></script>\n</body>\n</html>\n"

static const char session[] = SERVED(""), jobs[] = SERVED(" data-serves=\"jobs\"");

const struct page_asset *page_asset(const char *path)
{
    static struct page_asset assets[] = {
        {"/", "text/html; charset=utf-8", session, sizeof session - 1},
        {"/jobs", "text/html; charset=utf-8", jobs, sizeof jobs - 1},
        {"/page.js", "text/javascript; charset=utf-8", NULL, 0},
        {"/page.css", "text/css; charset=utf-8", NULL, 0}};
    assets[2].data = asset_web_js;
    assets[2].len = strlen(asset_web_js);
    assets[3].data = asset_web_css;
    assets[3].len = strlen(asset_web_css);
    for (size_t i = 0; i < sizeof assets / sizeof *assets; i++)
        if (!strcmp(assets[i].path, path))
            return &assets[i];
    return NULL;
}
