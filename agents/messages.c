/* Messages of one size: ping-pong (each is sent back whole) and blast (one way, acknowledged by one byte at the end).
 *
 * The answer to a ping waits for all of it: a peer that sent back what it has, while more comes, could fill both directions and stop.
 * Data are copied to and from the process, as an application's are.
 */
#include "messages.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock.h"
#include "data.h"
#include "flow.h"

#define PIECE_BYTES (512 << 10)

static bool send_message(struct flow *flow)
{
    for (int64_t left = flow->message.size; left > 0;) {
        ssize_t put = send(flow->fd, flow->buffer, (size_t)(left < PIECE_BYTES ? left : PIECE_BYTES), MSG_NOSIGNAL);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            flow_broke(flow, "send", errno);
            return false;
        }
        left -= put;
    }
    return true;
}

/* Returns 1 when a whole message is there, 0 at the end of file before any of it, -1 where it broke. */
static int receive_message(struct flow *flow)
{
    int flags = flow->message.busy ? MSG_DONTWAIT : 0;

    for (int64_t left = flow->message.size; left > 0;) {
        ssize_t got = recv(flow->fd, flow->buffer, (size_t)(left < PIECE_BYTES ? left : PIECE_BYTES), flags);

        if (got < 0 && (errno == EINTR || (errno == EAGAIN && flow->message.busy && !flow_stopping(flow))))
            continue;
        if (got < 0 || (got == 0 && left < flow->message.size)) {
            flow_broke(flow, "recv", got < 0 ? errno : ECONNRESET);
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
    flow_count(flow, flow->message.size);
}

static void ping(struct flow *flow)
{
    int64_t before = flow->first_byte_ns = clock_now();

    for (int64_t left = flow->message.iterations; left > 0 && before < flow->time.end_ns && !flow_stopping(flow); left--) {
        int64_t now;
        int received = send_message(flow) ? receive_message(flow) : -1;

        if (received == 0)
            flow_broke(flow, "recv", ECONNRESET); /* the receiver ends only after the sender */
        if (received != 1)
            break;
        now = clock_now();
        histogram_add(flow->message.trips, now - before);
        count(flow, now);
        flow_moved(flow, flow->fd);
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
        flow_moved(flow, flow->fd);
    }
}

static void blast(struct flow *flow)
{
    int64_t now = flow->first_byte_ns = clock_now();

    for (int64_t left = flow->message.iterations; left > 0 && now < flow->time.end_ns && !flow_stopping(flow); left--) {
        if (!send_message(flow))
            return;
        now = clock_now();
        count(flow, now);
        flow_moved(flow, flow->fd);
    }
    /* The time of a blast ends with the receiver's word that it has all of it. */
    flow_await_acknowledgement(flow);
}

static void swallow(struct flow *flow)
{
    unsigned char byte = ACKNOWLEDGED;

    for (;;) {
        ssize_t got = flow_discard(flow, PIECE_BYTES);

        if (got > 0) {
            flow_took(flow, got);
            flow_moved(flow, flow->fd);
            flow_count(flow, got);
        } else if (got == 0) {
            break;
        } else if (errno != EINTR) {
            flow_broke(flow, "recv", errno);
            return;
        }
    }
    if (send(flow->fd, &byte, 1, MSG_NOSIGNAL) != 1)
        flow_broke(flow, "send", errno);
}

int messages_prepare_blast(struct flow *flow)
{
    size_t room = (size_t)(flow->message.size < PIECE_BYTES ? flow->message.size : PIECE_BYTES);

    flow->buffer = aligned_alloc(PAGE_BYTES, (room + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES);
    if (flow->buffer == NULL)
        return ENOMEM;
    if (flow->sender)
        data_fill(flow->buffer, room);
    return 0;
}

int messages_prepare_pingpong(struct flow *flow)
{
    if (flow->sender)
        flow->message.trips = calloc(1, sizeof *flow->message.trips);
    return flow->sender && flow->message.trips == NULL ? ENOMEM : messages_prepare_blast(flow);
}

static void end(struct flow *flow)
{
    sample_tcp(flow->fd, flow->multipath, &flow->totals);
    shutdown(flow->fd, SHUT_WR);
}

void messages_pingpong(struct flow *flow)
{
    (flow->sender ? ping : pong)(flow);
    end(flow);
}

void messages_blast(struct flow *flow)
{
    (flow->sender ? blast : swallow)(flow);
    end(flow);
}
