/* The files of the fuzz targets' corpora, one after the other. */
#ifndef SONDE_TEST_CORPUS_H
#define SONDE_TEST_CORPUS_H

#include <stddef.h>
#include <stdint.h>

typedef void corpus_visit(const void *context, const char *name, const uint8_t *file, size_t len);

/* Fails if the folder has none. */
void corpus_each(const char *folder, corpus_visit *visit, const void *context);

#endif
