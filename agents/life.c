/* Samples, and ends: the main loop looks at an endpoint whenever its time has come or a flow has ended. */
#include "life.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "control.h"
#include "endpoint.h"

#define CPU_LEAD_NS (2 * MS) /* reading /proc/stat must not delay the start itself */
#define SMALL_BYTES 4096      /* what passes in small segments: the opening, and the first send of a stream */

static void say_ended(const struct endpoint *endpoint)
{
    line_begin();
    line_add("{\"event\":\"ended\",\"endpoint\":%d,\"error\":", endpoint->number);
    if (endpoint->failure.error != 0) {
        line_add("\"%s\",\"message\":", errno_name(endpoint->failure.error));
        line_add_string(endpoint->failure.message);
        line_add("}");
    } else {
        line_add("null,\"message\":null}");
    }
    line_end();
}

/* A sender whose segments are retransmitted again and again reports more than a timeout. */
static void judge(struct endpoint *endpoint, const struct flow *flow)
{
    const struct tcp_totals *totals = &flow->totals;
    const char *side = endpoint->sender ? "to" : "at";

    if (flow_unacknowledged(flow))
        endpoint_fail(endpoint, ETIMEDOUT,
                      "flow %d %s %s: %lld segments of at most %lld bytes were retransmitted, %lld timeouts in a row, and not "
                      "acknowledged; %lld bytes were acknowledged before%s",
                      flow->number, side, endpoint->peer, (long long)totals->retransmits, (long long)totals->mss,
                      (long long)totals->timeouts, (long long)totals->acked_bytes,
                      totals->acked_bytes < totals->mss + SMALL_BYTES ? ": check the MTU of the path" : "");
    if (flow->failure.error != 0)
        endpoint_fail(endpoint, flow->failure.error, "flow %d %s %s: %s: %s", flow->number, side, endpoint->peer,
                      flow->failure.where, strerror(flow->failure.error));
}

static void join_ended(struct endpoint *endpoint)
{
    int running = 0;

    for (int i = 0; i < endpoint->flow_count; i++) {
        struct flow *flow = &endpoint->flows[i];

        if (!flow->life.running)
            continue;
        if (!atomic_load(&flow->ended)) {
            running++;
            continue;
        }
        pthread_join(flow->life.thread, NULL);
        flow->life.running = false;
        flow_sample(flow, clock_now());
        judge(endpoint, flow);
    }
    if (running > 0)
        return;
    sample_cpu(&endpoint->life.after);
    if (endpoint->capture != NULL)
        capture_stop(endpoint->capture);
    endpoint->state = ENDED;
    say_ended(endpoint);
}

/* When a sender that still runs is made to end. A message that is on its way is let through: its peer waits for all of it. */
static int64_t late_ns(const struct endpoint *endpoint)
{
    return endpoint->life.end_ns + (endpoint->settings.work->messages ? GRACE_SILENT_S * SECOND : 0);
}

/* A sender that is blocked when its time is over is woken; a receiver whose peer fell silent is given up. */
static void end_late(struct endpoint *endpoint, int64_t now)
{
    int64_t bytes;

    if (now < endpoint->life.end_ns)
        return;
    if (endpoint->sender) {
        for (int i = 0; i < endpoint->flow_count && now >= late_ns(endpoint); i++)
            if (endpoint->flows[i].life.running && !atomic_load(&endpoint->flows[i].stopping))
                flow_stop(&endpoint->flows[i]);
        return;
    }
    bytes = endpoint_bytes(endpoint);
    if (bytes != endpoint->life.moved_bytes || endpoint->life.moved_ns == 0) {
        endpoint->life.moved_bytes = bytes;
        endpoint->life.moved_ns = now;
    }
    if (now - endpoint->life.moved_ns >= GRACE_SILENT_S * SECOND || now - endpoint->life.end_ns >= GRACE_S * SECOND)
        endpoint_fail(endpoint, ETIMEDOUT, "no end-of-file from the sender at %s: %lld bytes came in all",
                      endpoint->peer, (long long)bytes);
}

static void take_samples(struct endpoint *endpoint, int64_t now)
{
    if (now < endpoint->life.next_sample_ns)
        return;
    for (int i = 0; i < endpoint->flow_count; i++)
        if (endpoint->flows[i].life.running)
            flow_sample(&endpoint->flows[i], clock_now());
    /* On absolute times: a late wake-up does not move the later ones; missed ones are not made up. */
    while (endpoint->life.next_sample_ns <= now)
        endpoint->life.next_sample_ns += endpoint->settings.interval_ns;
}

void life_serve(struct endpoint *endpoint, int64_t now)
{
    if (endpoint->state != RUNNING)
        return;
    if (!endpoint->life.cpu_taken && now >= endpoint->life.at_ns - CPU_LEAD_NS) {
        sample_cpu(&endpoint->life.before);
        endpoint->life.cpu_taken = true;
    }
    take_samples(endpoint, now);
    end_late(endpoint, now);
    join_ended(endpoint);
}

int64_t life_deadline(const struct endpoint *endpoint)
{
    int64_t next = endpoint->life.next_sample_ns;

    if (endpoint->state != RUNNING)
        return INT64_MAX;
    if (!endpoint->life.cpu_taken)
        return endpoint->life.at_ns - CPU_LEAD_NS;
    if (endpoint->sender) {
        for (int i = 0; i < endpoint->flow_count; i++)
            if (endpoint->flows[i].life.running && !atomic_load(&endpoint->flows[i].stopping) && late_ns(endpoint) < next)
                next = late_ns(endpoint);
    }
    return next;
}
