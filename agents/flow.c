/* Moving bytes as cheaply as the kernel lets us.
 *
 * The receiver uses recv(2) with MSG_TRUNC, which on TCP takes bytes off the queue without copying them (tcp(7)). The sender uses plain
 * send(2) in pieces of 512 KiB out of one buffer, which stays in the processor's cache. Measured between two namespaces on 2 cores,
 * cubic, one flow, median Gbit/s (CPU of the receiver, ns per byte): pieces of 128 KiB 57 (0.058), 256 KiB 64 (0.048),
 * 512 KiB 69 (0.051), 1 MiB 71 (0.047); sendfile(2) from a memory file 60 (0.077);
 * iperf3 3.12 beside them 41 (0.105): three runs of 2 s each, which differ by up to
 * a third, so 256 KiB to 1 MiB are alike. With bbr 512 KiB did best, as noisily. Either way TCP itself is left as it is.
 */
#include "flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "file.h"
#include "messages.h"
#include "udp.h"

#define DATA_BYTES (512 << 10)
/* The first send is small, and the next one waits for bulk_ns: on a machine with more flows than processors (a virtual rig) nobody's
 * first burst then delays another's first byte. */
#define FIRST_BYTES 1448
#define DISCARD_BYTES (1 << 20)
#define WAKE_BYTES (128 << 10)
#define FAST_MBPS 5000
#define FAST_BYTES (16 << 20)
#define SLOW_GAP_NS (1 * MS)
#define STACK_BYTES (64 * 1024)

static unsigned char *data;

void flow_fill(unsigned char *bytes, size_t count)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    /* Not compressible: links and tunnels that compress must not look faster than they are. */
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (unsigned char)state;
    }
}

int flow_prepare_data(void)
{
    if (data != NULL)
        return 0;
    data = malloc(DATA_BYTES);
    if (data == NULL)
        return -1;
    flow_fill(data, DATA_BYTES);
    return 0;
}

static void fail(struct flow *flow, const char *where, int error)
{
    flow->error = error;
    flow->where = where;
}

static void send_all(struct flow *flow)
{
    size_t piece = FIRST_BYTES;

    flow->first_byte_ns = clock_now();
    while (!atomic_load_explicit(&flow->stopping, memory_order_relaxed)) {
        ssize_t put = send(flow->fd, data, piece, MSG_NOSIGNAL);

        if (put > 0) {
            flow->last_byte_ns = clock_now();
            atomic_fetch_add_explicit(&flow->bytes, put, memory_order_relaxed);
            if (flow->last_byte_ns >= flow->end_ns)
                break;
            if (piece == FIRST_BYTES)
                clock_sleep_until(flow->bulk_ns);
            piece = DATA_BYTES;
        } else if (errno != EINTR) {
            /* flow_stop() shuts the sending side down to wake a blocked sender: that is its end, not an error. */
            if (errno != EPIPE || !atomic_load(&flow->stopping))
                fail(flow, "send", errno);
            break;
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

void flow_finish(struct flow *flow)
{
    atomic_store(&flow->stopping, true);
    shutdown(flow->fd, SHUT_WR);
    if (flow->sender && flow->error == 0)
        await_end(flow);
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

/* Wake once per 128 KiB while data come faster than FAST_MBPS, else for every byte: waking for each super-packet costs a fast receiver
 * half its time (bbr, unshaped: 23 against 44 Gbit/s; cubic, never held up by it, went from 77 to 64 at less CPU), and a slow one must be counted as its bytes come. */
struct waking {
    int low_water; /* SO_RCVLOWAT as set; 1 is the kernel's own */
    int64_t since_ns, bytes, previous_ns;
};

static void set_low_water(struct flow *flow, struct waking *waking, int bytes)
{
    if (waking->low_water != bytes && setsockopt(flow->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes) == 0)
        waking->low_water = bytes;
}

static void adapt_waking(struct flow *flow, struct waking *waking, int64_t now, ssize_t got)
{
    int buffer = 0;
    socklen_t length = sizeof buffer;
    bool fast;

    if (now - waking->previous_ns > SLOW_GAP_NS)
        set_low_water(flow, waking, 1);
    waking->previous_ns = now;
    if (waking->since_ns == 0)
        waking->since_ns = now;
    waking->bytes += got;
    if (waking->bytes < FAST_BYTES)
        return;
    fast = waking->bytes * 8 * (SECOND / 1000000) >= FAST_MBPS * (now - waking->since_ns);
    waking->bytes = 0;
    waking->since_ns = now;
    /* Within a small buffer it would hold back the window. */
    if (fast && getsockopt(flow->fd, SOL_SOCKET, SO_RCVBUF, &buffer, &length) == 0 && buffer >= 8 * WAKE_BYTES)
        set_low_water(flow, waking, WAKE_BYTES);
}

/* Linux reckons anew what fits into a socket's buffer when it sees how well segments fill their memory, and then offers up to a third
 * more than was asked for, of jumbo frames nearly twice that (6.18). It forgets a clamp that was set before. Until a few windows have
 * passed it is left alone: a window that has once been wider comes back to whole segments, one that has not stays short of them by the
 * opening's bytes. */
void flow_hold_window(struct flow *flow, int64_t got)
{
    if (flow->window <= 0)
        return;
    if (flow->unheld > 0)
        flow->unheld -= got;
    else
        setsockopt(flow->fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &flow->window, sizeof flow->window);
}

void flow_took(struct flow *flow, int64_t got)
{
    flow->last_byte_ns = clock_now();
    if (flow->first_byte_ns == 0)
        flow->first_byte_ns = flow->last_byte_ns;
    flow_bin(flow, flow->last_byte_ns, got);
    flow_hold_window(flow, got);
}

static void run_receiver(struct flow *flow)
{
    struct waking waking = {.low_water = 1};

    for (;;) {
        ssize_t got = recv(flow->fd, NULL, DISCARD_BYTES, MSG_TRUNC);

        if (got > 0) {
            flow_took(flow, got);
            atomic_fetch_add_explicit(&flow->bytes, got, memory_order_relaxed);
            adapt_waking(flow, &waking, flow->last_byte_ns, got);
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
    if (flow->datagram_fd >= 0)
        (flow->work == PINGPONG ? udp_pingpong : udp_stream)(flow);
    else if (flow->work == PUT)
        file_run(flow);
    else if (flow->work != STREAM)
        messages_run(flow);
    else if (flow->sender)
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
    if (flow_columns(flow) >= COLUMNS_SENDER) {
        sample_tcp(flow->fd, &totals);
        row[2] = totals.retransmits;
        row[3] = totals.rtt_us;
        row[4] = totals.cwnd;
        row[5] = totals.mss;
        if (flow->offered)
            row[6] = totals.peer_window;
    }
    flow->sampled++;
}

void flow_free(struct flow *flow)
{
    if (flow->fd >= 0)
        close(flow->fd);
    if (flow->datagram_fd >= 0)
        close(flow->datagram_fd);
    if (flow->file_fd >= 0)
        close(flow->file_fd);
    flow->fd = flow->datagram_fd = flow->file_fd = -1;
    free(flow->samples);
    free(flow->buffer);
    free(flow->histogram);
    free(flow->datagrams);
    free(flow->bins);
    flow->samples = NULL;
    flow->buffer = NULL;
    flow->histogram = NULL;
    flow->datagrams = NULL;
    flow->bins = NULL;
    flow->sampled = flow->sample_room = 0;
}
