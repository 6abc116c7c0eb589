/* A flow: one connection and the thread that moves its bytes. The thread only moves and counts; the main loop samples. */
#ifndef RIGCTL_FLOW_H
#define RIGCTL_FLOW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "datagrams.h"
#include "histogram.h"
#include "sample.h"

#define COLUMNS_RECEIVER 2 /* t_ns bytes */
#define COLUMNS_SENDER 6   /* t_ns bytes retransmits rtt_us cwnd mss … */
#define COLUMNS_OFFERED 7  /* … peer_window, where the kernel says it */

enum work { STREAM, PINGPONG, BLAST, PUT };

struct flow {
    int fd;      /* -1: none yet */
    int datagram_fd; /* of a UDP flow; -1: its bytes go over `fd` */
    int number;  /* 0 … flows-1 */
    bool sender;
    bool running; /* its thread was started and not joined yet */
    pthread_t thread;
    int wake;       /* eventfd that tells the main loop of the end */
    int64_t at_ns, bulk_ns, end_ns;
    enum work work;
    int64_t message_bytes, iterations; /* of PINGPONG and BLAST; the bytes of a file */
    int file_fd;                       /* of PUT: what is read or written; -1: memory */
    int64_t disk_ns, sync_ns;          /* in read(2) or write(2) of it; until it was safe on the disk; -1: no disk */
    bool busy;                         /* does not sleep while it waits for a message */
    int window;                        /* what a TCP receiver may offer; <= 0: as the kernel likes */
    int64_t unheld;                    /* bytes until it is held to that */
    int64_t rate;                      /* of a stream of datagrams, payload bit/s; 0: as fast as it can */
    unsigned char *buffer;
    struct histogram *histogram; /* of a sender's round trips; NULL: it makes none */
    struct datagrams *datagrams; /* of a UDP flow */
    _Atomic int64_t bytes;
    _Atomic bool stopping; /* its time is over, or it was told to stop */
    _Atomic bool ended;
    /* Written by the thread before `ended`, read by the main loop after it. */
    int64_t first_byte_ns, last_byte_ns; /* 0: no byte moved */
    int error; /* errno, 0: none */
    const char *where;
    struct tcp_totals totals;
    /* A stream receiver's bytes by the time it took them, from at_ns on; NULL: not asked for. */
    uint32_t *bins;
    int64_t bin_ns, bin_room;
    /* Samples, the main loop's own. */
    bool offered; /* the kernel says the peer's window */
    int64_t *samples;
    int sampled, sample_room;
};

static inline int flow_columns(const struct flow *flow)
{
    if (!flow->sender || flow->datagram_fd >= 0)
        return COLUMNS_RECEIVER;
    return flow->offered ? COLUMNS_OFFERED : COLUMNS_SENDER;
}

static inline void flow_bin(struct flow *flow, int64_t now, int64_t bytes)
{
    int64_t bin = flow->bins == NULL ? -1 : (now - flow->at_ns) / flow->bin_ns;

    if (bin >= 0 && bin < flow->bin_room)
        flow->bins[bin] += (uint32_t)bytes;
}

/* A receiver took `got` bytes off its connection: notes when, in which bin, and holds the window. The caller counts them. */
void flow_took(struct flow *flow, int64_t got);
/* Keep the window that is offered at the one asked for, once `unheld` bytes were taken. */
void flow_hold_window(struct flow *flow, int64_t got);
/* Data that do not compress. */
void flow_fill(unsigned char *data, size_t bytes);
/* Data to send, once per process; -1 with errno where there is no memory for it. */
int flow_prepare_data(void);
/* Start the thread of a connected flow. Returns 0 or an errno value. */
int flow_start(struct flow *flow);
/* Make a running flow end soon, even one that is blocked. */
void flow_stop(struct flow *flow);
/* At the end of a flow's thread: tell the peer, and as a sender wait until it has ended too. */
void flow_finish(struct flow *flow);
/* One row of samples, where there is room. */
void flow_sample(struct flow *flow, int64_t now);
/* Close and free everything; the thread must have ended or never have been started. */
void flow_free(struct flow *flow);

#endif
