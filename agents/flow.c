/* What all flows share, whatever they do: a thread, its end, its samples, and the window that is held. */
#include "flow.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "mptcp.h"
#include "system.h"
#include "zerocopy.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STACK_BYTES (1024 * 1024)
#else
#define STACK_BYTES (64 * 1024)
#endif
#define NAP_NS (20 * MS)
#define FOLLOW_EVERY 64 /* moves: its packets may come to arrive elsewhere */
#define MANY_TIMEOUTS 3 /* in a row: at least 1.4 s without an acknowledgement */

void flow_init(struct flow *flow, int number, bool sender, int wake)
{
    flow->fd = flow->datagram.fd = flow->file.fd = -1;
    flow->file.disk_ns = flow->file.sync_ns = -1;
    flow->number = number;
    flow->places.processor = flow->places.moved_to = -1;
    flow->sender = sender;
    flow->life.wake = wake;
}

void flow_fail(struct flow *flow, const char *where, int error)
{
    if (flow->failure.error != 0)
        return;
    flow->failure.error = error;
    flow->failure.where = where;
}

void flow_broke(struct flow *flow, const char *where, int error)
{
    if (!flow_stopping(flow))
        flow_fail(flow, where, error);
}

void flow_sleep_until(const struct flow *flow, int64_t at)
{
    int64_t now;

    /* In naps, so that an order to stop need not wait; the last one goes to the very instant. */
    while (!flow_stopping(flow) && at - (now = clock_now()) > 2 * NAP_NS)
        clock_sleep_until(now + NAP_NS);
    if (!flow_stopping(flow))
        clock_sleep_until(at);
}

static void nothing_more(struct flow *flow)
{
    if (flow->multipath != NULL)
        flow->multipath->ending = true;
    shutdown(flow->fd, SHUT_WR);
}

static int await_readable(struct flow *flow)
{
    struct pollfd readable = {.fd = flow->fd, .events = POLLIN};
    int got;

    do
        got = poll(&readable, 1, DRAIN_S * 1000);
    /* Completions of sends wake it, too. */
    while ((got < 0 && errno == EINTR) || (got > 0 && readable.revents == POLLERR && zerocopy_collect(flow)));
    return got;
}

void flow_finish(struct flow *flow)
{
    char byte;

    atomic_store(&flow->stopping, true);
    nothing_more(flow);
    if (!flow->sender || flow->failure.error != 0)
        return;
    /* At the peer's end-of-file everything sent has arrived, and the retransmits are all counted. */
    if (await_readable(flow) == 0)
        flow_fail(flow, "waiting for the receiver to end", ETIMEDOUT);
    else if (recv(flow->fd, &byte, 1, 0) < 0 && !atomic_load(&flow->stopped)) /* else the peer was stopped, too */
        flow_fail(flow, "waiting for the receiver to end", errno);
}

void flow_await_acknowledgement(struct flow *flow)
{
    unsigned char byte = 0;

    nothing_more(flow);
    if (await_readable(flow) == 1 && recv(flow->fd, &byte, 1, 0) == 1 && byte == ACKNOWLEDGED)
        flow->last_byte_ns = clock_now();
    else if (!atomic_load(&flow->stopped))
        flow_fail(flow, "waiting for the receiver's acknowledgement", ETIMEDOUT);
}

/* Linux computes anew what fits into a socket's buffer when it sees how well segments fill their memory, and then advertises up to a
 * third more than was asked for, of jumbo frames nearly twice that (6.18). It forgets a clamp that was set before. Until a few windows
 * have passed it is left alone: a window that has once been wider comes back to whole segments, one that has not stays short of them
 * by the opening's bytes. */
void flow_hold_window(struct flow *flow, int64_t got)
{
    int bytes = (int)flow->window.bytes;

    if (bytes <= 0)
        return;
    if (flow->window.unheld > 0)
        flow->window.unheld -= got;
    else
        system_clamp_window(flow->fd, bytes);
}

ssize_t flow_discard(struct flow *flow, size_t bytes)
{
    return system_discard(flow->fd, bytes);
}

void flow_took(struct flow *flow, int64_t got)
{
    flow->last_byte_ns = clock_now();
    if (flow->first_byte_ns == 0)
        flow->first_byte_ns = flow->last_byte_ns;
    flow_bin(flow, flow->last_byte_ns, got);
    flow_hold_window(flow, got);
}

/* A processor that sleeps takes some ten microseconds to wake: a thread that runs where its packets arrive is woken by one that is awake. */
void flow_moved(struct flow *flow, int fd)
{
    struct places *places = &flow->places;

    if (flow->placement->packets && places->steps++ % FOLLOW_EVERY == 1)
        places->moved_to = placement_follow(fd, places->moved_to);
    atomic_store_explicit(&places->processor, placement_now(), memory_order_relaxed);
}

static void note_place(struct places *places)
{
    int processor = atomic_load_explicit(&places->processor, memory_order_relaxed);

    for (int i = 0; processor >= 0 && i < PLACES_MAX; i++) {
        if (places->found[i].samples == 0)
            places->found[i].processor = processor;
        if (places->found[i].processor == processor) {
            places->found[i].samples++;
            return;
        }
    }
}

static void *run(void *argument)
{
    struct flow *flow = argument;
    uint64_t one = 1;

    int error = flow->placement->fixed ? placement_apply(flow->placement) : 0;

    if (error != 0)
        flow_fail(flow, "placement", error);
    system_wake_exactly();
    if (flow->sender)
        flow_sleep_until(flow, flow->time.at_ns);
    flow->work->run(flow);
    if (flow->last_byte_ns == 0)
        flow->first_byte_ns = 0;
    atomic_store(&flow->ended, true);
    if (write(flow->life.wake, &one, sizeof one) < 0)
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
        error = pthread_create(&flow->life.thread, &attributes, run, flow);
    flow->life.running = error == 0;
    pthread_attr_destroy(&attributes);
    return error;
}

void flow_stop(struct flow *flow)
{
    atomic_store(&flow->stopping, true);
    if (flow->multipath != NULL)
        flow->multipath->ending = true;
    /* A sender has data queued that must still arrive; a receiver waits for an end-of-file that may never come. */
    shutdown(flow->fd, flow->sender ? SHUT_WR : SHUT_RD);
}

void flow_sample(struct flow *flow, int64_t now)
{
    int columns = flow_columns(flow);
    int64_t *row = flow->samples.rows + (size_t)flow->samples.count * (size_t)columns;
    struct tcp_totals totals;

    note_place(&flow->places);
    if (flow->samples.count == flow->samples.room || (flow->sender && flow->work->paced))
        return;
    row[0] = now;
    row[1] = atomic_load_explicit(&flow->bytes, memory_order_relaxed);
    if (flow->multipath != NULL && atomic_load(&flow->ended))
        flow->multipath->ending = true;
    if (columns > COLUMNS_RECEIVER || (flow->multipath != NULL && !flow->multipath->ending))
        sample_tcp(flow->fd, flow->multipath, &totals);
    if (columns > COLUMNS_RECEIVER)
        row[2] = totals.retransmits;
    if (columns >= COLUMNS_SENDER) {
        row[3] = totals.rtt_us;
        row[4] = totals.cwnd;
        row[5] = totals.mss;
        if (columns == COLUMNS_ADVERTISED)
            row[6] = totals.advertised_window;
    }
    flow->samples.count++;
}

bool flow_unacknowledged(const struct flow *flow)
{
    return flow->sender && flow->totals.unacked > 0 && flow->totals.timeouts >= MANY_TIMEOUTS;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void flow_free(struct flow *flow)
{
    close_one(&flow->fd);
    close_one(&flow->datagram.fd);
    close_one(&flow->file.fd);
    free(flow->samples.rows);
    free(flow->buffer);
    free(flow->message.trips);
    free(flow->datagram.counts);
    free(flow->bins.bytes);
    free(flow->marks);
    mptcp_free(flow->multipath);
    flow->samples = (struct flow_samples){0};
    flow->buffer = NULL;
    flow->message.trips = NULL;
    flow->datagram.counts = NULL;
    flow->bins.bytes = NULL;
    flow->marks = NULL;
    flow->multipath = NULL;
}
