#include "symbol/dwarf_bytes.h"

#include <gelf.h>

static bool is_named(const char *name, const char *section, bool split)
{
    if (strncmp(name, ".debug_", 7) == 0)
        name += 7;
    else if (strncmp(name, ".zdebug_", 8) == 0)
        name += 8;
    else
        return false;
    size_t len = strlen(section);
    return strncmp(name, section, len) == 0 && strcmp(name + len, split ? ".dwo" : "") == 0;
}

void dwarf_sections_find(Dwarf *dwarf, bool split, struct dwarf_sections *out)
{
    struct bytes *const to[] = {&out->info, &out->abbrev, &out->line, &out->line_str, &out->str};
    static const char *const section[] = {"info", "abbrev", "line", "line_str", "str"};
    Elf *elf = dwarf ? dwarf_getelf(dwarf) : NULL;
    size_t strings;
    *out = (struct dwarf_sections){0};
    if (!elf || elf_getshdrstrndx(elf, &strings) != 0)
        return;
    for (Elf_Scn *s = elf_nextscn(elf, NULL); s; s = elf_nextscn(elf, s)) {
        GElf_Shdr header;
        const char *name;
        if (!gelf_getshdr(s, &header) || !(name = elf_strptr(elf, strings, header.sh_name)))
            continue;
        for (size_t i = 0; i < sizeof section / sizeof *section; i++) {
            Elf_Data *data = is_named(name, section[i], split) ? elf_rawdata(s, NULL) : NULL;
            if (data && data->d_buf && !to[i]->at)
                *to[i] = (struct bytes){data->d_buf, (const uint8_t *)data->d_buf + data->d_size};
        }
    }
}
