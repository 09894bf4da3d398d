/* A process's memory made by hand; see image.h. */
#include "image.h"

#include <string.h>

static size_t read_image(void *ctx, const struct cpython_piece *piece, size_t count)
{
    struct image *image = ctx;
    image->reads++;
    if (image->meanwhile)
        image->meanwhile(image);
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = piece[i].address - IMAGE_BASE;
        if (offset > IMAGE_SIZE || piece[i].size > IMAGE_SIZE - offset)
            return i;
        memcpy(piece[i].to, image->bytes + offset, piece[i].size);
    }
    return count;
}

void image_put(struct image *image, uint64_t address, uint64_t word)
{
    memcpy(image->bytes + (address - IMAGE_BASE), &word, sizeof(word));
}

uint64_t image_get(const struct image *image, uint64_t address)
{
    uint64_t word;
    memcpy(&word, image->bytes + (address - IMAGE_BASE), sizeof(word));
    return word;
}

static void put_byte(struct image *image, uint64_t address, uint8_t value)
{
    image->bytes[address - IMAGE_BASE] = value;
}

void image_init(struct image *image, unsigned minor)
{
    memset(image, 0, sizeof(*image));
    image->memory = (struct cpython_memory){.read = read_image, .ctx = image};
    struct cpython *py = &image->py;
    py->major = 3;
    py->minor = (uint8_t)minor;
    py->layout = *layout_find(minor, 0);
    py->interpreters = IMAGE_RUNTIME;
    py->current = minor < 12 ? IMAGE_RUNTIME + 8 : 0;
    py->frame_type = IMAGE_FRAME_TYPE;
    image_fill(image);
}

void image_fill(struct image *image)
{
    const struct layout *l = &image->py.layout;
    image_put(image, image->py.interpreters, IMAGE_INTERP);
    image_put(image, IMAGE_INTERP + l->interp_threads, IMAGE_THREAD);
    image_put(image, IMAGE_THREAD + l->thread_interp, IMAGE_INTERP);
    if (l->cframe_frame != LAYOUT_ABSENT)
        image_put(image, IMAGE_THREAD + l->thread_frame, IMAGE_CFRAME);
    if (l->thread_chunk != LAYOUT_ABSENT) {
        image_put(image, IMAGE_THREAD + l->thread_chunk, IMAGE_CHUNK);
        image_put(image, IMAGE_THREAD + l->thread_top, IMAGE_CHUNK + 0x2000);
        image_put(image, IMAGE_CHUNK + l->chunk_size, 16384);
    }
}

uint64_t image_frame_at(unsigned i)
{
    return IMAGE_CHUNK + 0x100 + 0x80 * (uint64_t)i;
}

void image_frame(struct image *image, unsigned i, uint64_t back)
{
    const struct layout *l = &image->py.layout;
    uint64_t at = image_frame_at(i), code = IMAGE_CODE + 0x100 * (uint64_t)i;
    if (l->frame_type != LAYOUT_ABSENT)
        image_put(image, at + l->frame_type, IMAGE_FRAME_TYPE);
    image_put(image, at + l->frame_back, back);
    image_put(image, at + l->frame_code, code);
    if (l->frame_instr != LAYOUT_ABSENT)
        image_put(image, at + l->frame_instr, code + l->code_units + 2 * i);
    else
        image_put(image, at + l->frame_lasti, 2 * i);
    if (l->frame_owner != LAYOUT_ABSENT)
        put_byte(image, at + l->frame_owner, 0);
    if (l->frame_entry != LAYOUT_ABSENT)
        put_byte(image, at + l->frame_entry, 0);
}

void image_outermost(struct image *image, unsigned i)
{
    const struct layout *l = &image->py.layout;
    image_frame(image, i, 0);
    if (l->entry == LAYOUT_ENTRY_FLAG)
        put_byte(image, image_frame_at(i) + l->frame_entry, 1);
    if (l->entry == LAYOUT_ENTRY_SHIM) {
        image_shim(image, IMAGE_LAST_SHIM, 0);
        image_frame(image, i, image_frame_at(IMAGE_LAST_SHIM));
    }
}

void image_shim(struct image *image, unsigned i, uint64_t back)
{
    image_frame(image, i, back);
    put_byte(image, image_frame_at(i) + image->py.layout.frame_owner, 3);
}

/* A str of one byte a character; ASCII or not. */
static void put_text(struct image *image, uint64_t at, const char *text, bool ascii)
{
    const struct layout *l = &image->py.layout;
    image_put(image, at + LAYOUT_TEXT_LENGTH, strlen(text));
    image_put(image, at + LAYOUT_TEXT_STATE, 1u << 2 | 1u << 5 | (ascii ? 1u << 6 : 0));
    memcpy(image->bytes + (at + (ascii ? l->text_ascii : l->text_compact) - IMAGE_BASE), text,
           strlen(text));
}

void image_code(struct image *image, unsigned i)
{
    const struct layout *l = &image->py.layout;
    uint64_t at = IMAGE_CODE + 0x100 * (uint64_t)i;
    put_text(image, IMAGE_NAME, "nam\xe9", false);
    put_text(image, IMAGE_FILE, "f.py", true);
    image_put(image, IMAGE_TABLE + LAYOUT_SIZE, 4);
    image_put(image, IMAGE_TABLE + LAYOUT_BYTES, 0x00ff00ff);
    image_put(image, at + LAYOUT_TYPE, IMAGE_FRAME_TYPE);
    image_put(image, at + l->code_first, 7);
    image_put(image, at + l->code_name, IMAGE_NAME);
    image_put(image, at + l->code_filename, IMAGE_FILE);
    image_put(image, at + l->code_table, IMAGE_TABLE);
    if (l->code_qualname != LAYOUT_ABSENT)
        image_put(image, at + l->code_qualname, IMAGE_NAME);
}

static uint64_t top_word(const struct image *image)
{
    const struct layout *l = &image->py.layout;
    return l->cframe_frame == LAYOUT_ABSENT ? IMAGE_THREAD + l->thread_frame
                                            : IMAGE_CFRAME + l->cframe_frame;
}

void image_top(struct image *image, unsigned i)
{
    image_put(image, top_word(image), image_frame_at(i));
}

void image_leave(struct image *image)
{
    image_put(image, top_word(image), 0);
}
