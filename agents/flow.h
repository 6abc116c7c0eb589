/* A flow: one connection and the thread that moves and counts its bytes. The main loop takes samples of it.
 * What the thread does depends on the kind of work (work.h). */
#pragma once

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

/* What an order `listen` or `connect` requests. */
struct request {
    struct sockaddr_storage address; /* where to listen, or where to connect to */
    struct sockaddr_storage bind;    /* a sender's own address */
    int64_t first_port, last_port;   /* the range of a receiver's port; 0: any port */
    unsigned char token[TOKEN_BYTES];
    int64_t interval_ns;
    struct sockopts sockopts;
    const struct work *work;
    int64_t size; /* bytes of a message, datagram or file */
    /* Flags, 1 or 0. */
    int64_t busy;     /* wait for a message without sleeping */
    int64_t zerocopy; /* a sender uses MSG_ZEROCOPY */
    int64_t copy;     /* a receiver copies the bytes into its memory */
    int64_t mptcp;    /* use Multipath TCP */
    int64_t disk;     /* read or write a file in `folder` */
    char folder[256];
    struct placement placement;
    char interface[16]; /* the interface whose counters are reported; "": none */
};

/* What an order `start` requests. */
struct start {
    int64_t at_ns, end_ns;
    int64_t bulk_ns;    /* when a stream continues after its first send */
    int64_t iterations; /* messages of each flow */
    int64_t rate;       /* payload bit/s of a stream; 0: as fast as possible */
    int64_t burst;      /* how many datagrams a late sender sends at once, at most; 0: those of BURST_NS (udp-stream.c) */
    int64_t bin_ns;     /* width of the bins; 0: none */
    int64_t capture;    /* bytes of memory for captured frames; 0: no capture */
};

struct flow {
    int fd;     /* the connection; -1: none yet */
    int number; /* 0 … flows-1 */
    bool sender;
    const struct request *request; /* the endpoint's */
    const struct start *start;     /* the endpoint's */
    const struct work *work;
    pthread_t thread;
    bool running; /* the thread was started and is not joined yet */
    unsigned char *buffer;
    struct histogram *trips; /* round trips of a ping-pong's sender; NULL: none */
    struct places places;
    struct {
        int fd;                   /* the file that is read or written; -1: none, only memory */
        int64_t disk_ns, sync_ns; /* time spent in read(2) or write(2), and in fdatasync(2); -1: no file */
    } file;
    struct {
        int fd; /* the socket of the datagrams; -1: the bytes go over the connection */
        uint64_t tag;
        struct datagrams *counts;
    } datagram;
    struct {            /* the window that a TCP receiver may advertise */
        int64_t bytes;  /* as requested; -1: the kernel chooses */
        int64_t unheld; /* bytes to receive before the window is held at that size */
    } window;
    struct { /* send calls of a stream's sender: all, those the kernel has not confirmed yet, and those it did not copy */
        int64_t count, pending, uncopied;
    } sends;
    struct marks *marks;         /* the marks of packets that arrived; NULL: not requested */
    struct multipath *multipath; /* the subflows of the connection; NULL: not requested */
    struct {                     /* a receiver's bytes by the time of arrival, from the start on */
        uint32_t *bytes;         /* NULL: not requested */
        int64_t room;
    } bins;
    struct flow_samples { /* written by the main loop, for probes by the thread */
        bool advertised;  /* the kernel reports the window that the peer advertises */
        bool multipath;   /* there may be several subflows */
        bool counted;     /* the kernel reports retransmits */
        int64_t *rows;
        int count, room;
    } samples;
    _Atomic int64_t bytes;
    _Atomic bool stopping; /* its time is over, or it was stopped */
    _Atomic bool stopped;  /* an order or the failure of another flow stopped it */
    _Atomic bool ended;
    /* The thread writes these before it sets `ended`; the main loop reads them afterwards. */
    int64_t first_byte_ns, last_byte_ns; /* 0: no byte was moved */
    struct {
        int error; /* errno, 0: none */
        const char *where;
    } failure;
    struct tcp_totals totals;
};

/* The eventfd that wakes the main loop; wake_main_loop() writes to it. */
extern int wake_fd;
void wake_main_loop(void);

/* The data to send, made by data_fill(). They cannot be compressed, so that a link that compresses does not look faster. */
extern unsigned char data_bytes[DATA_BYTES];
void data_fill(void);

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

static inline bool flow_is_stopping(const struct flow *flow)
{
    return atomic_load_explicit(&flow->stopping, memory_order_relaxed);
}

/* Set up flow `number`, without a connection. */
void flow_init(struct flow *flow, int number, bool sender, const struct request *request, const struct start *start);
/* Allocate a buffer of at least `bytes`; a sender's is filled with data. Returns 0 or an errno value. */
int flow_buffer(struct flow *flow, int64_t bytes);
void flow_close(struct flow *flow);
/* Close and free everything. The thread must not be running. */
void flow_free(struct flow *flow);
/* Start the thread of a connected flow. Returns 0 or an errno value. */
int flow_start(struct flow *flow);
/* Make a running flow end soon, even if it is blocked. */
void flow_stop(struct flow *flow);
/* Add a row of samples, if there is room. */
void flow_sample(struct flow *flow);
/* Read everything that the kernel says of the connection, or of all its subflows. */
void flow_read_totals(const struct flow *flow, struct tcp_totals *totals);
/* The same for the last time: later samples do not look at the subflows any more. */
void flow_read_last_totals(struct flow *flow, struct tcp_totals *totals);

/* The following functions are for the flow's thread. */
/* Note why the flow failed; the first error stays. */
void flow_fail(struct flow *flow, const char *where, int error);
/* Note the failure of a call that moves bytes, unless the flow is stopping: then it was the stop that made the call fail. */
void flow_fail_unless_stopping(struct flow *flow, const char *where, int error);
/* Sleep until the instant `at`, or until the flow stops. */
void flow_sleep_until(const struct flow *flow, int64_t at);
/* Count bytes that were moved over `fd`, note the thread's processor, and move the thread to that of the packets if requested. */
void flow_count(struct flow *flow, int fd, int64_t now, int64_t bytes);
/* The same for a receiver of a stream or file, whose bytes also count in their bin. */
void flow_count_received(struct flow *flow, int fd, int64_t now, int64_t bytes);
/* Keep the advertised window at the requested size, after `got` bytes were received. */
void flow_hold_window(struct flow *flow, int64_t got);
/* Wait until the connection has one of these events, as poll(2) does. */
int flow_poll(struct flow *flow, short events, int timeout_ms);
/* Send the first `bytes` of the buffer. Returns false if that failed. */
bool flow_send(struct flow *flow, size_t bytes);
/* Receive until end-of-file, at most `piece` bytes a call, into the buffer; without a buffer, discard the bytes. `keep`, unless NULL,
 * gets each piece. Returns false if receiving or `keep` failed. */
bool flow_receive(struct flow *flow, size_t piece, bool (*keep)(struct flow *flow, size_t bytes));
/* A receiver acknowledges with one byte that it has everything. A sender waits for that byte: it ends the time of the flow. */
void flow_acknowledge(struct flow *flow);
void flow_await_acknowledgement(struct flow *flow);
/* Read the totals and end the connection, after messages or a file. */
void flow_end(struct flow *flow);
/* End a stream: close the sending side and, as a sender, wait until the peer has ended too. */
void flow_finish(struct flow *flow);
