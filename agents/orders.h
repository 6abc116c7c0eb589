/* The orders that the controller can give (docs/reference/agent-protocol.md). */
#pragma once

#include "control.h"
#include "flow.h"

/* True after the order `quit`. */
extern bool orders_quit;
/* Carry out one line; `whole` is false if the line was too long and was cut. */
void orders_take(char *line, bool whole);

/* The verbs of orders-settings.c and probe.c. */
void orders_set(struct order *order);
void orders_restore(struct order *order);
void orders_probe(struct order *order);
void orders_probed(struct order *order);
