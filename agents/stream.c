/* Streams over TCP: as many bytes as possible, at the lowest cost that the kernel allows. The receiver uses recv(2) with MSG_TRUNC, which
 * takes bytes off the queue without copying them (tcp(7)). The sender uses plain send(2) with pieces of 512 KiB from one buffer, which
 * stays in the processor's cache. Measured between two namespaces on 2 cores, cubic, one flow, three runs of 2 s, median Gbit/s (CPU of
 * the receiver, ns per byte): pieces of 128 KiB 57 (0.058), 256 KiB 64 (0.048), 512 KiB 69 (0.051), 1 MiB 71 (0.047); sendfile(2) from a
 * memory file 60 (0.077); iperf3 3.12 for comparison 41 (0.105). The runs differ by up to a third, so 256 KiB to 1 MiB are equal. */
#include "flow.h"

#include "clock.h"
#include "system.h"

/* The first send is small, and the second waits for bulk_ns. Otherwise, with more flows than processors (as on a virtual rig), the first
 * burst of one flow would delay the first byte of another. */
#define FIRST_BYTES 1448
#define UNPACED_SEGMENTS 10 /* the kernel does not pace a flow's first segments, so the sender sleeps between them */
#define DISCARD_BYTES (1 << 20)
#define COPY_BYTES (256 << 10)

/* Return how many bytes a paced stream sends at once: those of 5 ms, at least two segments, but never more than those of 100 ms. At
 * most twice as many bytes wait in the kernel, which paces them, so that a slow flow ends on time. */
static int paced_bytes(int64_t rate)
{
    int64_t slow = rate / 80, bytes = rate / 1600;

    if (bytes < 2 * FIRST_BYTES)
        bytes = slow < 2 * FIRST_BYTES ? slow : 2 * FIRST_BYTES;
    return bytes < 1 ? 1 : bytes > DATA_BYTES ? DATA_BYTES : (int)bytes;
}

static void stream_send(struct flow *flow)
{
    int64_t rate = flow->start->rate;
    size_t all = rate > 0 ? (size_t)paced_bytes(rate) : DATA_BYTES;
    size_t piece = all < FIRST_BYTES ? all : FIRST_BYTES;

    flow->first_byte_ns = clock_now();
    while (!flow_is_stopping(flow)) {
        ssize_t put;

        /* send(2) adds to a waiting segment even above TCP_NOTSENT_LOWAT; poll(2) respects that limit. */
        if (rate > 0)
            flow_poll(flow, POLLOUT, -1);
        put = flow->request->zerocopy ? zerocopy_send(flow, data_bytes, piece) : send(flow->fd, data_bytes, piece, MSG_NOSIGNAL);
        if (put > 0) {
            flow->sends.count++;
            flow_count(flow, flow->fd, clock_now(), put);
            if (flow->last_byte_ns >= flow->start->end_ns)
                break;
            if (flow->sends.count == 1)
                flow_sleep_until(flow, flow->start->bulk_ns);
            else if (rate > 0 && flow->sends.count <= UNPACED_SEGMENTS)
                flow_sleep_until(flow, flow->start->bulk_ns + (int64_t)(8e9 * (double)flow->bytes / (double)rate));
            piece = all;
        } else if (errno != EINTR) {
            /* flow_stop() shuts down the sending side to wake a blocked sender, after which EPIPE is no error. */
            if (!flow_is_stopping(flow) || (errno != EPIPE && !atomic_load(&flow->stopped)))
                flow_fail(flow, "send", errno);
            break;
        }
    }
}

static void stream_receive(struct flow *flow)
{
    flow_receive(flow, flow->request->copy ? COPY_BYTES : DISCARD_BYTES, NULL);
}

static void stream_finish(struct flow *flow)
{
    struct tcp_totals after;

    if (!flow->sender) {
        flow_end(flow);
        return;
    }
    flow_read_totals(flow, &flow->totals);
    flow_finish(flow);
    if (flow->request->zerocopy)
        zerocopy_finish(flow);
    flow_read_last_totals(flow, &after);
    if (after.mss < 0 && flow->multipath == NULL) /* Windows may not tell of a connection that has ended */
        return;
    flow->totals.retransmits = after.retransmits;
    flow->totals.retransmitted_bytes = after.retransmitted_bytes;
    flow->totals.acked_bytes = after.acked_bytes;
    flow->totals.unacked = after.unacked;
    flow->totals.timeouts = after.timeouts;
}

static int stream_prepare(struct flow *flow)
{
    int64_t rate = flow->start->rate;

    if (flow->sender)
        return rate > 0 ? system_pace(flow->fd, rate, paced_bytes(rate)) : 0;
    return flow->request->copy ? flow_buffer(flow, COPY_BYTES) : 0;
}

const struct work stream_work = {"", "tcp", NULL, stream_prepare, stream_send, stream_receive, stream_finish,
                                 .rate = true, .bins = true, .copies = true};
