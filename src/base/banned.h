/*
 * Functions nobody here may call, because their misuse is a memory error or a
 * silent wrong answer. Included before every source by the build; a call then
 * fails to compile. Use text.h, snprintf, strtol and friends in their place.
 */
#ifndef SONDE_BANNED_H
#define SONDE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf gets strtok atoi atol atoll atof
#pragma GCC poison mktemp tmpnam tempnam asctime ctime gmtime localtime

#endif
