/* The limit on addresses that the program has set, around an exec; see limit_hooks.c. */
#ifndef SONDE_AGENT_LIMIT_HOOKS_H
#define SONDE_AGENT_LIMIT_HOOKS_H

/* As the program meant it; then, if there is no new program, with room for the agent again. Also
 * in vfork's child. */
void limits_give_back(void);
void limits_take_again(void);

#endif
