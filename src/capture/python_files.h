/* Python by the names of its files: what tells an interpreter before anything of it was read. */
#ifndef SONDE_PYTHON_FILES_H
#define SONDE_PYTHON_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include "capture/module.h"
#include "capture/space.h"

/* "python3.11", "libpython3.11.so.1.0", with or without a folder. */
bool python_files_is_one(const char *path);

/* Whether a process that runs already has one mapped. */
bool python_files_likely(pid_t pid);

/* Those that the process has mapped now, where the kernel's word of them may not have come yet;
 * NULL if it runs none. With `build_ids` modules are told apart by these, as in the kernel's word.
 */
struct space *python_files_mapped(struct modules *all, pid_t pid, bool build_ids);

#endif
