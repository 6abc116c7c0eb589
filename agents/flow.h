/* A flow: one connection and the thread that moves its bytes. The thread moves and counts bytes; the main loop samples.
 * What the thread does depends on its kind of work (work.h). */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "datagrams.h"
#include "histogram.h"
#include "placement.h"
#include "sample.h"
#include "work.h"

#define TOKEN_BYTES 16
#define COLUMNS_RECEIVER 2   /* t_ns bytes */
#define COLUMNS_PROBE 3      /* t_ns answered rtt_ns */
#define COLUMNS_SUBFLOWS 3   /* t_ns bytes retransmits: the other values differ between subflows */
#define COLUMNS_SENDER 6     /* t_ns bytes retransmits rtt_us cwnd mss … */
#define COLUMNS_ADVERTISED 7 /* … advertised_window, where the kernel reports it */
#define DATA_BYTES (512 << 10)

/* What an order `listen` or `connect` asks for. */
struct settings {
    struct sockaddr_storage address; /* where to listen, or where to connect to */
    struct sockaddr_storage bind;    /* a sender's own address */
    socklen_t address_length;
    int64_t first_port, last_port; /* the range of a receiver's port; 0: any port */
    unsigned char token[TOKEN_BYTES];
    int64_t interval_ns;
    struct sockopts sockopts;
    const struct work *work;
    int64_t size;           /* bytes of a message, datagram or file */
    int64_t busy;           /* these five: 1 or 0; wait for a message without sleeping */
    int64_t zerocopy, copy; /* a sender uses MSG_ZEROCOPY; a receiver copies into its memory */
    int64_t mptcp, disk;    /* Multipath TCP; a file in `folder` is read or written */
    char folder[256];
    struct placement placement;
    char interface[16]; /* whose counters are reported; "": none */
};

/* What an order `start` asks for. */
struct start {
    int64_t at_ns, end_ns;
    int64_t bulk_ns;    /* after its first send, a stream waits until then */
    int64_t iterations; /* messages of each flow */
    int64_t rate;       /* payload bit/s of a stream; 0: as fast as possible */
    int64_t burst;      /* most datagrams that a late sender sends at once; 0: those of BURST_NS (udp-stream.c) */
    int64_t bin_ns;     /* 0: no bins */
    int64_t capture;    /* bytes of memory for frames; 0: none */
};

struct flow {
    int fd;     /* its connection; -1: none yet */
    int number; /* 0 … flows-1 */
    bool sender;
    const struct settings *settings; /* the endpoint's */
    const struct start *start;       /* likewise */
    const struct work *work;
    pthread_t thread;
    bool running; /* the thread was started and not joined yet */
    unsigned char *buffer;
    struct histogram *trips; /* round trips of a ping-pong's sender; NULL: none */
    struct places places;
    struct {
        int fd;                   /* what is read or written; -1: memory */
        int64_t disk_ns, sync_ns; /* time in read(2) or write(2), and in fdatasync(2); -1: no disk */
    } file;
    struct {
        int fd; /* -1: its bytes go over the connection */
        uint64_t tag;
        struct datagrams *counts;
    } datagram;
    struct { /* the window that a TCP receiver may advertise */
        int64_t bytes;  /* as requested; -1: as the kernel likes */
        int64_t unheld; /* bytes to be received before the window is held */
    } window;
    struct { /* calls that sent, of a stream's sender: all, not confirmed by the kernel yet, and not copied */
        int64_t count, pending, uncopied;
    } sends;
    struct marks *marks;         /* of packets that arrived; NULL: not asked for */
    struct multipath *multipath; /* NULL: not asked for */
    struct {                     /* a receiver's bytes by the time of arrival, from the start on */
        uint32_t *bytes;         /* NULL: not asked for */
        int64_t room;
    } bins;
    struct flow_samples { /* the main loop's own, but for probes */
        bool advertised;  /* the kernel reports the window that the peer advertises */
        bool multipath;   /* there may be several subflows … */
        bool counted;     /* … whose retransmits the kernel reports */
        int64_t *rows;
        int count, room;
    } samples;
    _Atomic int64_t bytes;
    _Atomic bool stopping; /* its time is over, or it was stopped */
    _Atomic bool stopped;  /* by an order, or because another flow failed */
    _Atomic bool ended;
    /* Written by the thread before `ended`, read by the main loop after it. */
    int64_t first_byte_ns, last_byte_ns; /* 0: no byte moved */
    struct {
        int error; /* errno, 0: none */
        const char *where;
    } failure;
    struct tcp_totals totals;
};

/* An eventfd that flows write to at their end, to wake the main loop. */
extern int wake_fd;

/* Data to send, DATA_BYTES of them, made by data_make(). They do not compress, so that links and tunnels that do look no faster. */
extern unsigned char data_bytes[DATA_BYTES];
void data_make(void);

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

static inline bool flow_stopping(const struct flow *flow)
{
    return atomic_load_explicit(&flow->stopping, memory_order_relaxed);
}

/* Set up flow `number`, which has no connection yet. */
void flow_init(struct flow *flow, int number, bool sender, const struct settings *settings, const struct start *start);
/* Allocate a buffer of at least `bytes`, which a sender's data fill. Returns 0 or an errno value. */
int flow_buffer(struct flow *flow, int64_t bytes);
void flow_close(struct flow *flow);
/* Close and free everything; the thread must have ended or never have been started. */
void flow_free(struct flow *flow);
/* Start the thread of a connected flow. Returns 0 or an errno value. */
int flow_start(struct flow *flow);
/* Make a running flow end soon, even one that is blocked. */
void flow_stop(struct flow *flow);
/* Add a row of samples, if there is room. */
void flow_sample(struct flow *flow);
/* The last sample of a connection: later ones leave its subflows as they were. */
void flow_sample_last(struct flow *flow, struct tcp_totals *totals);

/* For the thread. Note why the flow failed; the first error stays. */
void flow_fail(struct flow *flow, const char *where, int error);
/* The same of a call that failed while bytes moved: no failure if the flow was stopping anyway. */
void flow_broke(struct flow *flow, const char *where, int error);
/* Sleep until the instant `at`, or until the flow stops. */
void flow_sleep_until(const struct flow *flow, int64_t at);
/* Count bytes that were moved over `fd` by `now`, note where the thread runs, and follow the packets if that was asked for. */
void flow_moved(struct flow *flow, int fd, int64_t now, int64_t bytes);
/* The same of bytes that a receiver of a stream or file took: they also count in their bin. */
void flow_took(struct flow *flow, int fd, int64_t now, int64_t bytes);
/* Keep the advertised window at the requested size, after `got` bytes were received. */
void flow_hold_window(struct flow *flow, int64_t got);
/* Send the first `bytes` of the buffer. Returns false if that failed. */
bool flow_send(struct flow *flow, size_t bytes);
/* Receive until end-of-file, at most `piece` bytes a call: into the buffer, or, without one, into nowhere. `keep` (NULL: nothing) gets
 * each piece. Returns false if receiving or `keep` failed. */
bool flow_receive(struct flow *flow, size_t piece, bool (*keep)(struct flow *flow, size_t bytes));
/* As a receiver, send the byte that acknowledges everything; as a sender, wait for it, which ends the flow's time. */
void flow_acknowledge(struct flow *flow);
void flow_await_acknowledgement(struct flow *flow);
/* End a stream: tell the peer, and as a sender wait until the peer has ended too. */
void flow_finish(struct flow *flow);
