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

/* Is it, by its name, a function that only leads from one Python frame to the next? */
bool interpreter_leads(const char *name);

#endif
