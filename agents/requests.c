/* Requests: the sender begins each at its own time, whether or not earlier ones were answered (an open loop), and the receiver answers each
 * one, in order. The time of a request counts from the time at which it was to begin, until its whole reply has arrived: one that began
 * late has taken longer. None is left out. Both ends wait in poll(2) for room and for bytes at once, so that they cannot block each other
 * with both directions full. */
#include "clock.h"
#include "control.h"
#include "flow.h"

#define MESSAGE_MAX (16 << 20)
#define TAKEN_BYTES (64 << 10)  /* most bytes received at once */
#define PIECE_BYTES (256 << 10) /* most bytes sent at once, of data_bytes */
#define LATE_NS MS              /* a request that begins this much after its time is late */
#define LOOK_NS (50 * MS)       /* after this time an end that waits looks whether the flow is over */
#define MOST_AT_ONCE 64         /* sends of one turn, after which bytes that have come are received */

/* What a sender counted. Its own lateness is the time from that at which a request was to begin until the sender's thread came to it; the
 * time for which the socket then took no bytes is not in it. */
struct requests {
    int64_t late;                     /* how many the thread came to more than 1 ms after their time */
    int64_t late_max_ns, late_sum_ns; /* longest lateness, and the sum over all that were begun */
    int64_t held;                     /* how many began more than 1 ms after the thread came to them, as the socket took no bytes */
    int64_t in_flight_max;            /* most that were begun and not answered at a time */
    int64_t unanswered;               /* begun, and not answered within 2 s after the end */
    int64_t unsent;                   /* due before the end, and not begun within these 2 s */
};

static struct requests *counts_of(const struct flow *flow)
{
    return flow->counts;
}

/* Progress of a sender. Request n is to begin at `first_ns` + n × `every_ns`. */
struct asking {
    int64_t first_ns, every_ns;
    int64_t planned, begun, answered;
    int64_t left;    /* bytes of the last begun request, or of the next one if it is due, that the socket has not taken */
    int64_t got;     /* bytes of the next reply that have arrived */
    int64_t held_ns; /* since when requests wait for room in the socket; 0: none does */
};

static int64_t due_ns(const struct asking *asking, int64_t number)
{
    return asking->first_ns + number * asking->every_ns;
}

/* Return the time from `due` to `now`, at most the largest value of a histogram: sums cannot overflow if a test was to begin long ago. */
static int64_t since(int64_t due, int64_t now)
{
    return clock_sooner(now - due, INT64_C(1) << HISTOGRAM_TOP_BITS);
}

/* Return how many requests are due before the time `end`. */
static int64_t count_due(const struct asking *asking, int64_t end)
{
    int64_t due = end <= asking->first_ns ? 0 : (end - asking->first_ns - 1) / asking->every_ns + 1;

    return due < asking->planned ? due : asking->planned;
}

/* Wait for these events until the time `until`, at most for LOOK_NS. Returns those that came, POLLHUP and POLLERR among them. */
static short wait_for(const struct flow *flow, short events, int64_t until)
{
    struct pollfd connection = {.fd = flow->fd, .events = events};
    struct timespec wait = clock_spec(clock_sooner(until - clock_now(), LOOK_NS));

    return ppoll(&connection, 1, &wait, NULL) > 0 ? connection.revents : 0;
}

/* Send as much of a message as the socket takes at once. Returns the bytes, 0 if it takes none now, or -1 if the flow failed. */
static int64_t put(struct flow *flow, int64_t left)
{
    ssize_t sent;

    do
        sent = send(flow->fd, data_bytes, (size_t)(left < PIECE_BYTES ? left : PIECE_BYTES), MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0 || errno == EAGAIN)
        return sent < 0 ? 0 : sent;
    flow_fail_unless_stopping(flow, "send", errno);
    return -1;
}

/* Receive what is there, at most TAKEN_BYTES. Returns the bytes, 0 at end-of-file, or -1 if there are none or the flow failed. */
static ssize_t take(struct flow *flow)
{
    ssize_t got = recv(flow->fd, flow->buffer, TAKEN_BYTES, MSG_DONTWAIT);

    if (got > 0)
        flow_hold_window(flow, got);
    else if (got < 0 && errno != EAGAIN && errno != EINTR)
        flow_fail_unless_stopping(flow, "recv", errno);
    return got;
}

/* Count a request that begins `now`. Requests wait for room since `held_ns`: the thread came to those due later when they were due. */
static void count_begun(struct requests *counts, struct asking *asking, int64_t now)
{
    int64_t due = due_ns(asking, asking->begun), came = asking->held_ns == 0 ? now : asking->held_ns < due ? due : asking->held_ns;

    counts->late += since(due, came) > LATE_NS;
    counts->late_sum_ns += since(due, came);
    if (since(due, came) > counts->late_max_ns)
        counts->late_max_ns = since(due, came);
    counts->held += now - came > LATE_NS;
    asking->begun++;
    if (asking->begun - asking->answered > counts->in_flight_max)
        counts->in_flight_max = asking->begun - asking->answered;
}

/* Begin requests that are due, as far as the socket takes them. Returns false if the flow failed. */
static bool ask(struct flow *flow, struct asking *asking)
{
    const int64_t size = flow->request->size;

    for (int sends = 0; sends < MOST_AT_ONCE; sends++) {
        int64_t now = clock_now(), sent;

        if (asking->left == 0) {
            if (asking->begun == asking->planned || due_ns(asking, asking->begun) > now) {
                asking->held_ns = 0;
                break;
            }
            asking->left = size;
        }
        sent = put(flow, asking->left);
        if (sent < 0)
            return false;
        if (sent > 0 && asking->left == size)
            count_begun(counts_of(flow), asking, now);
        asking->left -= sent;
        if (sent == 0) {
            if (asking->held_ns == 0)
                asking->held_ns = now;
            break;
        }
    }
    return true;
}

/* Receive replies. Bytes that are not awaited are a byte with which the receiver ends before the sender does. Returns false if the flow is
 * over. */
static bool take_replies(struct flow *flow, struct asking *asking)
{
    ssize_t got = take(flow);
    int64_t now = clock_now(), awaited = asking->begun - asking->answered, count;

    if (got == 0)
        flow_fail_unless_stopping(flow, "recv", ECONNRESET); /* an error, because a receiver must not end before the sender */
    if (got <= 0)
        return got < 0 && flow->failure.error == 0;
    asking->got += got;
    count = asking->got / flow->request->reply;
    if (count > awaited)
        count = awaited;
    asking->got -= count * flow->request->reply;
    for (int64_t i = 0; i < count; i++)
        histogram_add(flow->trips, since(due_ns(asking, asking->answered++), now));
    if (count > 0)
        flow_count(flow, flow->fd, now, count * flow->request->size);
    return true;
}

static void requests_ask(struct flow *flow)
{
    const struct start *start = flow->start;
    struct asking asking = {.first_ns = start->at_ns + flow->number * start->stagger_ns, .every_ns = start->every_ns,
                            .planned = start->iterations};
    int64_t until = start->end_ns + REPLIES_NS;
    short ready = 0;

    asking.planned = count_due(&asking, start->end_ns);
    flow->first_byte_ns = clock_now();
    while (asking.answered < asking.planned && !flow_is_stopping(flow) && clock_now() < until) {
        bool all;

        if ((ready & ~POLLOUT) != 0 && !take_replies(flow, &asking))
            break;
        if (!ask(flow, &asking))
            break;
        all = asking.begun == asking.planned && asking.left == 0;
        ready = wait_for(flow, asking.held_ns != 0 ? POLLIN | POLLOUT : POLLIN,
                         all || asking.held_ns != 0 ? until : due_ns(&asking, asking.begun));
    }
    counts_of(flow)->unanswered = asking.begun - asking.answered;
    counts_of(flow)->unsent = count_due(&asking, clock_now()) - asking.begun;
}

/* Receive requests; count the whole ones, and the bytes of their replies. Returns false if the flow is over. */
static bool take_requests(struct flow *flow, int64_t *part, int64_t *owed)
{
    ssize_t got = take(flow);
    int64_t count;

    if (got <= 0)
        return got < 0 && flow->failure.error == 0;
    *part += got;
    count = *part / flow->request->size;
    *part -= count * flow->request->size;
    *owed += count * flow->request->reply;
    if (count > 0)
        flow_count(flow, flow->fd, clock_now(), count * flow->request->size);
    return true;
}

static void requests_answer(struct flow *flow)
{
    int64_t part = 0, owed = 0, sent;

    while (!flow_is_stopping(flow)) {
        short ready = wait_for(flow, owed > 0 ? POLLIN | POLLOUT : POLLIN, INT64_MAX);

        if ((ready & ~POLLOUT) != 0 && !take_requests(flow, &part, &owed))
            break;
        sent = owed > 0 ? put(flow, owed) : 0;
        if (sent < 0)
            break;
        owed -= sent;
    }
}

static int requests_prepare(struct flow *flow)
{
    data_fill(); /* a receiver sends too */
    flow->counts = flow->sender ? calloc(1, sizeof(struct requests)) : NULL;
    return flow->sender && flow->counts == NULL ? ENOMEM : flow_buffer(flow, TAKEN_BYTES);
}

static void requests_report(const struct flow *flow)
{
    const struct requests *counts = counts_of(flow);

    line_add(",\"requests\":{\"late\":%lld", (long long)counts->late);
    line_add_count("late_max_ns", counts->late_max_ns);
    line_add_count("late_sum_ns", counts->late_sum_ns);
    line_add_count("held", counts->held);
    line_add_count("in_flight_max", counts->in_flight_max);
    line_add_count("unanswered", counts->unanswered);
    line_add_count("unsent", counts->unsent);
    line_add("}");
}

const struct work requests_work = {"requests", "tcp", NULL, requests_prepare, requests_ask, requests_answer, flow_end, 1, MESSAGE_MAX,
                                   .report = requests_report, .messages = true, .trips = true, .scheduled = true};
