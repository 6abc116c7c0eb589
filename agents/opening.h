/* The opening of data connections: who brings the token is let in (docs/reference/agent-protocol.md). */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct endpoint;
struct openings;

/* Connections of a sender that are being made: their openings are sent as they come to be. */
void opening_begin(struct endpoint *endpoint);
/* The sockets to be polled, at most `room`; how many. */
int opening_polls(const struct endpoint *endpoint, struct pollfd *polls, int room);
/* `polls` tells which of them have news. */
void opening_serve(struct endpoint *endpoint, const struct pollfd *polls, int count);
void opening_expire(struct endpoint *endpoint, int64_t now);
int64_t opening_deadline(const struct endpoint *endpoint, int64_t now);
/* Let nobody more in. */
void opening_stop(struct openings *openings);
/* All flows and files are there: answer who waits for it. */
void opening_finish(struct endpoint *endpoint);
/* Flow `number` could not be opened, or its file not be made. */
void opening_fail(struct endpoint *endpoint, int number, const char *where, int error);
/* Whether the 20 bytes open flow `*number` of an endpoint with this token and as many flows. */
bool opening_valid(const unsigned char *bytes, const unsigned char *token, int flows, int *number);
