/* What happens to the agent in a child. */
#ifndef SONDE_AGENT_FORK_H
#define SONDE_AGENT_FORK_H

#include <stdbool.h>

bool fork_init(void); /* registers with pthread_atfork */

/* If this is a child that pthread_atfork did not tell of (clone, _Fork), takes it up now. Cheap
 * otherwise. Not for handlers. */
void fork_notice(void);

#endif
