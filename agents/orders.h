/* The orders: what the controller can ask for (docs/agent-protocol.md). */
#ifndef RIGCTL_ORDERS_H
#define RIGCTL_ORDERS_H

#include <stdbool.h>

/* Set by `quit`. */
extern bool orders_quit;
/* Carry out one line; `whole` is false where it was too long and cut. */
void orders_take(char *line, bool whole);

struct order;
/* The verbs `set` and `restore` (orders-settings.c). */
void orders_set(struct order *order);
void orders_restore(struct order *order);

#endif
