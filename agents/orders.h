/* The orders that the controller can send (docs/reference/agent-protocol.md). */
#pragma once

#include "control.h"
#include "flow.h"

/* Set by the order `quit`. */
extern bool orders_quit;
/* Carry out the order in a line; `whole` is false if the line was cut because it was too long. */
void orders_take(char *line, bool whole);

/* The functions of the verbs in orders-settings.c and probe.c. */
void orders_set(struct order *order);
void orders_restore(struct order *order);
void orders_probe(struct order *order);
void orders_probed(struct order *order);
/* A verb that only the agent of Windows has (facts-windows.c). */
void orders_facts(struct order *order);
