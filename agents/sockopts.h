/* Socket settings, one row of a table each (sockopts.c): requested by an order, applied, read back and reported. */
#pragma once

#include "agent.h"

#define SOCKOPTS_MAX 16
#define SOCKOPT_NAME 16 /* bytes of a name, its NUL included */

struct order;

/* The values of the rows. */
struct sockopts {
    struct {
        int64_t number;          /* -1: not requested, or unknown */
        char name[SOCKOPT_NAME]; /* "": not requested, or unknown */
    } values[SOCKOPTS_MAX];
};

void sockopts_clear(struct sockopts *values);
/* Read what `listen` or `connect` requests. Returns what is wrong with the order, or NULL. */
const char *sockopts_parse(struct order *order, struct sockopts *asked);
/* Return the number requested for `key`, or -1. */
int64_t sockopts_number(const struct sockopts *asked, const char *key);
/* Apply the requested settings to a socket, to a UDP socket (`tcp` false) without those of TCP. Call it before listen or connect, so that
 * they hold from the first segment on. Returns the option that the kernel refused, with errno, or NULL. */
const char *sockopts_apply(int fd, int family, bool tcp, const struct sockopts *asked);
/* Read back every option, from a UDP socket (`tcp` false) without those of TCP. */
void sockopts_read(int fd, struct sockopts *effective, bool tcp);
/* Add what was read back to the line with a flow's totals. */
void sockopts_report(const struct sockopts *effective);
