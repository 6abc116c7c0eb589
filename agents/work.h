/* A kind of work, such as a stream or a ping-pong, is what a flow does: a record of functions in a file of its own, listed in work.c. */
#pragma once

#include "agent.h"

struct flow;

struct work {
    const char *name;      /* value of the order's key `test`; "": the key is absent */
    const char *transport; /* transport of the kind: "tcp" or "udp" */
    /* Prepare what a flow needs besides its connection, before the flow counts as open; NULL: nothing. `*reserved` is a socket of the
     * receiver that its flows share: it holds their port for datagrams, or listens for connections. Returns 0 or an errno value. */
    int (*open)(struct flow *flow, int *reserved);
    /* Allocate memory before the start. Returns 0 or an errno value. */
    int (*prepare)(struct flow *flow);
    /* Send or receive from start to end, in the flow's thread. */
    void (*send)(struct flow *flow), (*receive)(struct flow *flow);
    /* Called last by the flow's thread. */
    void (*finish)(struct flow *flow);
    int64_t size_low, size_high; /* bounds of the order's key `size`; 0: the kind has no size */
    /* Add the key with the kind's own counts (`flow->counts`) to the report's line; NULL: it has none. */
    void (*report)(const struct flow *flow);
    /* Free what `open` made besides the flow's socket and counts, of a flow that may not have run; NULL: nothing. */
    void (*release)(struct flow *flow);
    bool messages;               /* the kind takes the key `iterations`; after the end of the test, a message in transit may still arrive */
    bool trips;                  /* the sender measures round trips, and can wait for messages without sleeping */
    bool disk;                   /* the flow can read and write files instead of memory */
    bool rate;                   /* the sender can limit its rate */
    bool bins;                   /* the receiver can count bytes in bins */
    bool copies;                 /* the kind takes the keys for sending without a copy and for copying what is received */
    bool paced;                  /* the sender sends a message per interval and writes the rows of samples itself */
    bool connects;               /* the sender opens further connections, one after the other, to a listening socket of the receiver */
    bool scheduled;              /* the sender begins messages at given times, whether or not earlier ones were answered (requests.c) */
    bool bursts;                 /* the receiver counts consecutive lost datagrams */
    bool by_burst;               /* the sender sends `length` datagrams at once per interval; both ends write a row per burst */
    bool multicast;              /* datagrams are sent once, to a group that receivers join (multicast.h) */
};

extern const struct work stream_work, pingpong_work, blast_work, file_work, connect_work, requests_work, udp_stream_work, udp_pingpong_work,
    probe_work, burst_work, multicast_work;

/* Return the kind with this name over this transport, or NULL. */
const struct work *work_find(const char *name, const char *transport);

static inline bool work_has_datagrams(const struct work *work)
{
    return strcmp(work->transport, "udp") == 0;
}

/* file.c: make a file in `folder` that disappears when closed. Returns a descriptor, or -1 with errno; EINVAL: the folder is in memory. */
int file_open(const char *folder, bool sender);
/* Write `size` bytes to a file, to the disk and out of the page cache; stop early once `stop` is true. Returns 0 or an errno value. */
int file_fill(int fd, int64_t size, const _Atomic bool *stop);

/* udp.c, for all kinds of datagrams. A flow keeps the TCP connection that opened it; the end-of-file of this connection ends the flow. */
#define UDP_QUIET_US 50000 /* time without a datagram after which a receiver checks for the end-of-file */
int udp_open(struct flow *flow, int *reserved);
/* Set the requested options and the buffer sizes of a flow's socket. Returns 0 or an errno value. */
int udp_set_options(struct flow *flow);
/* Make a socket for datagrams on an address and a port that no other socket has. Returns it, or -1 with errno. */
int udp_reserve(const struct sockaddr_storage *address);
/* Let further sockets of this user, and of nobody else, have the same port. Returns 0, or -1 with errno. */
int udp_share(int fd);
/* Allocate a buffer of `bytes` bytes and the counts, and set the timeout of receive calls. Returns 0 or an errno value. */
int udp_allocate(struct flow *flow, int64_t bytes);
/* Tell whether the peer has ended the flow. */
bool udp_has_ended(const struct flow *flow);
void udp_finish(struct flow *flow);
/* udp-stream.c, for streams to one receiver and to a group. */
int udp_stream_prepare(struct flow *flow);
void udp_stream_send(struct flow *flow);
void udp_stream_receive(struct flow *flow);
