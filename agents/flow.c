/* Moving bytes as cheaply as the kernel lets us.
 *
 * The sender uses sendfile(2) from a memory file: its pages go into the socket without a copy. The receiver uses recv(2) with
 * MSG_TRUNC, which on TCP takes bytes off the queue without copying them (tcp(7)). Both leave TCP itself as it is: the same
 * segments go over the wire as with send and recv.
 */
#include "flow.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

#define DATA_BYTES (1 << 20)
#define FIRST_BYTES 1448 /* so small that no flow's first burst delays the first byte of another */
#define DISCARD_BYTES (1 << 20)
#define STACK_BYTES (64 * 1024)
#define DRAIN_S 10

static int data_fd = -1;

int flow_prepare_data(void)
{
    static unsigned char block[65536];
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    if (data_fd >= 0)
        return 0;
    data_fd = memfd_create("rigctl", MFD_CLOEXEC);
    if (data_fd < 0)
        return -1;
    /* Not compressible: links and tunnels that compress must not look faster than they are. */
    for (size_t i = 0; i < sizeof block; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        block[i] = (unsigned char)state;
    }
    for (int done = 0; done < DATA_BYTES; done += (int)sizeof block)
        if (write(data_fd, block, sizeof block) != (ssize_t)sizeof block)
            return -1;
    return 0;
}

static void fail(struct flow *flow, const char *where, int error)
{
    flow->error = error;
    flow->where = where;
}

/* Send until the time is over. The offset wraps, so that every call has a full piece of data before it. */
static void send_all(struct flow *flow)
{
    off_t offset = 0;
    size_t piece = FIRST_BYTES;

    flow->first_byte_ns = clock_now();
    while (!atomic_load_explicit(&flow->stopping, memory_order_relaxed)) {
        ssize_t put = sendfile(flow->fd, data_fd, &offset, piece);

        if (put > 0) {
            flow->last_byte_ns = clock_now();
            atomic_fetch_add_explicit(&flow->bytes, put, memory_order_relaxed);
            if (flow->last_byte_ns >= flow->end_ns)
                break;
            if (piece == FIRST_BYTES)
                sched_yield(); /* the others' first bytes before our first burst */
            piece = DATA_BYTES;
            if (offset >= DATA_BYTES)
                offset = 0;
        } else if (put < 0 && errno != EINTR) {
            /* flow_stop() shuts the sending side down to wake a blocked sender: that is its end, not an error. */
            if (errno != EPIPE || !atomic_load(&flow->stopping))
                fail(flow, "send", errno);
            break;
        } else if (put == 0) {
            offset = 0;
        }
    }
    if (flow->last_byte_ns == 0)
        flow->first_byte_ns = 0;
}

/* Wait for the peer's end-of-file: then everything sent has arrived, and the retransmits are all counted. */
static void await_end(struct flow *flow)
{
    char byte;
    struct pollfd readable = {.fd = flow->fd, .events = POLLIN};
    int got = poll(&readable, 1, DRAIN_S * 1000);

    if (got == 0)
        fail(flow, "waiting for the receiver to end", ETIMEDOUT);
    else if (got > 0 && recv(flow->fd, &byte, 1, 0) < 0 && !atomic_load(&flow->stopping))
        fail(flow, "send", errno);
}

static void run_sender(struct flow *flow)
{
    struct tcp_totals after;

    clock_sleep_until(flow->at_ns);
    send_all(flow);
    sample_tcp(flow->fd, &flow->totals);
    atomic_store(&flow->stopping, true);
    if (flow->error == 0) {
        shutdown(flow->fd, SHUT_WR);
        await_end(flow);
        sample_tcp(flow->fd, &after);
        flow->totals.retransmits = after.retransmits;
        flow->totals.retransmitted_bytes = after.retransmitted_bytes;
    }
}

static void run_receiver(struct flow *flow)
{
    for (;;) {
        ssize_t got = recv(flow->fd, NULL, DISCARD_BYTES, MSG_TRUNC);

        if (got > 0) {
            flow->last_byte_ns = clock_now();
            if (flow->first_byte_ns == 0)
                flow->first_byte_ns = flow->last_byte_ns;
            atomic_fetch_add_explicit(&flow->bytes, got, memory_order_relaxed);
        } else if (got == 0) {
            break;
        } else if (errno != EINTR) {
            fail(flow, "recv", errno);
            break;
        }
    }
    sample_tcp(flow->fd, &flow->totals);
    shutdown(flow->fd, SHUT_WR);
}

static void *run(void *argument)
{
    struct flow *flow = argument;
    uint64_t one = 1;

    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* wake at the instant, not up to 50 us later */
    if (flow->sender)
        run_sender(flow);
    else
        run_receiver(flow);
    atomic_store(&flow->ended, true);
    if (write(flow->wake, &one, sizeof one) < 0)
        return NULL; /* the counter is full: the main loop is awake anyway */
    return NULL;
}

int flow_start(struct flow *flow)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);

    if (error != 0)
        return error;
    error = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (error == 0)
        error = pthread_create(&flow->thread, &attributes, run, flow);
    flow->running = error == 0;
    pthread_attr_destroy(&attributes);
    return error;
}

void flow_stop(struct flow *flow)
{
    atomic_store(&flow->stopping, true);
    /* A sender has data queued that must still arrive; a receiver waits for an end-of-file that may never come. */
    shutdown(flow->fd, flow->sender ? SHUT_WR : SHUT_RD);
}

void flow_sample(struct flow *flow, int64_t now)
{
    int64_t *row = flow->samples + (size_t)flow->sampled * (size_t)flow_columns(flow);
    struct tcp_totals totals;

    if (flow->sampled == flow->sample_room)
        return;
    row[0] = now;
    row[1] = atomic_load_explicit(&flow->bytes, memory_order_relaxed);
    if (flow->sender) {
        sample_tcp(flow->fd, &totals);
        row[2] = totals.retransmits;
        row[3] = totals.rtt_us;
        row[4] = totals.cwnd;
        row[5] = totals.mss;
    }
    flow->sampled++;
}

void flow_free(struct flow *flow)
{
    if (flow->fd >= 0)
        close(flow->fd);
    flow->fd = -1;
    free(flow->samples);
    flow->samples = NULL;
    flow->sampled = flow->sample_room = 0;
}
