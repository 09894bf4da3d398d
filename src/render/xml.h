/* Text from outside as XML or HTML character data: for element content and quoted attributes. */
#ifndef SONDE_XML_H
#define SONDE_XML_H

#include "base/text.h"

/* Markup is escaped; line ends and tabs become spaces; what else XML 1.0 does not allow (controls,
 * malformed UTF-8, surrogates, U+FFFE and U+FFFF) becomes U+FFFD, so that the result is well-formed
 * whatever the bytes. */
void xml_escape(struct text *out, const char *s);
/* The code point at `s` and its length in *len (at least 1); U+FFFD for what is not UTF-8 or not
 * allowed in XML. `s` must not be at its end. */
uint32_t xml_decode(const char *s, size_t *len);

#endif
