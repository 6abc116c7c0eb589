/* The kinds of work that a flow can do, one row of a table each. A new kind is a row in work.c and a file with its functions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct flow;

struct work {
    const char *name;      /* the order's `test`; "" where it gives none */
    const char *transport; /* "tcp" or "udp" */
    /* What both sides need before the flow counts as open; NULL: no more than its connection. 0 or an errno value. */
    int (*open)(struct flow *flow);
    /* Memory, before the start; NULL: none. 0 or an errno value. */
    int (*prepare)(struct flow *flow);
    /* What the flow's thread does from the start to the end. */
    void (*run)(struct flow *flow);
    int64_t size_low, size_high; /* bounds of the order's `size`; 0: it has none */
    bool messages;               /* takes `iterations`; a message that is on its way at the end is let through */
    bool busy;                   /* can wait for a message without sleeping */
    bool disk;                   /* its bytes can be in a file */
    bool rate;                   /* its sender can keep to a rate */
    bool bins;                   /* its receiver can count bytes in bins of time */
    bool copies;                 /* its sender can do without a copy, its receiver can make one */
    bool paced;                  /* its sender sends a message every interval and fills a row of samples for each, by itself */
    bool bursts;                 /* its receiver knows how many datagrams were lost in a row */
};

/* The kind of that name over that transport, or NULL. */
const struct work *work_find(const char *name, const char *transport);
