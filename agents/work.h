/* The kinds of work that a flow can do, one row of a table each (work.c). A new kind is a row there and a file with its functions. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct flow;

struct work {
    const char *name;      /* the order's `test`; "" where it gives none */
    const char *transport; /* "tcp" or "udp" */
    /* Make what a flow needs beside its connection before it counts as open. NULL: nothing. 0 or an errno value. */
    int (*open)(struct flow *flow);
    /* Allocate memory before the start. 0 or an errno value. */
    int (*prepare)(struct flow *flow);
    /* What the thread of a sender or receiver does from the start to the end. */
    void (*send)(struct flow *flow), (*receive)(struct flow *flow);
    /* What the thread does last. */
    void (*finish)(struct flow *flow);
    int64_t size_low, size_high; /* bounds of the order's `size`; 0: it has none */
    bool messages;               /* takes `iterations`; a message in transit at the end may still arrive */
    bool trips;                  /* its sender measures round trips, and can wait for a message without sleeping */
    bool disk;                   /* its bytes can be in a file */
    bool rate;                   /* its sender can keep to a rate */
    bool bins;                   /* its receiver can count bytes in bins of time */
    bool copies;                 /* its sender can do without a copy, its receiver can make one */
    bool paced;                  /* its sender sends a message every interval and writes the rows of samples itself */
    bool bursts;                 /* its receiver knows how many datagrams were lost in a row */
};

/* Return the kind of that name over that transport, or NULL. */
const struct work *work_find(const char *name, const char *transport);

/* stream.c: as many bytes as possible over TCP. */
int stream_prepare(struct flow *flow);
void stream_send(struct flow *flow);
void stream_receive(struct flow *flow);
void stream_finish(struct flow *flow);

/* flow.c: read the totals and end the connection, after messages or a file. */
void flow_end(struct flow *flow);

/* messages.c: ping-pong and blast over TCP. */
#define MESSAGE_MAX (16 << 20)
int messages_prepare(struct flow *flow);
void messages_ping(struct flow *flow);
void messages_pong(struct flow *flow);
void messages_blast(struct flow *flow);
void messages_swallow(struct flow *flow);

/* file.c: disk → network → disk. */
#define FILE_MAX (INT64_C(1) << 40)
int file_prepare(struct flow *flow);
void file_send(struct flow *flow);
void file_receive(struct flow *flow);
/* Create a file in `folder` that has no name, so that it goes with its descriptor. -1 with errno; EINVAL if the folder is in memory. */
int file_open(const char *folder);
/* Write `size` bytes to it, to the disk and out of the page cache; ends early once `stop` is true. 0 or an errno value. */
int file_fill(int fd, int64_t size, const _Atomic bool *stop);

/* udp.c and udp-stream.c: datagrams, beside the TCP connection that opened the flow and whose end-of-file ends it. */
int udp_open(struct flow *flow);
int udp_prepare(struct flow *flow);
void udp_ping(struct flow *flow);
void udp_pong(struct flow *flow);
void udp_probe(struct flow *flow);
void udp_finish(struct flow *flow);
int udp_stream_prepare(struct flow *flow);
void udp_stream_send(struct flow *flow);
void udp_stream_receive(struct flow *flow);
#define UDP_QUIET_US 50000 /* a receiver looks for the end-of-file when nothing came for this long */
/* Allocate a buffer of `bytes` and the counts, and set how long a receive call waits. 0 or an errno value. */
int udp_allocate(struct flow *flow, int64_t bytes);
/* Tell whether the peer has ended. */
bool udp_ended(const struct flow *flow);
