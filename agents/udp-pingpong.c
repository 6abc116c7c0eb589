/* Ping-pong with datagrams: each is sent back, and one that is not back in time is given up. */
#include "udp.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "flow.h"
#include "marks.h"

#define SPINS 4096

int udp_prepare_pingpong(struct flow *flow)
{
    if (flow->sender)
        flow->message.trips = calloc(1, sizeof *flow->message.trips);
    return flow->sender && flow->message.trips == NULL ? ENOMEM : udp_prepare(flow, DATAGRAM_MAX);
}

/* One datagram into the buffer. Returns its length, -1 when none came in time or the flow has ended. */
static ssize_t receive_one(struct flow *flow, int64_t until)
{
    for (int spins = 1;; spins++) {
        ssize_t got = marks_recv(flow->marks, flow->datagram.fd, flow->buffer, DATAGRAM_MAX, flow->message.busy ? MSG_DONTWAIT : 0);

        if (got >= 0)
            return got;
        if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED) {
            flow_broke(flow, "recv", errno);
            return -1;
        }
        if (flow->message.busy && spins % SPINS != 0)
            continue;
        if (flow_stopping(flow) || (flow->sender ? clock_now() >= until : udp_ended(flow)))
            return -1;
    }
}

static void count_trip(struct flow *flow, int64_t before, int64_t now)
{
    histogram_add(flow->message.trips, now - before);
    marks_count(flow->marks, 1);
    flow->last_byte_ns = now;
    flow_count(flow, flow->message.size);
}

/* A message's tag, where it is long enough for one, and its number, or as much of that as there is room for. Returns their bytes. */
static size_t mark(struct flow *flow, uint64_t number)
{
    size_t size = (size_t)flow->message.size, tagged = size < DATAGRAM_HEADER ? 0 : TAG_BYTES;
    size_t numbered = size - tagged < sizeof number ? size - tagged : sizeof number;

    number = htole64(number);
    if (tagged > 0)
        datagram_put_tag(flow->buffer, flow->datagram.tag);
    memcpy(flow->buffer + tagged, &number, numbered);
    return tagged + numbered;
}

static void ping(struct flow *flow)
{
    size_t size = (size_t)flow->message.size;
    int64_t before = flow->first_byte_ns = clock_now();

    for (int64_t number = 1; number <= flow->message.iterations && before < flow->time.end_ns && !flow_stopping(flow); number++) {
        unsigned char marked[DATAGRAM_HEADER];
        size_t header = mark(flow, (uint64_t)number);
        int64_t until = before + UDP_TRIP_S * SECOND;
        ssize_t got;

        memcpy(marked, flow->buffer, header);
        if (send(flow->datagram.fd, flow->buffer, size, 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED) {
            flow_broke(flow, "send", errno);
            return;
        }
        flow->datagram.counts->count++;
        /* An answer to an earlier message that comes late has another number. */
        while ((got = receive_one(flow, until)) >= 0 && ((size_t)got != size || memcmp(flow->buffer, marked, header) != 0)) {
            flow->datagram.counts->strays++;
            if (clock_now() >= until)
                break;
        }
        if (flow->failure.error != 0)
            return;
        if (got == (ssize_t)size && memcmp(flow->buffer, marked, header) == 0)
            count_trip(flow, before, clock_now());
        flow_moved(flow, flow->datagram.fd);
        before = clock_now();
    }
}

void udp_pong(struct flow *flow)
{
    ssize_t got;

    while ((got = receive_one(flow, 0)) >= 0) {
        if (got != (ssize_t)flow->message.size ||
            (got >= DATAGRAM_HEADER && !datagram_has_tag(flow->buffer, flow->datagram.tag))) {
            flow->datagram.counts->strays++;
            if (flow_stopping(flow) || udp_ended(flow))
                break;
            continue;
        }
        flow->last_byte_ns = clock_now();
        if (flow->first_byte_ns == 0)
            flow->first_byte_ns = flow->last_byte_ns;
        flow_count(flow, got);
        marks_count(flow->marks, 1);
        flow->datagram.counts->count++;
        if (send(flow->datagram.fd, flow->buffer, (size_t)got, 0) < 0 && errno == ENOBUFS)
            flow->datagram.counts->refused++;
        flow_moved(flow, flow->datagram.fd);
    }
}

void udp_pingpong(struct flow *flow)
{
    (flow->sender ? ping : udp_pong)(flow);
    udp_finish(flow);
}
