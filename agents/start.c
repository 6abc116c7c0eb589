/* The start of an endpoint's flows: memory for all they count, then a thread for each. */
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "clock.h"
#include "endpoint.h"
#include "life.h"
#include "mptcp.h"

static int reserve_samples(struct flow *flow, int64_t duration_ns, int64_t interval_ns)
{
    /* Until the drain is over, and one more at the end. */
    int64_t rows = (duration_ns + (GRACE_S + 2) * SECOND) / interval_ns + 2;
    struct tcp_totals totals;

    sample_tcp(flow->fd, flow->multipath, &totals);
    flow->samples.advertised = totals.advertised_window >= 0;
    flow->samples.multipath = flow->multipath != NULL && flow->multipath->state != MULTIPATH_FELL_BACK;
    flow->samples.counted = totals.retransmits >= 0;
    flow->samples.rows = calloc((size_t)rows * (size_t)flow_columns(flow), sizeof *flow->samples.rows);
    flow->samples.room = flow->samples.rows == NULL ? 0 : (int)rows;
    return flow->samples.rows == NULL ? ENOMEM : 0;
}

static int reserve_bins(struct flow *flow, int64_t duration_ns, int64_t bin_ns)
{
    if (bin_ns == 0 || flow->sender || !flow->work->bins)
        return 0;
    flow->bins.width_ns = bin_ns;
    flow->bins.room = (duration_ns + GRACE_SILENT_S * SECOND) / bin_ns + 1;
    flow->bins.bytes = calloc((size_t)flow->bins.room, sizeof *flow->bins.bytes);
    return flow->bins.bytes == NULL ? ENOMEM : 0;
}

static int prepare(struct flow *flow, const struct start *start, int64_t interval_ns)
{
    int flags = fcntl(flow->fd, F_GETFL), error = 0;

    flow->time.at_ns = start->at_ns;
    flow->time.bulk_ns = start->at_ns + start->hold_ns;
    flow->time.end_ns = start->at_ns + start->duration_ns;
    flow->time.interval_ns = interval_ns;
    flow->message.iterations = start->iterations;
    flow->rate = start->rate;
    flow->datagram.burst = start->burst;
    /* Threads block in the kernel; only openings are served by poll. */
    if (flags < 0 || fcntl(flow->fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
        return errno;
    if (flow->work->prepare != NULL)
        error = flow->work->prepare(flow);
    if (error == 0)
        error = reserve_samples(flow, start->duration_ns, interval_ns);
    return error != 0 ? error : reserve_bins(flow, start->duration_ns, start->bin_ns);
}

int start_flows(struct endpoint *endpoint, const struct start *start)
{
    const struct settings *settings = &endpoint->settings;
    int error = 0;

    if (start->capture > 0) {
        endpoint->capture = capture_start(settings->interface, endpoint->port, (size_t)start->capture);
        if (endpoint->capture == NULL)
            return errno;
    }
    sample_nic(settings->interface, &endpoint->life.nic);
    endpoint->life.at_ns = start->at_ns;
    endpoint->life.end_ns = start->at_ns + start->duration_ns;
    endpoint->life.next_sample_ns = start->at_ns + settings->interval_ns;
    for (int i = 0; i < endpoint->flow_count && error == 0; i++)
        error = prepare(&endpoint->flows[i], start, settings->interval_ns);
    for (int i = 0; i < endpoint->flow_count && error == 0; i++)
        error = flow_start(&endpoint->flows[i]);
    endpoint->state = RUNNING;
    return error;
}
