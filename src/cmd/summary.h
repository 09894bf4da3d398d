/* The report's first screen, shown where a recording has just been made. */
#ifndef SONDE_SUMMARY_H
#define SONDE_SUMMARY_H

/* Prints it on descriptor `fd` in its width and colours. Says nothing if the recording cannot be
 * read: the caller has told where it is. */
void summary_print(const char *recording, int fd);

#endif
