/* Socket settings, each a row of a table (sockopts.c): requested by an order, applied, read back and reported. */
#pragma once

#include "agent.h"

#define SOCKOPTS_MAX 16
#define SOCKOPT_NAME 16 /* most bytes of a name, NUL included */

struct order;

/* A value for each row of the table in sockopts.c. */
struct sockopts {
    struct {
        int64_t number;          /* value of a numeric setting; -1: not requested or unknown */
        char name[SOCKOPT_NAME]; /* value of a named setting; "": not requested or unknown */
    } values[SOCKOPTS_MAX];
};

void sockopts_clear(struct sockopts *values);
/* Read the socket settings of an order `listen` or `connect`. Returns NULL, or what is wrong with the order. */
const char *sockopts_parse(struct order *order, struct sockopts *asked);
/* Return the number requested for `key`, or -1. */
int64_t sockopts_number(const struct sockopts *asked, const char *key);
/* Apply the requested settings to a socket, without the TCP settings if `tcp` is false. Returns NULL, or the refused option with errno. */
const char *sockopts_apply(int fd, int family, bool tcp, const struct sockopts *asked);
/* Set SO_SNDBUF or SO_RCVBUF. FreeBSD refuses sizes above kern.ipc.maxsockbuf, so ask for half until the system grants a size that is not
 * below `least`. Returns 0, or -1 with errno; then the buffer is unchanged. */
int sockopts_set_buffer(int fd, int option, int bytes, int least);
/* Enlarge a buffer to `bytes`, or to as much as the system grants. */
void sockopts_enlarge_buffer(int fd, int option, int bytes);
/* Read back every option; from a UDP socket (`tcp` false) without the TCP options. */
void sockopts_read(int fd, struct sockopts *effective, bool tcp);
/* Make the value of `key` unknown. */
void sockopts_forget(struct sockopts *values, const char *key);
/* Add the effective settings, as read back, to the line with a flow's totals. */
void sockopts_report(const struct sockopts *effective);
