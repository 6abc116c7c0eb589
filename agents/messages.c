/* Messages of one size over TCP: ping-pong (the receiver returns each message) and blast (one way, acknowledged by one byte at the end).
 * A receiver returns a message only after all of it has arrived; otherwise both sides could fill both directions and block. Ping-pong
 * messages are copied to and from user space, as those of an application. */
#include "clock.h"
#include "flow.h"

#define MESSAGE_MAX (16 << 20)
#define PIECE_BYTES (512 << 10)

static int64_t piece_bytes(int64_t left)
{
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static bool send_message(struct flow *flow)
{
    for (int64_t left = flow->request->size; left > 0; left -= piece_bytes(left))
        if (!flow_send(flow, (size_t)piece_bytes(left)))
            return false;
    return true;
}

/* Receive a whole message. Returns 1; 0 at end-of-file; -1 if the flow failed. */
static int receive_message(struct flow *flow)
{
    bool busy = flow->request->busy;

    for (int64_t left = flow->request->size; left > 0;) {
        ssize_t got = recv(flow->fd, flow->buffer, (size_t)piece_bytes(left), busy ? MSG_DONTWAIT : 0);

        if (got < 0 && (errno == EINTR || (errno == EAGAIN && busy && !flow_is_stopping(flow))))
            continue;
        if (got < 0 || (got == 0 && left < flow->request->size)) {
            flow_fail_unless_stopping(flow, "recv", got < 0 ? errno : ECONNRESET);
            return -1;
        }
        if (got == 0)
            return 0;
        flow_hold_window(flow, got);
        left -= got;
    }
    return 1;
}

static void messages_ping(struct flow *flow)
{
    int64_t before = flow->first_byte_ns = clock_now();

    for (int64_t left = flow->start->iterations; left > 0 && before < flow->start->end_ns && !flow_is_stopping(flow); left--) {
        int64_t now;
        int received = send_message(flow) ? receive_message(flow) : -1;

        if (received == 0)
            flow_fail_unless_stopping(flow, "recv", ECONNRESET); /* an error, because a receiver must not end before the sender */
        if (received != 1)
            break;
        now = clock_now();
        histogram_add(flow->trips, now - before);
        flow_count(flow, flow->fd, now, flow->request->size);
        before = now;
    }
}

static void messages_pong(struct flow *flow)
{
    while (receive_message(flow) == 1) {
        flow_count(flow, flow->fd, clock_now(), flow->request->size);
        if (!send_message(flow))
            break;
    }
}

static void messages_blast(struct flow *flow)
{
    int64_t now = flow->first_byte_ns = clock_now();

    for (int64_t left = flow->start->iterations; left > 0 && now < flow->start->end_ns && !flow_is_stopping(flow); left--) {
        if (!send_message(flow))
            return;
        now = clock_now();
        flow_count(flow, flow->fd, now, flow->request->size);
    }
    flow_await_acknowledgement(flow);
}

static void messages_receive(struct flow *flow)
{
    if (flow_receive(flow, PIECE_BYTES, NULL))
        flow_acknowledge(flow);
}

static int messages_prepare(struct flow *flow)
{
    return flow->sender || flow->work->trips ? flow_buffer(flow, piece_bytes(flow->request->size)) : 0;
}

const struct work pingpong_work = {"pingpong", "tcp", NULL, messages_prepare, messages_ping, messages_pong, flow_end, 1, MESSAGE_MAX,
                                   .messages = true, .trips = true};
const struct work blast_work = {"blast", "tcp", NULL, messages_prepare, messages_blast, messages_receive, flow_end, 1, MESSAGE_MAX,
                                .messages = true};
