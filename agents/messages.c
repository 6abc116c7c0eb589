/* Messages of one size over TCP: ping-pong (each is sent back whole) and blast (one way, acknowledged by one byte at the end).
 *
 * The answer to a ping waits for all of it: a peer that sent back what it has, while more comes, could fill both directions and block.
 * The messages of a ping-pong are copied to and from the process, as an application's are.
 */
#include <errno.h>
#include <sys/socket.h>

#include "clock.h"
#include "flow.h"

#define PIECE_BYTES (512 << 10)

static int64_t piece_of(int64_t left)
{
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static bool send_message(struct flow *flow)
{
    for (int64_t left = flow->settings->size; left > 0; left -= piece_of(left))
        if (!flow_send(flow, (size_t)piece_of(left)))
            return false;
    return true;
}

/* Returns 1 when a whole message is there, 0 at the end of file before any of it, -1 if the flow failed. */
static int receive_message(struct flow *flow)
{
    bool busy = flow->settings->busy;

    for (int64_t left = flow->settings->size; left > 0;) {
        ssize_t got = recv(flow->fd, flow->buffer, (size_t)piece_of(left), busy ? MSG_DONTWAIT : 0);

        if (got < 0 && (errno == EINTR || (errno == EAGAIN && busy && !flow_stopping(flow))))
            continue;
        if (got < 0 || (got == 0 && left < flow->settings->size)) {
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

void messages_ping(struct flow *flow)
{
    int64_t before = flow->first_byte_ns = clock_now();

    for (int64_t left = flow->start->iterations; left > 0 && before < flow->start->end_ns && !flow_stopping(flow); left--) {
        int64_t now;
        int received = send_message(flow) ? receive_message(flow) : -1;

        if (received == 0)
            flow_broke(flow, "recv", ECONNRESET); /* the receiver ends only after the sender */
        if (received != 1)
            break;
        now = clock_now();
        histogram_add(flow->trips, now - before);
        flow_moved(flow, flow->fd, now, flow->settings->size);
        before = now;
    }
}

void messages_pong(struct flow *flow)
{
    while (receive_message(flow) == 1) {
        flow_moved(flow, flow->fd, clock_now(), flow->settings->size);
        if (!send_message(flow))
            break;
    }
}

void messages_blast(struct flow *flow)
{
    int64_t now = flow->first_byte_ns = clock_now();

    for (int64_t left = flow->start->iterations; left > 0 && now < flow->start->end_ns && !flow_stopping(flow); left--) {
        if (!send_message(flow))
            return;
        now = clock_now();
        flow_moved(flow, flow->fd, now, flow->settings->size);
    }
    /* The time of a blast ends when the receiver acknowledges all of it. */
    flow_await_acknowledgement(flow);
}

void messages_swallow(struct flow *flow)
{
    if (flow_receive(flow, PIECE_BYTES, NULL))
        flow_acknowledge(flow);
}

int messages_prepare(struct flow *flow)
{
    return flow->sender || flow->work->trips ? flow_buffer(flow, piece_of(flow->settings->size)) : 0;
}
