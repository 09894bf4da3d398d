/* What the files of the doctor share. */
#ifndef SONDE_DOCTOR_INTERNAL_H
#define SONDE_DOCTOR_INTERNAL_H

#include <stdbool.h>

#include "capture/doctor.h"

/* ---- doctor_python.c: true if there is an interpreter, of which it then tells. */
bool doctor_python_file(struct doctor *d, const char *path);
bool doctor_python_process(struct doctor *d, pid_t pid);

#endif
