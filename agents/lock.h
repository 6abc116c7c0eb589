/* The lock of a node, which one run at a time has. Other runs are refused, or wait in the order of their arrival. */
#pragma once

#include "agent.h"

enum lock { LOCK_HELD, LOCK_MOVED, LOCK_STAYS, LOCK_REFUSED, LOCK_FAILED };

/* Request the lock NAME for `holder`. `how` is "now", "wait", or "first" (ahead of all that wait). Returns false for any other text. */
bool lock_request(const char *name, const char *holder, const char *how);
/* Move up in the queue as far as possible. An agent that requested no lock succeeds at once. Returns LOCK_FAILED with errno on failure. */
enum lock lock_advance(void);
/* Return the number of agents ahead in the queue; 0: this agent has the lock. */
int lock_place(void);
