/* The orders: what the controller can ask for (docs/reference/agent-protocol.md). */
#pragma once

#include <stdbool.h>

#include "control.h"
#include "flow.h"

/* Set by `quit`. */
extern bool orders_quit;
/* Carry out one line; `whole` is false if it was too long and cut. */
void orders_take(char *line, bool whole);

/* orders-settings.c and probe.c: their verbs. */
void orders_set(struct order *order);
void orders_restore(struct order *order);
void orders_probe(struct order *order);
void orders_probed(struct order *order);

/* Read `address` and `token`, and with `bind` also that. Returns what is wrong, or NULL. */
const char *orders_parse_path(struct order *order, int64_t port, bool bind, struct settings *settings);
