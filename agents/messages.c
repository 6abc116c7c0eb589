/* Messages of one size: ping-pong (each is sent back whole) and blast (one way, acknowledged by one byte at the end).
 *
 * The answer to a ping waits for all of it: a peer that sent back what it has, while more comes, could fill both directions and stop.
 * Data are copied to and from the process, as an application's are.
 */
#include "messages.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock.h"

#define PIECE_BYTES (512 << 10)
#define ACKNOWLEDGED 0x06

static bool stopping(const struct flow *flow)
{
    return atomic_load_explicit(&flow->stopping, memory_order_relaxed);
}

static void fail(struct flow *flow, const char *where, int error)
{
    if (stopping(flow))
        return; /* cut off in the middle of a message by its time: no error */
    flow->error = error;
    flow->where = where;
}

static bool send_message(struct flow *flow)
{
    for (int64_t left = flow->message_bytes; left > 0;) {
        ssize_t put = send(flow->fd, flow->buffer, (size_t)(left < PIECE_BYTES ? left : PIECE_BYTES), MSG_NOSIGNAL);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            fail(flow, "send", errno);
            return false;
        }
        left -= put;
    }
    return true;
}

/* Returns 1 when a whole message is there, 0 at the end of file before any of it, -1 where it broke. */
static int receive_message(struct flow *flow)
{
    int flags = flow->busy ? MSG_DONTWAIT : 0;

    for (int64_t left = flow->message_bytes; left > 0;) {
        ssize_t got = recv(flow->fd, flow->buffer, (size_t)(left < PIECE_BYTES ? left : PIECE_BYTES), flags);

        if (got < 0 && (errno == EINTR || (errno == EAGAIN && flow->busy && !stopping(flow))))
            continue;
        if (got < 0 || (got == 0 && left < flow->message_bytes)) {
            fail(flow, "recv", got < 0 ? errno : ECONNRESET);
            return -1;
        }
        if (got == 0)
            return 0;
        flow_hold_window(flow, got);
        left -= got;
    }
    return 1;
}

static void count(struct flow *flow, int64_t now)
{
    flow->last_byte_ns = now;
    atomic_fetch_add_explicit(&flow->bytes, flow->message_bytes, memory_order_relaxed);
}

static void ping(struct flow *flow)
{
    int64_t before = flow->first_byte_ns = clock_now();

    for (int64_t left = flow->iterations; left > 0 && before < flow->end_ns && !stopping(flow); left--) {
        int64_t now;
        int received = send_message(flow) ? receive_message(flow) : -1;

        if (received == 0)
            fail(flow, "recv", ECONNRESET); /* the receiver ends only after the sender */
        if (received != 1)
            break;
        now = clock_now();
        histogram_add(flow->histogram, now - before);
        count(flow, now);
        before = now;
    }
}

static void pong(struct flow *flow)
{
    while (receive_message(flow) == 1) {
        int64_t now = clock_now();

        if (flow->first_byte_ns == 0)
            flow->first_byte_ns = now;
        count(flow, now);
        if (!send_message(flow))
            break;
    }
}

static void blast(struct flow *flow)
{
    unsigned char byte = 0;
    int64_t now = flow->first_byte_ns = clock_now();
    struct pollfd readable = {.fd = flow->fd, .events = POLLIN};

    for (int64_t left = flow->iterations; left > 0 && now < flow->end_ns && !stopping(flow); left--) {
        if (!send_message(flow))
            return;
        now = clock_now();
        count(flow, now);
    }
    shutdown(flow->fd, SHUT_WR);
    /* The time of a blast ends with the receiver's word that it has all of it. */
    if (poll(&readable, 1, DRAIN_S * 1000) == 1 && recv(flow->fd, &byte, 1, 0) == 1 && byte == ACKNOWLEDGED)
        flow->last_byte_ns = clock_now();
    else if (flow->error == 0) {
        flow->error = ETIMEDOUT;
        flow->where = "waiting for the receiver's acknowledgement";
    }
}

static void swallow(struct flow *flow)
{
    unsigned char byte = ACKNOWLEDGED;

    for (;;) {
        ssize_t got = recv(flow->fd, NULL, PIECE_BYTES, MSG_TRUNC);

        if (got > 0) {
            flow_took(flow, got);
            atomic_fetch_add_explicit(&flow->bytes, got, memory_order_relaxed);
        } else if (got == 0) {
            break;
        } else if (errno != EINTR) {
            fail(flow, "recv", errno);
            return;
        }
    }
    if (send(flow->fd, &byte, 1, MSG_NOSIGNAL) != 1)
        fail(flow, "send", errno);
}

int messages_prepare(struct flow *flow)
{
    size_t room = (size_t)(flow->message_bytes < PIECE_BYTES ? flow->message_bytes : PIECE_BYTES);

    flow->buffer = calloc(1, room);
    if (flow->buffer != NULL && flow->work == PINGPONG && flow->sender)
        flow->histogram = calloc(1, sizeof *flow->histogram);
    return flow->buffer == NULL || (flow->work == PINGPONG && flow->sender && flow->histogram == NULL) ? ENOMEM : 0;
}

void messages_run(struct flow *flow)
{
    if (flow->sender)
        clock_sleep_until(flow->at_ns);
    if (flow->work == PINGPONG)
        (flow->sender ? ping : pong)(flow);
    else
        (flow->sender ? blast : swallow)(flow);
    sample_tcp(flow->fd, &flow->totals);
    if (flow->last_byte_ns == 0)
        flow->first_byte_ns = 0;
    shutdown(flow->fd, SHUT_WR);
}
