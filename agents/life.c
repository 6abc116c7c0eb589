/* From start to end: samples at their times, and an end for everything, whatever the peer does. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "endpoint.h"

#define CPU_LEAD_NS (2 * MS) /* reading /proc/stat must not delay the start itself */

static int64_t received(const struct endpoint *endpoint)
{
    int64_t bytes = 0;

    for (int i = 0; i < endpoint->flow_count; i++)
        bytes += atomic_load_explicit(&endpoint->flows[i].bytes, memory_order_relaxed);
    return bytes;
}

static void say_ended(const struct endpoint *endpoint)
{
    line_begin();
    line_add("{\"event\":\"ended\",\"endpoint\":%d,\"error\":", endpoint->number);
    if (endpoint->error != 0) {
        line_add("\"%s\",\"message\":", errno_name(endpoint->error));
        line_add_string(endpoint->message);
        line_add("}");
    } else {
        line_add("null,\"message\":null}");
    }
    line_end();
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
        flow_sample(flow, clock_now());
        if (flow->error != 0)
            endpoint_fail(endpoint, flow->error, "flow %d: %s: %s", flow->number, flow->where, strerror(flow->error));
    }
    if (running > 0)
        return;
    sample_cpu(&endpoint->after);
    if (endpoint->capture != NULL)
        capture_stop(endpoint->capture);
    endpoint->state = ENDED;
    say_ended(endpoint);
}

/* When a sender that still runs is made to end. A message that is on its way is let through: its peer waits for all of it. */
static int64_t late_ns(const struct endpoint *endpoint)
{
    return endpoint->settings.work == STREAM ? endpoint->end_ns : endpoint->end_ns + GRACE_SILENT_S * SECOND;
}

/* A sender that is blocked when its time is over is woken; a receiver whose peer fell silent is given up. */
static void end_late(struct endpoint *endpoint, int64_t now)
{
    int64_t bytes;

    if (now < endpoint->end_ns)
        return;
    if (endpoint->sender) {
        for (int i = 0; i < endpoint->flow_count && now >= late_ns(endpoint); i++)
            if (endpoint->flows[i].running && !atomic_load(&endpoint->flows[i].stopping))
                flow_stop(&endpoint->flows[i]);
        return;
    }
    bytes = received(endpoint);
    if (bytes != endpoint->moved_bytes || endpoint->moved_ns == 0) {
        endpoint->moved_bytes = bytes;
        endpoint->moved_ns = now;
    }
    if (now - endpoint->moved_ns >= GRACE_SILENT_S * SECOND || now - endpoint->end_ns >= GRACE_S * SECOND)
        endpoint_fail(endpoint, ETIMEDOUT, "no end-of-file from the sender");
}

static void take_samples(struct endpoint *endpoint, int64_t now)
{
    if (now < endpoint->next_sample_ns)
        return;
    for (int i = 0; i < endpoint->flow_count; i++)
        if (endpoint->flows[i].running)
            flow_sample(&endpoint->flows[i], clock_now());
    /* On absolute times: a late wake-up does not move the later ones; missed ones are not made up. */
    while (endpoint->next_sample_ns <= now)
        endpoint->next_sample_ns += endpoint->settings.interval_ns;
}

void life_serve(struct endpoint *endpoint, int64_t now)
{
    if (endpoint->state != RUNNING)
        return;
    if (!endpoint->cpu_taken && now >= endpoint->at_ns - CPU_LEAD_NS) {
        sample_cpu(&endpoint->before);
        endpoint->cpu_taken = true;
    }
    take_samples(endpoint, now);
    end_late(endpoint, now);
    join_ended(endpoint);
}

int64_t life_deadline(const struct endpoint *endpoint)
{
    int64_t next = endpoint->next_sample_ns;

    if (endpoint->state != RUNNING)
        return INT64_MAX;
    if (!endpoint->cpu_taken)
        return endpoint->at_ns - CPU_LEAD_NS;
    if (endpoint->sender) {
        for (int i = 0; i < endpoint->flow_count; i++)
            if (endpoint->flows[i].running && !atomic_load(&endpoint->flows[i].stopping) && late_ns(endpoint) < next)
                next = late_ns(endpoint);
    }
    return next;
}
