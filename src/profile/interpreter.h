/*
 * Stacks without the interpreter's ways of calling: between two Python frames stand functions of
 * CPython that only lead from one to the other ("_PyObject_Vectorcall", "call_function"). They are
 * recorded, and hidden unless asked for.
 */
#ifndef SONDE_INTERPRETER_H
#define SONDE_INTERPRETER_H

#include "profile/profile.h"

/* What a stack with Python in it calls through such a function, the function's caller calls. What
 * such a function did itself stays with it. */
void profile_hide_interpreter(struct profile *p);

/* Does a function, by its name and its module's, only lead from one Python frame to the next? */
enum interpreter_way {
    WAY_NONE,
    WAY_IN_PYTHON, /* under a Python frame; elsewhere it is part of what runs */
    WAY_ANYWHERE,
};
enum interpreter_way interpreter_way(const char *name, const char *module);

#endif
