/* The functions that all kinds of flows use: thread, sending and receiving, samples, limiting the window. */
#include "flow.h"

#include "clock.h"
#include "mptcp.h"
#include "system.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STACK_BYTES (1024 * 1024)
#else
#define STACK_BYTES (64 * 1024)
#endif
#define NAP_NS (20 * MS)
#define STOP_MS 50        /* time after which a receiver that waits for room checks whether it was stopped */
#define FOLLOW_EVERY 64   /* the thread checks which processor handles its packets once per this many calls of flow_count */
#define ACKNOWLEDGED 0x06 /* byte with which a receiver acknowledges that it has everything */
#define GIVEN_UP 0x15     /* byte with which a receiver ends before its sender does */
#define DRAIN_S 10        /* seconds for which a sender waits for its receiver to end */
#define PAGE_BYTES 4096   /* alignment of buffers: a copy from an unaligned buffer takes 1.5 times as long (docs/measured/peers.md) */

int wake_fd = -1;
unsigned char data_bytes[DATA_BYTES] __attribute__((aligned(PAGE_BYTES)));

void data_fill(void)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15); /* seed of the random generator xorshift */

    if (data_bytes[0] != 0)
        return;
    for (size_t i = 0; i < DATA_BYTES; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        data_bytes[i] = (unsigned char)state;
    }
}

void flow_init(struct flow *flow, int number, bool sender, const struct request *request, const struct start *start)
{
    flow->fd = flow->datagram.fd = flow->file.fd = -1;
    flow->file.disk_ns = flow->file.sync_ns = -1;
    flow->number = number;
    flow->sender = sender;
    flow->request = request;
    flow->start = start;
    flow->work = request->work;
    sample_clear(&flow->known);
    flow->places.processor = flow->places.moved_to = -1;
    flow->window.bytes = sockopts_number(&request->sockopts, "window");
    flow->window.unheld = 4 * flow->window.bytes;
    flow->datagram.tag = datagram_tag(request->token, (uint32_t)number);
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

void flow_fail_unless_stopping(struct flow *flow, const char *where, int error)
{
    if (!flow_is_stopping(flow))
        flow_fail(flow, where, error);
}

void flow_sleep_until(const struct flow *flow, int64_t at)
{
    int64_t now;

    /* Sleep in short naps, so that an order to stop takes effect soon. */
    while (!flow_is_stopping(flow) && at - (now = clock_now()) > 2 * NAP_NS)
        clock_sleep_until(now + NAP_NS);
    if (!flow_is_stopping(flow))
        clock_sleep_until(at);
}

bool flow_send(struct flow *flow, size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        /* No end-of-file wakes a receiver that waits for room, so it looks itself whether it was stopped. */
        ssize_t put = send(flow->fd, flow->buffer + sent, bytes - sent, MSG_NOSIGNAL | (flow->sender ? 0 : MSG_DONTWAIT));

        if (put > 0) {
            sent += (size_t)put;
        } else if (errno == EAGAIN && !flow->sender) {
            if (flow_is_stopping(flow))
                return false;
            flow_poll(flow, POLLOUT, STOP_MS);
        } else if (errno != EINTR) {
            flow_fail_unless_stopping(flow, "send", errno);
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
            flow_fail_unless_stopping(flow, "recv", errno);
            return false;
        }
        flow_hold_window(flow, got);
        if (keep != NULL && !keep(flow, (size_t)got))
            return false;
        flow_count_received(flow, flow->fd, now, got);
    }
    return true;
}

static bool peer_has_ended(const struct flow *flow)
{
    char byte;

    return recv(flow->fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* A receiver never ends a connection before its sender: its port would be in TIME-WAIT, and the next test could not use it. So after a
 * failure or an order to stop, which also looks like an end-of-file here, it only tells its sender. `close` resets the connection. */
static void close_sending(struct flow *flow)
{
    static const unsigned char byte = GIVEN_UP;

    if (flow->multipath != NULL)
        flow->multipath->ending = true;
    if (flow->sender || (!atomic_load(&flow->stopped) && peer_has_ended(flow)))
        shutdown(flow->fd, SHUT_WR);
    else
        send(flow->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int flow_poll(struct flow *flow, short events, int timeout_ms)
{
    struct pollfd connection = {.fd = flow->fd, .events = events};
    int got;

    do
        got = poll(&connection, 1, timeout_ms);
    /* The kernel's reports of zero-copy sends wake poll(2) too: read them and poll again. */
    while ((got < 0 && errno == EINTR) || (got > 0 && connection.revents == POLLERR && zerocopy_collect(flow)));
    return got;
}

void flow_finish(struct flow *flow)
{
    char byte;

    atomic_store(&flow->stopping, true);
    close_sending(flow);
    if (!flow->sender || flow->failure.error != 0)
        return;
    /* The peer's end-of-file means that everything has arrived, so the retransmits are final. */
    if (flow_poll(flow, POLLIN, DRAIN_S * 1000) == 0)
        flow_fail(flow, "waiting for the receiver to end", ETIMEDOUT);
    else if (recv(flow->fd, &byte, 1, 0) < 0 && !atomic_load(&flow->stopped)) /* after a stop an error is no failure */
        flow_fail(flow, "waiting for the receiver to end", errno);
}

void flow_acknowledge(struct flow *flow)
{
    static const unsigned char byte = ACKNOWLEDGED;

    if (send(flow->fd, &byte, 1, MSG_NOSIGNAL) != 1)
        flow_fail_unless_stopping(flow, "send", errno);
}

void flow_await_acknowledgement(struct flow *flow)
{
    unsigned char byte = 0;

    close_sending(flow);
    if (flow_poll(flow, POLLIN, DRAIN_S * 1000) == 1 && recv(flow->fd, &byte, 1, 0) == 1 && byte == ACKNOWLEDGED)
        flow->last_byte_ns = clock_now();
    else if (!atomic_load(&flow->stopped))
        flow_fail(flow, "waiting for the receiver's acknowledgement", ETIMEDOUT);
}

void flow_read_totals(const struct flow *flow, struct tcp_totals *totals)
{
    sample_clear(totals);
    sockopts_read(flow->fd, &totals->sockopts, true);
    if (SYSTEM_TUNES_WINDOWS && flow->window.bytes < 0)
        sockopts_forget(&totals->sockopts, "window");
    if (flow->multipath != NULL)
        mptcp_sample(flow->fd, flow->multipath, totals);
    else
        sample_info(flow->fd, totals);
}

void flow_keep_known(struct flow *flow)
{
    if (flow->totals.mss < 0 && flow->known.mss >= 0)
        flow->totals = flow->known;
}

void flow_read_last_totals(struct flow *flow, struct tcp_totals *totals)
{
    if (flow->multipath != NULL)
        atomic_store(&flow->multipath->last, true);
    flow_read_totals(flow, totals);
}

void flow_end(struct flow *flow)
{
    flow_read_last_totals(flow, &flow->totals);
    close_sending(flow);
}

/* Once Linux knows how much memory the segments take, it advertises up to a third more than the requested window (6.18: with jumbo frames
 * nearly twice as much) and forgets an earlier clamp. So the window is clamped only after four times its size was received. */
void flow_hold_window(struct flow *flow, int64_t got)
{
    if (flow->window.bytes <= 0)
        return;
    if (flow->window.unheld > 0)
        flow->window.unheld -= got;
    else
        system_clamp_window(flow->fd, (int)flow->window.bytes);
}

/* On request the thread moves to the processor that handles its packets and so is awake: waking another one takes some 10 µs. */
void flow_count(struct flow *flow, int fd, int64_t now, int64_t bytes)
{
    struct places *places = &flow->places;

    flow->last_byte_ns = now;
    if (flow->first_byte_ns == 0)
        flow->first_byte_ns = now;
    atomic_fetch_add_explicit(&flow->bytes, bytes, memory_order_relaxed);
    if (flow->request->placement.packets && places->steps++ % FOLLOW_EVERY == 1)
        places->moved_to = placement_follow(fd, places->moved_to);
    atomic_store_explicit(&places->processor, sched_getcpu(), memory_order_relaxed);
}

void flow_count_received(struct flow *flow, int fd, int64_t now, int64_t bytes)
{
    if (flow->bins.bytes != NULL) {
        int64_t bin = (now - flow->start->at_ns) / flow->start->bin_ns;

        /* Every byte is in a bin: one before the start, by this clock, in the first, and one after the last bin in the last. */
        flow->bins.bytes[bin < 0 ? 0 : bin < flow->bins.room ? bin : flow->bins.room - 1] += (uint64_t)bytes;
    }
    flow_count(flow, fd, now, bytes);
}

static void count_place(struct places *places)
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

void wake_main_loop(void)
{
    uint64_t one = 1;

    if (write(wake_fd, &one, sizeof one) < 0)
        return; /* the eventfd's counter is full, so the main loop is awake already */
}

static void *run(void *argument)
{
    struct flow *flow = argument;
    int error = flow->request->placement.fixed ? placement_apply(&flow->request->placement) : 0;

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
    wake_main_loop();
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

/* Read the totals of a connection in the main loop, or return the last reading if this one fails. Windows may not tell of a connection that
 * has ended. */
static void read_known(struct flow *flow, struct tcp_totals *totals)
{
    flow_read_totals(flow, totals);
    if (totals->mss >= 0)
        flow->known = *totals;
    else if (flow->known.mss >= 0)
        *totals = flow->known;
}

void flow_stop(struct flow *flow)
{
    struct tcp_totals totals;

    if (flow->sender && flow_columns(flow) >= COLUMNS_SENDER)
        read_known(flow, &totals);
    atomic_store(&flow->stopping, true);
    if (flow->multipath != NULL)
        flow->multipath->ending = true;
    /* Only the thread ends the connection, after its last datagram: the receiver would count datagrams after the end as lost. */
    if (flow->sender && flow->datagram.fd >= 0)
        return;
    /* A reply that arrives after SHUT_RD would reset the connection. The thread looks often whether it was stopped (requests.c). */
    if (flow->sender && flow->work->scheduled)
        return;
    /* SHUT_WR still delivers a sender's queued data. SHUT_RD wakes whoever waits for a message or an end-of-file that never comes. */
    shutdown(flow->fd, !flow->sender ? SHUT_RD : flow->work->trips ? SHUT_RDWR : SHUT_WR);
}

void flow_sample(struct flow *flow)
{
    int columns = flow_columns(flow);
    int64_t *row;
    struct tcp_totals totals;

    count_place(&flow->places);
    if (flow_writes_samples(flow) || flow->samples.count == flow->samples.room)
        return;
    row = flow->samples.rows + (size_t)flow->samples.count * (size_t)columns;
    row[0] = clock_now();
    row[1] = atomic_load_explicit(&flow->bytes, memory_order_relaxed);
    if (flow->multipath != NULL && atomic_load(&flow->ended))
        flow->multipath->ending = true;
    if (flow_samples_highest(flow)) {
        row[2] = atomic_load_explicit(&flow->highest, memory_order_relaxed);
        flow->samples.count++;
        return;
    }
    if (columns >= COLUMNS_SENDER)
        read_known(flow, &totals);
    else if (columns > COLUMNS_RECEIVER || (flow->multipath != NULL && !flow->multipath->ending))
        flow_read_totals(flow, &totals);
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
    system_close(&flow->fd);
    system_close(&flow->datagram.fd);
    system_close(&flow->file.fd);
}

void flow_free(struct flow *flow)
{
    flow_close(flow);
    if (flow->work != NULL && flow->work->release != NULL)
        flow->work->release(flow);
    free(flow->samples.rows);
    free(flow->buffer);
    free(flow->trips);
    free(flow->datagram.counts);
    free(flow->counts);
    free(flow->bins.bytes);
    free(flow->marks);
    free(flow->multipath);
}
