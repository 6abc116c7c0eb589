/* Runs an endpoint from start to end: allocates memory, starts a thread per flow, takes samples, and ends the flows if the peer hangs. */
#include "clock.h"
#include "control.h"
#include "endpoint.h"
#include "mptcp.h"
#include "system.h"

#define GRACE_SILENT_S 2     /* most seconds after the test that a receiver waits for the end-of-file while no data arrives */
#define GRACE_S 10           /* most seconds after the test that a receiver waits while data still arrives */
#define CPU_LEAD_NS (2 * MS) /* time before the start at which CPU times are read, so that reading /proc/stat delays no flow */
#define SMALL_BYTES 4096     /* most bytes that a connection sends in segments below the MSS: its opening, and a stream's first send */
#define MANY_TIMEOUTS 3      /* retransmission timeouts in a row that count as a failure: at least 1.4 s without acknowledgement */

static int allocate_samples(struct flow *flow)
{
    /* There are rows for the time until a receiver gives up waiting for the end-of-file (GRACE_S), and one for the end. */
    int64_t duration_ns = flow->start->end_ns - flow->start->at_ns;
    int64_t rows = (duration_ns + (GRACE_S + 2) * SECOND) / flow->request->interval_ns + 2;
    struct tcp_totals totals;

    flow_read_totals(flow, &totals);
    flow->samples.advertised = totals.advertised_window >= 0;
    flow->samples.multipath = flow->multipath != NULL && flow->multipath->state != MULTIPATH_FELL_BACK;
    flow->samples.counted = totals.retransmits >= 0;
    flow->samples.rows = calloc((size_t)rows * (size_t)flow_columns(flow), sizeof *flow->samples.rows);
    flow->samples.room = (int)rows;
    return flow->samples.rows == NULL ? ENOMEM : 0;
}

static int allocate_bins(struct flow *flow)
{
    const struct start *start = flow->start;

    if (start->bin_ns == 0 || flow->sender || !flow->work->bins)
        return 0;
    flow->bins.room = (start->end_ns - start->at_ns + GRACE_SILENT_S * SECOND) / start->bin_ns + 1;
    flow->bins.bytes = calloc((size_t)flow->bins.room, sizeof *flow->bins.bytes);
    return flow->bins.bytes == NULL ? ENOMEM : 0;
}

static int prepare(struct flow *flow)
{
    int flags = fcntl(flow->fd, F_GETFL), error;

    /* The thread uses blocking calls; the main loop polled the socket only for the opening. */
    if (flags < 0 || fcntl(flow->fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
        return errno;
    if (flow->sender)
        system_reset_at_close(flow->fd, false);
    if (flow->sender && flow->work->trips && (flow->trips = calloc(1, sizeof *flow->trips)) == NULL)
        return ENOMEM;
    error = flow->work->prepare(flow);
    if (error == 0)
        error = allocate_samples(flow);
    return error != 0 ? error : allocate_bins(flow);
}

/* List the receiver's ports, each once: that of the connections, and those of the flows' datagrams. Returns how many there are. */
static int list_ports(const struct endpoint *endpoint, int ports[CAPTURE_PORTS])
{
    int count = 0;

    ports[count++] = endpoint->port;
    for (int i = 0; i < endpoint->flow_count; i++) {
        int port = endpoint->flows[i].datagram.port, place = 0;

        while (place < count && ports[place] != port)
            place++;
        if (port != 0 && place == count)
            ports[count++] = port;
    }
    return count;
}

int life_start(struct endpoint *endpoint)
{
    int ports[CAPTURE_PORTS];
    const struct request *request = &endpoint->request;
    int error = 0;

    if (endpoint->start.capture > 0) {
        endpoint->capture = capture_start(request->interface, ports, list_ports(endpoint, ports), (size_t)endpoint->start.capture);
        if (endpoint->capture == NULL)
            return errno;
    }
    sample_nic(request->interface, &endpoint->life.nic);
    sample_stack(&endpoint->life.stack);
    endpoint->life.next_sample_ns = endpoint->start.at_ns + request->interval_ns;
    for (int i = 0; i < endpoint->flow_count && error == 0; i++)
        error = prepare(&endpoint->flows[i]);
    for (int i = 0; i < endpoint->flow_count && error == 0; i++)
        error = flow_start(&endpoint->flows[i]);
    endpoint->state = RUNNING;
    return error;
}

static void write_ended(const struct endpoint *endpoint)
{
    bool failed = endpoint->failure.error != 0;

    event_begin("ended");
    line_add_count("endpoint", endpoint->number);
    line_add_text("error", failed ? errno_name(endpoint->failure.error) : NULL);
    line_add_text("message", failed ? endpoint->failure.message : NULL);
    line_end();
}

/* Store a flow's failure. If a sender's segments were retransmitted repeatedly, report that instead of a mere timeout. */
static void note_failure(struct endpoint *endpoint, const struct flow *flow)
{
    const struct tcp_totals *totals = &flow->totals;
    /* Timeouts in a row mean that the last segment is not acknowledged. A reset empties the queue, so `unacked` is 0 after it; of several
     * paths it tells whether another one delivered the data. */
    bool waiting = totals->unacked > 0 || flow->multipath == NULL;

    if (flow->sender && waiting && totals->timeouts >= MANY_TIMEOUTS)
        endpoint_fail(endpoint, ETIMEDOUT,
                      "flow %d to %s: %lld segments of at most %lld bytes were retransmitted, %lld timeouts in a row, and not "
                      "acknowledged; %lld bytes were acknowledged before%s",
                      flow->number, endpoint->peer, (long long)totals->retransmits, (long long)totals->mss,
                      (long long)totals->timeouts, (long long)totals->acked_bytes,
                      totals->acked_bytes < totals->mss + SMALL_BYTES ? ": check the MTU of the path" : "");
    if (flow->failure.error != 0)
        endpoint_fail_flow(endpoint, flow->number, flow->failure.where, flow->failure.error);
}

static void join_ended(struct endpoint *endpoint)
{
    int running = 0;

    for (int i = 0; i < endpoint->flow_count; i++) {
        struct flow *flow = &endpoint->flows[i];

        if (!flow->running)
            continue;
        if (!atomic_load(&flow->ended)) {
            running++;
            continue;
        }
        pthread_join(flow->thread, NULL);
        flow->running = false;
        flow_sample(flow);
        flow_keep_known(flow);
        note_failure(endpoint, flow);
    }
    if (running > 0)
        return;
    sample_cpu(&endpoint->life.after);
    if (endpoint->capture != NULL)
        capture_stop(endpoint->capture);
    endpoint->state = ENDED;
    write_ended(endpoint);
}

/* Return when to stop a sender that is still running. A message in transit gets more time, because the receiver waits for all of it. */
static int64_t stop_ns(const struct endpoint *endpoint)
{
    return endpoint->start.end_ns + (endpoint->request.work->messages ? GRACE_SILENT_S * SECOND : 0);
}

/* Stop senders whose time is over; they may be blocked. Fail a receiver that gets no end-of-file. */
static void end_late(struct endpoint *endpoint, int64_t now)
{
    int64_t bytes, silent_ns = GRACE_SILENT_S * SECOND + (endpoint->request.work->scheduled ? REPLIES_NS : 0);

    if (now < endpoint->start.end_ns)
        return;
    if (endpoint->sender) {
        for (int i = 0; i < endpoint->flow_count && now >= stop_ns(endpoint); i++)
            if (endpoint->flows[i].running && !atomic_load(&endpoint->flows[i].stopping))
                flow_stop(&endpoint->flows[i]);
        return;
    }
    bytes = endpoint_bytes(endpoint);
    if (bytes != endpoint->life.moved_bytes || endpoint->life.moved_ns == 0) {
        endpoint->life.moved_bytes = bytes;
        endpoint->life.moved_ns = now;
    }
    if (now - endpoint->life.moved_ns >= silent_ns || now - endpoint->start.end_ns >= GRACE_S * SECOND)
        endpoint_fail(endpoint, ETIMEDOUT, "no end-of-file from the sender at %s: %lld bytes came in all",
                      endpoint->peer, (long long)bytes);
}

static void take_samples(struct endpoint *endpoint, int64_t now)
{
    if (now < endpoint->life.next_sample_ns)
        return;
    for (int i = 0; i < endpoint->flow_count; i++)
        if (endpoint->flows[i].running)
            flow_sample(&endpoint->flows[i]);
    /* Sample times are absolute, so a late sample does not delay later ones. Missed samples are skipped. */
    while (endpoint->life.next_sample_ns <= now)
        endpoint->life.next_sample_ns += endpoint->request.interval_ns;
}

void life_serve(struct endpoint *endpoint, int64_t now)
{
    if (endpoint->state != RUNNING)
        return;
    if (endpoint->life.before.at_us < 0 && now >= endpoint->start.at_ns - CPU_LEAD_NS)
        sample_cpu(&endpoint->life.before);
    take_samples(endpoint, now);
    end_late(endpoint, now);
    join_ended(endpoint);
}

int64_t life_deadline(const struct endpoint *endpoint)
{
    int64_t next = endpoint->life.next_sample_ns;

    if (endpoint->state != RUNNING)
        return INT64_MAX;
    if (endpoint->life.before.at_us < 0)
        return endpoint->start.at_ns - CPU_LEAD_NS;
    for (int i = 0; i < endpoint->flow_count && endpoint->sender; i++)
        if (endpoint->flows[i].running && !atomic_load(&endpoint->flows[i].stopping))
            next = clock_sooner(next, stop_ns(endpoint));
    return next;
}
