/* Probes of the round trip beside other traffic: a datagram every interval, each sent back. An answer that is late does not delay the
 * next probe. A row of samples for each: when it was sent, how many of those up to it were answered, and its round trip. */
#include "udp.h"

#include <poll.h>
#include <sys/socket.h>

#include "clock.h"
#include "datagrams.h"
#include "flow.h"

#define NAP_NS (50 * MS) /* so that an order to stop need not wait */

int udp_prepare_probe(struct flow *flow)
{
    return udp_prepare(flow, DATAGRAM_MAX);
}

static int64_t *row_of(const struct flow *flow, int64_t number)
{
    return flow->samples.rows + (size_t)number * COLUMNS_PROBE;
}

static void send_probe(struct flow *flow)
{
    int64_t now = clock_now();

    if (flow->samples.count == 0)
        flow->first_byte_ns = now;
    datagram_write(flow->buffer, flow->datagram.tag, flow->samples.count, now);
    row_of(flow, flow->samples.count)[0] = now;
    flow->samples.count++;
    flow->datagram.counts->count++;
    /* Lost like one that any other queue drops. */
    if (send(flow->datagram.fd, flow->buffer, (size_t)flow->message.size, 0) < 0)
        flow->datagram.counts->refused++;
}

/* Take all answers that are there. */
static void take_answers(struct flow *flow)
{
    ssize_t got;

    while ((got = recv(flow->datagram.fd, flow->buffer, DATAGRAM_MAX, MSG_DONTWAIT)) >= 0) {
        int64_t now = clock_now(), number = got == flow->message.size ? datagram_number(flow->buffer) : INT64_MAX;

        /* A second answer to a probe does not count. */
        if (number >= flow->samples.count || !datagram_has_tag(flow->buffer, flow->datagram.tag) || row_of(flow, number)[1] != 0) {
            flow->datagram.counts->strays++;
            continue;
        }
        row_of(flow, number)[1] = 1;
        row_of(flow, number)[2] = now - row_of(flow, number)[0];
        flow->last_byte_ns = now;
        flow_count(flow, got);
    }
}

/* Until when answers are waited for: a second after the last probe that has none. */
static int64_t patience_ns(const struct flow *flow)
{
    for (int64_t number = flow->samples.count - 1; number >= 0; number--)
        if (row_of(flow, number)[1] == 0)
            return row_of(flow, number)[0] + UDP_TRIP_S * SECOND;
    return 0;
}

static void send_probes(struct flow *flow)
{
    struct pollfd answers = {.fd = flow->datagram.fd, .events = POLLIN};
    int64_t next = flow->time.at_ns, now;

    while (!flow_stopping(flow) && ((now = clock_now()) < flow->time.end_ns || now < patience_ns(flow))) {
        struct timespec nap;

        if (now >= next && next < flow->time.end_ns && flow->samples.count < flow->samples.room) {
            send_probe(flow);
            next += flow->time.interval_ns;
        }
        nap = clock_spec(next > now && next - now < NAP_NS ? next - now : NAP_NS);
        if (next > now || next >= flow->time.end_ns)
            ppoll(&answers, 1, &nap, NULL);
        take_answers(flow);
    }
}

/* From single rows to running ones: a probe without an answer has the round trip of the one before. */
static void sum_up(struct flow *flow)
{
    for (int64_t number = 1; number < flow->samples.count; number++) {
        int64_t *row = row_of(flow, number), *before = row_of(flow, number - 1);

        if (row[1] == 0)
            row[2] = before[2];
        row[1] += before[1];
    }
}

void udp_probe(struct flow *flow)
{
    if (!flow->sender) {
        udp_pong(flow);
    } else {
        send_probes(flow);
        sum_up(flow);
    }
    udp_finish(flow);
}
