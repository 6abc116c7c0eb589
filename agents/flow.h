/* A flow: one connection, with a thread that moves and counts bytes as its kind of work (work.h) says. The main loop takes samples. */
#pragma once

#include "datagrams.h"
#include "histogram.h"
#include "multicast.h"
#include "placement.h"
#include "sample.h"
#include "work.h"

#define TOKEN_BYTES 16
#define COLUMNS_RECEIVER 2   /* columns of a receiver's samples: t_ns bytes */
#define COLUMNS_DATAGRAMS 3  /* columns of a receiver of numbered datagrams: t_ns bytes highest */
#define COLUMNS_PROBE 3      /* columns of a probe's samples: t_ns answered rtt_ns */
#define COLUMNS_BURST 3      /* columns of samples of bursts: t_ns bytes span_ns */
#define COLUMNS_SUBFLOWS 3   /* columns of a sender with several subflows: t_ns bytes retransmits */
#define COLUMNS_SENDER 6     /* columns of a sender's samples: t_ns bytes retransmits rtt_us cwnd mss … */
#define COLUMNS_ADVERTISED 7 /* columns of a sender if the kernel also reports the last one: advertised_window */
#define DATA_BYTES (512 << 10)
#define REPLIES_NS INT64_C(2000000000) /* time after the end for which a sender of requests waits for replies */

/* Which end closes the connections that a test opens, and how. */
enum closing { CLOSE_RESET, CLOSE_SENDER, CLOSE_RECEIVER };

/* The content of an order `listen` or `connect`. */
struct request {
    struct sockaddr_storage address; /* address at which to listen, or to which to connect */
    struct sockaddr_storage bind;    /* local address of a sender */
    int64_t first_port, last_port;   /* port range of a receiver; 0: any port */
    unsigned char token[TOKEN_BYTES];
    int64_t interval_ns;
    struct sockopts sockopts;
    const struct work *work;
    int64_t size; /* bytes of a message, datagram or file */
    int64_t reply; /* bytes of the reply to a request */
    int64_t length; /* datagrams of a burst */
    /* The following flags are 1 or 0. */
    int64_t busy;     /* poll for messages without sleeping */
    int64_t zerocopy; /* send with MSG_ZEROCOPY */
    int64_t copy;     /* copy received bytes into memory instead of discarding them */
    int64_t mptcp;    /* use Multipath TCP */
    int64_t disk;     /* read or write a file in `folder` */
    enum closing closing; /* who closes the connections that a test opens */
    struct multicast multicast;
    char folder[256];
    struct placement placement;
    char interface[INTERFACE_ROOM]; /* name of the interface whose counters are reported; "": none */
};

/* The content of an order `start`. */
struct start {
    int64_t at_ns, end_ns;
    int64_t bulk_ns;    /* time at which a stream continues after its first send */
    int64_t iterations; /* most messages of each flow */
    int64_t rate;       /* payload rate of a stream in bit/s; 0: unlimited */
    int64_t burst;      /* most datagrams that a late sender sends at once; 0: as many as take BURST_NS (udp-stream.c) */
    int64_t every_ns;   /* time between the beginnings of a flow's connections or requests; 0: as soon as the last one is closed */
    int64_t stagger_ns; /* by this much later than the flow before it each flow begins */
    int64_t bin_ns;     /* length of the intervals (bins) in which a receiver counts bytes; 0: no bins */
    int64_t capture;    /* bytes of memory for captured frames; 0: no capture */
};

struct flow {
    int fd;     /* socket of the connection; -1: not connected yet */
    int number; /* number of the flow in its endpoint, from 0 */
    bool sender;
    const struct request *request; /* the endpoint's order `listen` or `connect` */
    const struct start *start;     /* the endpoint's order `start` */
    const struct work *work;
    pthread_t thread;
    bool running; /* the thread was started and not joined yet */
    unsigned char *buffer;
    struct histogram *trips; /* round-trip times of a ping-pong's sender; NULL: none */
    struct places places;
    struct {
        int fd;                   /* file to be read or written; -1: memory only */
        int64_t disk_ns, sync_ns; /* nanoseconds in read(2) or write(2), and in fdatasync(2); -1: no file */
    } file;
    struct {
        int fd;   /* socket for datagrams, or one that listens for further connections; -1: bytes go over the connection */
        int port; /* port of the receiver's socket for the datagrams, or for the further connections, of this flow */
        uint64_t tag;
        struct datagrams *counts;
    } datagram;
    struct {            /* window that a TCP receiver advertises */
        int64_t bytes;  /* requested size of the window; -1: the kernel chooses */
        int64_t unheld; /* bytes still to be received before the window is limited to the requested size */
    } window;
    struct { /* how many send calls there were, how many the kernel has not completed yet, and how many it completed without a copy */
        int64_t count, pending, uncopied;
    } sends;
    void *counts;                /* counts that only this kind of work has, for its function `report`; NULL: none */
    struct marks *marks;         /* counts of received packets by mark (marks.h); NULL: not requested */
    struct multipath *multipath; /* subflows of the connection; NULL: not requested */
    struct {                     /* bytes that a receiver read in each `bin_ns` from the start on */
        uint64_t *bytes;         /* bytes per bin; NULL: bins were not requested */
        int64_t room;
    } bins;
    struct flow_samples { /* samples, written by the main loop, or by the flow's thread (flow_writes_samples) */
        bool advertised;  /* the kernel reports the peer's advertised window */
        bool multipath;   /* the connection may have several subflows */
        bool counted;     /* the kernel reports retransmits */
        int64_t *rows;
        int count, room;
    } samples;
    _Atomic int64_t bytes;
    _Atomic int64_t highest; /* receiver of a stream of datagrams: highest sequence number so far, plus one */
    _Atomic bool stopping; /* the flow's time is over, or the flow was stopped */
    _Atomic bool stopped;  /* the flow was stopped by an order or by the failure of another flow */
    _Atomic bool ended;
    /* The thread writes the following fields before it sets `ended`; the main loop reads them afterwards. */
    int64_t first_byte_ns, last_byte_ns; /* times of the first and the last moved bytes; 0: no bytes were moved */
    struct {
        int error; /* errno of the first failure; 0: none */
        const char *where;
    } failure;
    struct tcp_totals totals;
    struct tcp_totals known; /* the main loop's last reading of a sender's TCP_INFO that succeeded; mss -1: none */
};

/* eventfd that wakes the main loop; wake_main_loop() writes to it. */
extern int wake_fd;
void wake_main_loop(void);

/* Data to send, made by data_fill(). The data cannot be compressed, so a link with compression does not look faster. */
extern unsigned char data_bytes[DATA_BYTES];
void data_fill(void);

/* Tell whether the samples of a flow have the highest sequence number: losses over time follow from it. */
static inline bool flow_samples_highest(const struct flow *flow)
{
    return !flow->sender && flow->work->bursts && flow->request->size >= DATAGRAM_HEADER;
}

/* Tell whether the flow's thread writes the rows of samples itself. */
static inline bool flow_writes_samples(const struct flow *flow)
{
    return flow->work->by_burst || (flow->sender && flow->work->paced);
}

static inline int flow_columns(const struct flow *flow)
{
    if (flow->work->by_burst)
        return COLUMNS_BURST;
    if (flow->sender && flow->work->paced)
        return COLUMNS_PROBE;
    if (flow_samples_highest(flow))
        return COLUMNS_DATAGRAMS;
    if (!flow->sender || flow->datagram.fd >= 0 || !flow->samples.counted)
        return COLUMNS_RECEIVER;
    if (flow->samples.multipath)
        return COLUMNS_SUBFLOWS;
    return flow->samples.advertised ? COLUMNS_ADVERTISED : COLUMNS_SENDER;
}

static inline bool flow_is_stopping(const struct flow *flow)
{
    return atomic_load_explicit(&flow->stopping, memory_order_relaxed);
}

void flow_init(struct flow *flow, int number, bool sender, const struct request *request, const struct start *start);
/* Allocate a buffer of at least `bytes` bytes. A sender's buffer is filled with data. Returns 0 or an errno value. */
int flow_buffer(struct flow *flow, int64_t bytes);
void flow_close(struct flow *flow);
/* Free a flow whose thread has ended or was never started. */
void flow_free(struct flow *flow);
/* Start the thread of a connected flow. Returns 0 or an errno value. */
int flow_start(struct flow *flow);
/* Make a running flow end soon, even if its thread is blocked. */
void flow_stop(struct flow *flow);
/* Add a row of samples, if there is room. */
void flow_sample(struct flow *flow);
/* If the last reading of the totals failed, as it may on Windows once a connection has ended, use the last that succeeded. */
void flow_keep_known(struct flow *flow);
/* Read all that the kernel reports about the connection, or about all its subflows. */
void flow_read_totals(const struct flow *flow, struct tcp_totals *totals);
/* Read the totals for the last time; later samples do not read the subflows any more. */
void flow_read_last_totals(struct flow *flow, struct tcp_totals *totals);

/* The following functions are called by the flow's thread. */
/* Store why the flow failed; the first error stays. */
void flow_fail(struct flow *flow, const char *where, int error);
/* Store the failure of a call that moves bytes, unless the flow is stopping, which makes such calls fail. */
void flow_fail_unless_stopping(struct flow *flow, const char *where, int error);
/* Sleep until the time `at`, or until the flow stops. */
void flow_sleep_until(const struct flow *flow, int64_t at);
/* Count bytes moved over `fd`, store the thread's processor and, if requested, move the thread to the packets' processor. */
void flow_count(struct flow *flow, int fd, int64_t now, int64_t bytes);
/* Do as flow_count(), and add the bytes to the bin of the time `now`. */
void flow_count_received(struct flow *flow, int fd, int64_t now, int64_t bytes);
/* Limit the advertised window to the requested size; called after each receive of `got` bytes. */
void flow_hold_window(struct flow *flow, int64_t got);
/* Wait for one of these events on the connection, as poll(2) does. */
int flow_poll(struct flow *flow, short events, int timeout_ms);
/* Send the first `bytes` of the buffer. Returns false on failure. */
bool flow_send(struct flow *flow, size_t bytes);
/* Receive until end-of-file into the buffer, at most `piece` bytes per call; without a buffer, discard the bytes. `keep`, unless NULL,
 * gets each piece. Returns false if receiving or `keep` failed. */
bool flow_receive(struct flow *flow, size_t piece, bool (*keep)(struct flow *flow, size_t bytes));
/* Let a receiver acknowledge with one byte that it has everything. A sender waits for this byte, which ends the time of the flow. */
void flow_acknowledge(struct flow *flow);
void flow_await_acknowledgement(struct flow *flow);
/* End a flow of messages or of a file: read the totals and close the sending side of the connection. */
void flow_end(struct flow *flow);
/* End a stream: close the sending side; a sender also waits for the peer to end. */
void flow_finish(struct flow *flow);
