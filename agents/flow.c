/* What all flows share, whatever they do: the thread and its end, sending and receiving, samples, and the window that is held. */
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

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STACK_BYTES (1024 * 1024)
#else
#define STACK_BYTES (64 * 1024)
#endif
#define NAP_NS (20 * MS)
#define FOLLOW_EVERY 64   /* calls that moved bytes: later packets may arrive on another processor */
#define ACKNOWLEDGED 0x06 /* a receiver's one byte: it has everything */
#define DRAIN_S 10        /* how long a sender waits for its receiver to end */
/* Large buffers begin at a page's start: elsewhere a copy takes 1.5 times the processor time (docs/measured/peers.md). */
#define PAGE_BYTES 4096

int wake_fd = -1;
unsigned char data_bytes[DATA_BYTES] __attribute__((aligned(PAGE_BYTES)));

void data_make(void)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15); /* xorshift */

    if (data_bytes[0] != 0)
        return;
    for (size_t i = 0; i < DATA_BYTES; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data_bytes[i] = (unsigned char)state;
    }
}

void flow_init(struct flow *flow, int number, bool sender, const struct settings *settings, const struct start *start)
{
    flow->fd = flow->datagram.fd = flow->file.fd = -1;
    flow->file.disk_ns = flow->file.sync_ns = -1;
    flow->number = number;
    flow->sender = sender;
    flow->settings = settings;
    flow->start = start;
    flow->work = settings->work;
    flow->places.processor = flow->places.moved_to = -1;
    flow->window.bytes = sockopts_window(&settings->sockopts);
    flow->window.unheld = 4 * flow->window.bytes;
    flow->datagram.tag = datagram_tag(settings->token, (uint32_t)number);
}

int flow_buffer(struct flow *flow, int64_t bytes)
{
    size_t room = ((size_t)bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

    flow->buffer = aligned_alloc(PAGE_BYTES, room);
    if (flow->buffer == NULL)
        return ENOMEM;
    for (size_t done = 0; flow->sender && done < room; done += DATA_BYTES)
        memcpy(flow->buffer + done, data_bytes, room - done < DATA_BYTES ? room - done : DATA_BYTES);
    return 0;
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

    /* In naps, so that an order to stop need not wait; the last one ends at that very instant. */
    while (!flow_stopping(flow) && at - (now = clock_now()) > 2 * NAP_NS)
        clock_sleep_until(now + NAP_NS);
    if (!flow_stopping(flow))
        clock_sleep_until(at);
}

bool flow_send(struct flow *flow, size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        ssize_t put = send(flow->fd, flow->buffer + sent, bytes - sent, MSG_NOSIGNAL);

        if (put > 0) {
            sent += (size_t)put;
        } else if (errno != EINTR) {
            flow_broke(flow, "send", errno);
            return false;
        }
    }
    return true;
}

bool flow_receive(struct flow *flow, size_t piece, bool (*keep)(struct flow *flow, size_t bytes))
{
    ssize_t got;

    while ((got = flow->buffer != NULL ? recv(flow->fd, flow->buffer, piece, 0) : system_discard(flow->fd, piece)) != 0) {
        int64_t now = clock_now();

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            flow_broke(flow, "recv", errno);
            return false;
        }
        flow_hold_window(flow, got);
        if (keep != NULL && !keep(flow, (size_t)got))
            return false;
        flow_took(flow, flow->fd, now, got);
    }
    return true;
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

void flow_acknowledge(struct flow *flow)
{
    static const unsigned char byte = ACKNOWLEDGED;

    if (send(flow->fd, &byte, 1, MSG_NOSIGNAL) != 1)
        flow_broke(flow, "send", errno);
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

void flow_sample_last(struct flow *flow, struct tcp_totals *totals)
{
    if (flow->multipath != NULL)
        atomic_store(&flow->multipath->last, true);
    sample_tcp(flow->fd, flow->multipath, totals);
}

void flow_end(struct flow *flow)
{
    flow_sample_last(flow, &flow->totals);
    nothing_more(flow);
}

/* Linux recomputes what fits into a socket's buffer when it sees how well segments fill their memory, and then advertises up to a third
 * more than was requested, with jumbo frames nearly twice that (6.18). It forgets a clamp that was set before. So the window is held only
 * after a few windows have passed: a window that was wider before comes back to whole segments, another stays short of them by the bytes
 * of the opening. */
void flow_hold_window(struct flow *flow, int64_t got)
{
    if (flow->window.bytes <= 0)
        return;
    if (flow->window.unheld > 0)
        flow->window.unheld -= got;
    else
        system_clamp_window(flow->fd, (int)flow->window.bytes);
}

/* A processor that sleeps takes some ten microseconds to wake: a thread that runs where its packets arrive is woken by one that is awake. */
void flow_moved(struct flow *flow, int fd, int64_t now, int64_t bytes)
{
    struct places *places = &flow->places;

    flow->last_byte_ns = now;
    if (flow->first_byte_ns == 0)
        flow->first_byte_ns = now;
    atomic_fetch_add_explicit(&flow->bytes, bytes, memory_order_relaxed);
    if (flow->settings->placement.packets && places->steps++ % FOLLOW_EVERY == 1)
        places->moved_to = placement_follow(fd, places->moved_to);
    atomic_store_explicit(&places->processor, placement_now(), memory_order_relaxed);
}

void flow_took(struct flow *flow, int fd, int64_t now, int64_t bytes)
{
    int64_t bin = flow->bins.bytes == NULL ? -1 : (now - flow->start->at_ns) / flow->start->bin_ns;

    if (bin >= 0 && bin < flow->bins.room)
        flow->bins.bytes[bin] += (uint32_t)bytes;
    flow_moved(flow, fd, now, bytes);
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
    int error = flow->settings->placement.fixed ? placement_apply(&flow->settings->placement) : 0;

    if (error != 0)
        flow_fail(flow, "placement", error);
    system_wake_exactly();
    if (flow->sender)
        flow_sleep_until(flow, flow->start->at_ns);
    (flow->sender ? flow->work->send : flow->work->receive)(flow);
    flow->work->finish(flow);
    if (flow->last_byte_ns == 0)
        flow->first_byte_ns = 0;
    atomic_store(&flow->ended, true);
    if (write(wake_fd, &one, sizeof one) < 0)
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
    if (flow->multipath != NULL)
        flow->multipath->ending = true;
    /* Its thread ends the connection: before its last datagram the receiver would end too early, and count that as lost. */
    if (flow->sender && flow->datagram.fd >= 0)
        return;
    /* A sender has data queued that must still arrive; a receiver waits for an end-of-file that may never come. */
    shutdown(flow->fd, flow->sender ? SHUT_WR : SHUT_RD);
}

void flow_sample(struct flow *flow)
{
    int columns = flow_columns(flow);
    int64_t *row = flow->samples.rows + (size_t)flow->samples.count * (size_t)columns;
    struct tcp_totals totals;

    note_place(&flow->places);
    if (flow->samples.count == flow->samples.room || (flow->sender && flow->work->paced))
        return;
    row[0] = clock_now();
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

void flow_close(struct flow *flow)
{
    int *const descriptors[] = {&flow->fd, &flow->datagram.fd, &flow->file.fd};

    for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++) {
        if (*descriptors[i] >= 0)
            close(*descriptors[i]);
        *descriptors[i] = -1;
    }
}

void flow_free(struct flow *flow)
{
    flow_close(flow);
    free(flow->samples.rows);
    free(flow->buffer);
    free(flow->trips);
    free(flow->datagram.counts);
    free(flow->bins.bytes);
    free(flow->marks);
    free(flow->multipath);
}
