/* One run at a time has a node; others are refused, or wait in the order in which they came. */
#pragma once

#include <stdbool.h>

enum lock { LOCK_HELD, LOCK_MOVED, LOCK_STAYS, LOCK_FAILED };

/* Ask for the lock NAME in the name of `holder`. `how`: "now", "wait", or "first": before all who wait. False: it is none of these. */
bool lock_ask(const char *name, const char *holder, const char *how);
/* Move up in the queue as far as it is free. An agent that asked for no lock has it at once. LOCK_FAILED with errno. */
enum lock lock_advance(void);
/* How many places are before ours in the queue; 0: we have the lock. */
int lock_place(void);
/* Whether this agent waits for its turn. */
bool lock_waits(void);
