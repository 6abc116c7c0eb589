/* The orders: what the controller can ask for (docs/reference/agent-protocol.md). */
#pragma once

#include <stdbool.h>

#include "control.h"
#include "endpoint.h"
#include "start.h"

/* Set by `quit`. */
extern bool orders_quit;
/* Carry out one line; `whole` is false where it was too long and cut. */
void orders_take(char *line, bool whole);

/* The verbs `set` and `restore` (orders-settings.c). */
void orders_set(struct order *order);
void orders_restore(struct order *order);

/* orders-parse.c: what keys say; the text tells what is wrong, NULL: nothing. */
bool parse_address(const char *text, int64_t port, struct sockaddr_storage *address, socklen_t *length);
/* 32 hexadecimal digits. */
bool parse_token(const char *text, unsigned char *token);
const char *parse_settings(struct order *order, struct settings *settings, int64_t *flows, int64_t *wait_ms);
const char *parse_end(struct order *order, struct settings *settings, bool sender);
const char *parse_start(struct order *order, struct start *start);
