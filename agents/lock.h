/* The lock of a node: one run at a time has it. Others are refused, or wait in the order in which they came. */
#pragma once

#include "agent.h"

enum lock { LOCK_HELD, LOCK_MOVED, LOCK_STAYS, LOCK_REFUSED, LOCK_FAILED };

/* Request the lock NAME for `holder`. `how` is "now", "wait", or "first": before all who wait. Returns false if it is none of these. */
bool lock_request(const char *name, const char *holder, const char *how);
/* Move up in the queue as far as possible. An agent that requested no lock has it at once. Returns LOCK_FAILED with errno. */
enum lock lock_advance(void);
/* Return how many agents in the queue are before this one; 0: it has the lock. */
int lock_place(void);
