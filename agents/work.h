/* The kinds of work that a flow can do, each a record at the end of the file with its functions. A new kind is a file and its place in the
 * list of work.c. */
#pragma once

#include "agent.h"

struct flow;

struct work {
    const char *name;      /* the order's `test`; "" if it has none */
    const char *transport; /* "tcp" or "udp" */
    /* Make what a flow needs beside its connection, before the flow counts as open; may be NULL. Returns 0 or an errno value. */
    int (*open)(struct flow *flow);
    /* Allocate memory before the start. Returns 0 or an errno value. */
    int (*prepare)(struct flow *flow);
    /* Send or receive from the start to the end, in the flow's thread. */
    void (*send)(struct flow *flow), (*receive)(struct flow *flow);
    /* The last thing that the thread does. */
    void (*finish)(struct flow *flow);
    int64_t size_low, size_high; /* bounds of the order's `size`; 0: it has none */
    bool messages;               /* takes `iterations`; a message in transit at the end may still arrive */
    bool trips;                  /* the sender measures round trips, and can wait for a message without sleeping */
    bool disk;                   /* the bytes can be in a file */
    bool rate;                   /* the sender can keep to a rate */
    bool bins;                   /* the receiver can count bytes in bins of time */
    bool copies;                 /* the sender can do without a copy, the receiver can make one */
    bool paced;                  /* the sender sends a message every interval and writes the rows of samples itself */
    bool bursts;                 /* the receiver counts how many datagrams were lost in a row */
};

extern const struct work stream_work, pingpong_work, blast_work, file_work, udp_stream_work, udp_pingpong_work, probe_work;

/* Return the kind of that name over that transport, or NULL. */
const struct work *work_find(const char *name, const char *transport);

/* file.c. Create a file in `folder` without a name, so that it is gone when its descriptor is closed. Returns -1 with errno, EINVAL if the
 * folder is in memory. */
int file_open(const char *folder);
/* Write `size` bytes to a file, to the disk and out of the page cache; ends early once `stop` is true. Returns 0 or an errno value. */
int file_fill(int fd, int64_t size, const _Atomic bool *stop);

/* udp.c, for all kinds of datagrams. They go beside the TCP connection that opened the flow, whose end-of-file ends it. */
#define UDP_QUIET_US 50000 /* after so long without a datagram, a receiver looks for the end-of-file */
int udp_open(struct flow *flow);
/* Allocate a buffer of `bytes` and the counts, and set how long a receive call waits. Returns 0 or an errno value. */
int udp_allocate(struct flow *flow, int64_t bytes);
/* Tell whether the peer has ended. */
bool udp_has_ended(const struct flow *flow);
void udp_finish(struct flow *flow);
