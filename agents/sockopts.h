/* The settings of sockets that an order can name, one row of a table each (sockopts.c): asked for, applied, read back, reported. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SOCKOPTS_MAX 16
#define SOCKOPT_NAME 16 /* bytes of a name, its NUL included */

struct order;

/* A value for each row of the table. */
struct sockopts {
    struct {
        int64_t number;          /* -1: not asked for, or not known */
        char name[SOCKOPT_NAME]; /* "": likewise */
    } values[SOCKOPTS_MAX];
};

void sockopts_unknown(struct sockopts *values);
/* What `listen` or `connect` asks for. Returns what is wrong with the order, or NULL. */
const char *sockopts_parse(struct order *order, struct sockopts *asked);
/* Of that, the window; -1: not asked for. */
int64_t sockopts_window(const struct sockopts *asked);
/* Whether packets are to have a mark: then those that arrive are counted by theirs. */
bool sockopts_marked(const struct sockopts *asked);
/* Set on a socket what was asked for; of a UDP socket (`tcp` false) what is not TCP's. Returns the option that the kernel refused, with
 * errno, or NULL. */
const char *sockopts_apply(int fd, int family, bool tcp, const struct sockopts *asked);
/* Read back every option; of a UDP socket (`tcp` false) those that are not TCP's. */
void sockopts_read(int fd, struct sockopts *effective, bool tcp);
/* Add what was read back to the line of a flow's totals. */
void sockopts_report(const struct sockopts *effective);
