/* A flow: one connection and the thread that moves its bytes. The thread only moves and counts; the main loop samples.
 * What the thread does is the business of its kind of work (work.h), of which this file knows none. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "datagrams.h"
#include "histogram.h"
#include "placement.h"
#include "sample.h"
#include "work.h"

#define COLUMNS_RECEIVER 2   /* t_ns bytes */
#define COLUMNS_PROBE 3      /* t_ns answered rtt_ns */
#define COLUMNS_SUBFLOWS 3   /* t_ns bytes retransmits: of several subflows the rest differs */
#define COLUMNS_SENDER 6     /* t_ns bytes retransmits rtt_us cwnd mss … */
#define COLUMNS_ADVERTISED 7 /* … advertised_window, where the kernel says it */
#define ACKNOWLEDGED 0x06    /* a receiver's one byte: it has everything */
#define DRAIN_S 10           /* how long a sender waits for its receiver to end */

/* What a kind of work keeps of its own, in structs by what they are about. */
struct flow_message {
    int64_t size, iterations;
    bool busy;               /* does not sleep while it waits for a message */
    struct histogram *trips; /* of a ping-pong's sender; NULL: none */
};

struct flow_file {
    int fd;                   /* what is read or written; -1: memory */
    int64_t disk_ns, sync_ns; /* in read(2) or write(2) of it; until it was safe on the disk; -1: no disk */
};

struct flow_datagram {
    int fd; /* -1: its bytes go over the connection */
    uint64_t tag;
    int64_t burst; /* most datagrams that a late sender makes up for at once; 0: those of BURST_NS (udp-stream.c) */
    struct datagrams *counts;
};

/* The window that a TCP receiver may advertise. */
struct flow_window {
    int64_t bytes;  /* as asked for; -1: as the kernel likes */
    int64_t unheld; /* bytes to be taken until it is held to that */
};

/* Whether a stream's bytes are copied between the program and the kernel, as asked for and as it was. */
struct flow_copying {
    bool zerocopy; /* of a sender: MSG_ZEROCOPY */
    bool copy;     /* of a receiver: into its memory, not discarded within the kernel */
    int64_t sends, pending, uncopied; /* of a sender: in all, without the kernel's word yet, really without a copy */
};

/* A receiver's bytes by the time it took them, from the start on. */
struct flow_bins {
    uint32_t *bytes; /* NULL: not asked for */
    int64_t width_ns, room;
};

/* The main loop's own. */
struct flow_samples {
    bool advertised; /* the kernel says the window that the peer advertises */
    bool multipath;  /* there may be several subflows … */
    bool counted;    /* … whose retransmits the kernel says */
    int64_t *rows;
    int count, room;
};

struct flow {
    int fd;     /* -1: none yet */
    int family; /* of its addresses: AF_INET or AF_INET6 */
    int number; /* 0 … flows-1 */
    bool sender;
    const struct work *work;
    struct {
        pthread_t thread;
        bool running; /* it was started and not joined yet */
        int wake;     /* eventfd that tells the main loop of the end */
    } life;
    struct {
        int64_t at_ns, bulk_ns, end_ns, interval_ns;
    } time;
    int64_t rate; /* of a stream, payload bit/s; 0: as fast as it can */
    unsigned char *buffer;
    struct flow_message message;
    const struct placement *placement;
    struct places places;
    struct flow_file file;
    struct flow_datagram datagram;
    struct flow_window window;
    const struct sockopts *asked; /* of its sockets */
    struct marks *marks;          /* of packets that arrived; NULL: not asked for */
    struct multipath *multipath;  /* NULL: not asked for */
    struct flow_copying copying;
    struct flow_bins bins;
    struct flow_samples samples;
    _Atomic int64_t bytes;
    _Atomic bool stopping; /* its time is over, or it was stopped */
    _Atomic bool stopped;  /* by an order, or because another flow broke */
    _Atomic bool ended;
    /* Written by the thread before `ended`, read by the main loop after it. */
    int64_t first_byte_ns, last_byte_ns; /* 0: no byte moved */
    struct {
        int error; /* errno, 0: none */
        const char *where;
    } failure;
    struct tcp_totals totals;
};

static inline int flow_columns(const struct flow *flow)
{
    if (flow->sender && flow->work->paced)
        return COLUMNS_PROBE;
    if (!flow->sender || flow->datagram.fd >= 0)
        return COLUMNS_RECEIVER;
    if (flow->samples.multipath)
        return flow->samples.counted ? COLUMNS_SUBFLOWS : COLUMNS_RECEIVER;
    return flow->samples.advertised ? COLUMNS_ADVERTISED : COLUMNS_SENDER;
}

static inline void flow_bin(struct flow *flow, int64_t now, int64_t bytes)
{
    int64_t bin = flow->bins.bytes == NULL ? -1 : (now - flow->time.at_ns) / flow->bins.width_ns;

    if (bin >= 0 && bin < flow->bins.room)
        flow->bins.bytes[bin] += (uint32_t)bytes;
}

static inline bool flow_stopping(const struct flow *flow)
{
    return atomic_load_explicit(&flow->stopping, memory_order_relaxed);
}

static inline void flow_count(struct flow *flow, int64_t bytes)
{
    atomic_fetch_add_explicit(&flow->bytes, bytes, memory_order_relaxed);
}

/* For the thread, whenever it moved bytes over `fd`: note where it runs, and follow its packets if that was asked for. */
void flow_moved(struct flow *flow, int fd);
/* A new one that has no connection yet. */
void flow_init(struct flow *flow, int number, bool sender, int wake);
/* Close and free everything; the thread must have ended or never have been started. */
void flow_free(struct flow *flow);
/* Start the thread of a connected flow. Returns 0 or an errno value. */
int flow_start(struct flow *flow);
/* Make a running flow end soon, even one that is blocked. */
void flow_stop(struct flow *flow);
/* One row of samples, where there is room. */
void flow_sample(struct flow *flow, int64_t now);
/* Whether its sender still waits for acknowledgements that do not come: it sent again `MANY_TIMEOUTS` times in a row. */
bool flow_unacknowledged(const struct flow *flow);

/* For the thread. It broke; the first error stays. */
void flow_fail(struct flow *flow, const char *where, int error);
/* A call failed while bytes moved: an error, unless the flow was stopping anyway and the call was cut off by that. */
void flow_broke(struct flow *flow, const char *where, int error);
/* Sleep until the instant `at`, or until the flow stops. */
void flow_sleep_until(const struct flow *flow, int64_t at);
/* Take bytes off its connection without copying them (tcp(7), MSG_TRUNC); as recv(2). */
ssize_t flow_discard(struct flow *flow, size_t bytes);
/* A receiver took `got` bytes off its connection: note when, in which bin, and hold the window. The caller counts them. */
void flow_took(struct flow *flow, int64_t got);
/* Keep the window that is advertised at the one asked for. */
void flow_hold_window(struct flow *flow, int64_t got);
/* The end of a flow of datagrams or of a stream: tell the peer, and as a sender wait until it has ended too. */
void flow_finish(struct flow *flow);
/* The end of a sender whose receiver acknowledges the last byte; its time ends with that. */
void flow_await_acknowledgement(struct flow *flow);
