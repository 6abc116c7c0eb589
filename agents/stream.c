/* Moving bytes as cheaply as the kernel lets us.
 *
 * The receiver uses recv(2) with MSG_TRUNC, which on TCP takes bytes off the queue without copying them (tcp(7)). The sender uses plain
 * send(2) in pieces of 512 KiB out of one buffer, which stays in the processor's cache. Measured between two namespaces on 2 cores,
 * cubic, one flow, median Gbit/s (CPU of the receiver, ns per byte): pieces of 128 KiB 57 (0.058), 256 KiB 64 (0.048),
 * 512 KiB 69 (0.051), 1 MiB 71 (0.047); sendfile(2) from a memory file 60 (0.077); iperf3 3.12 beside them 41 (0.105): three runs of
 * 2 s each, which differ by up to a third, so 256 KiB to 1 MiB are alike. With bbr 512 KiB did best, as noisily. Either way TCP itself
 * is left as it is.
 */
#include "stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock.h"
#include "data.h"
#include "flow.h"
#include "system.h"
#include "zerocopy.h"

/* The first send is small, and the next one waits for bulk_ns: on a machine with more flows than processors (a virtual rig) nobody's
 * first burst then delays another's first byte. */
#define FIRST_BYTES 1448
#define UNPACED_SEGMENTS 10 /* the kernel paces none of the first ones: a slow flow would begin with a burst */
#define DISCARD_BYTES (1 << 20)
#define COPY_BYTES (256 << 10)

static ssize_t put_piece(struct flow *flow, size_t bytes)
{
    if (flow->copying.zerocopy)
        return zerocopy_send(flow, data_bytes(), bytes);
    return send(flow->fd, data_bytes(), bytes, MSG_NOSIGNAL);
}

/* Of a paced stream the bytes of 5 ms, or two segments where these take at most 100 ms: the kernel paces them, and twice as many at most
 * wait for it, so that a slow flow ends when its time ends. */
static int paced_bytes(int64_t rate)
{
    int64_t slow = rate / 80, bytes = rate / 1600;

    if (bytes < 2 * FIRST_BYTES)
        bytes = slow < 2 * FIRST_BYTES ? slow : 2 * FIRST_BYTES;
    return bytes < 1 ? 1 : bytes > DATA_BYTES ? DATA_BYTES : (int)bytes;
}

/* send(2) adds to a segment that waits without asking how much waits already; poll(2) asks. */
static void await_room(struct flow *flow)
{
    struct pollfd writable = {.fd = flow->fd, .events = POLLOUT};
    int got;

    do
        got = poll(&writable, 1, -1);
    while ((got < 0 && errno == EINTR) || (got > 0 && writable.revents == POLLERR && zerocopy_collect(flow)));
}

static void send_all(struct flow *flow)
{
    size_t all = flow->rate > 0 ? (size_t)paced_bytes(flow->rate) : DATA_BYTES;
    size_t piece = all < FIRST_BYTES ? all : FIRST_BYTES;

    flow->first_byte_ns = clock_now();
    while (!flow_stopping(flow)) {
        ssize_t put;

        if (flow->rate > 0)
            await_room(flow);
        put = put_piece(flow, piece);
        if (put > 0) {
            flow->copying.sends++;
            flow_moved(flow, flow->fd);
            flow->last_byte_ns = clock_now();
            flow_count(flow, put);
            if (flow->last_byte_ns >= flow->time.end_ns)
                break;
            if (flow->copying.sends == 1)
                flow_sleep_until(flow, flow->time.bulk_ns);
            else if (flow->rate > 0 && flow->copying.sends <= UNPACED_SEGMENTS)
                flow_sleep_until(flow, flow->time.bulk_ns + (int64_t)(8e9 * (double)flow->bytes / (double)flow->rate));
            piece = all;
        } else if (errno != EINTR) {
            /* flow_stop() shuts the sending side down to wake a blocked sender: that is its end, not an error. */
            if (!flow_stopping(flow) || (errno != EPIPE && !atomic_load(&flow->stopped)))
                flow_fail(flow, "send", errno);
            break;
        }
    }
}

static void run_sender(struct flow *flow)
{
    struct tcp_totals after;

    send_all(flow);
    sample_tcp(flow->fd, flow->multipath, &flow->totals);
    flow_finish(flow);
    if (flow->copying.zerocopy)
        zerocopy_finish(flow);
    sample_tcp(flow->fd, flow->multipath, &after);
    flow->totals.retransmits = after.retransmits;
    flow->totals.retransmitted_bytes = after.retransmitted_bytes;
    flow->totals.acked_bytes = after.acked_bytes;
    flow->totals.unacked = after.unacked;
    flow->totals.timeouts = after.timeouts;
}

static void run_receiver(struct flow *flow)
{
    for (;;) {
        ssize_t got = flow->copying.copy ? recv(flow->fd, flow->buffer, COPY_BYTES, 0) : flow_discard(flow, DISCARD_BYTES);

        if (got > 0) {
            flow_took(flow, got);
            flow_moved(flow, flow->fd);
            flow_count(flow, got);
        } else if (got == 0) {
            break;
        } else if (errno != EINTR) {
            flow_fail(flow, "recv", errno);
            break;
        }
    }
    sample_tcp(flow->fd, flow->multipath, &flow->totals);
    shutdown(flow->fd, SHUT_WR);
}

int stream_prepare(struct flow *flow)
{
    if (flow->sender)
        return flow->rate > 0 ? system_pace(flow->fd, flow->rate, paced_bytes(flow->rate)) : 0;
    if (!flow->copying.copy)
        return 0;
    flow->buffer = aligned_alloc(PAGE_BYTES, COPY_BYTES);
    return flow->buffer == NULL ? ENOMEM : 0;
}

void stream_run(struct flow *flow)
{
    (flow->sender ? run_sender : run_receiver)(flow);
}
