/* Character data that no name can break out of; see xml.h. */
#include "render/xml.h"

#define REPLACEMENT 0xfffdu

static bool allowed(uint32_t c)
{
    return c >= 0x20 && c != 0x7f && !(c >= 0x80 && c < 0xa0) && !(c >= 0xd800 && c < 0xe000) &&
           c < 0x110000 && (c & 0xfffe) != 0xfffe;
}

uint32_t xml_decode(const char *s, size_t *len)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t more = u[0] < 0x80 ? 0 : u[0] < 0xc2 ? 4 : u[0] < 0xe0 ? 1 : u[0] < 0xf0 ? 2 : 3;
    *len = 1;
    if (more == 4 || u[0] > 0xf4)
        return REPLACEMENT;
    static const unsigned char mask[] = {0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = u[0] & mask[more];
    for (size_t i = 1; i <= more; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return REPLACEMENT;
        c = c << 6 | (u[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (c < least[more])
        return REPLACEMENT;
    *len = more + 1;
    return allowed(c) ? c : REPLACEMENT;
}

void xml_escape(struct text *out, const char *s)
{
    for (size_t len; *s; s += len) {
        uint32_t c = xml_decode(s, &len);
        if (*s == '\n' || *s == '\t' || *s == '\r')
            text_add_char(out, ' ');
        else if (c == '<')
            text_add(out, "&lt;");
        else if (c == '>')
            text_add(out, "&gt;");
        else if (c == '&')
            text_add(out, "&amp;");
        else if (c == '"')
            text_add(out, "&quot;");
        else if (c == '\'')
            text_add(out, "&#39;");
        else if (c == REPLACEMENT)
            text_add(out, "\xef\xbf\xbd");
        else
            text_add_len(out, s, len);
    }
}
