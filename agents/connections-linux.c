/* Connections: the sender opens one, sends a byte and waits for a byte, and one end closes it, then the next. The time to connect is that of
 * connect(2); with a rate, from the time at which the connection was to begin, which moves if the sender's thread itself woke late. The flow keeps
 * the connection that opened it; its end-of-file ends the flow. The receiver has one more listening socket, which all its flows share. */
#include <linux/tcp.h>
#include <netinet/in.h>

#include "address.h"
#include "clock.h"
#include "control.h"
#include "flow.h"
#include "system.h"

#define WAIT_US 50000                 /* after this time a call that waits looks whether the flow is over */
#define CONNECT_NS (5 * SECOND)       /* time after which an attempt has failed */
#define LATE_NS MS                    /* a connection that begins this much after its time is late */
#define NAP_NS MS                     /* rest after an attempt that failed at once, as the next one would, too */
#define FAILED_AT_ONCE_NS (100 * US)
#define PARKED_MAX 256 /* most connections that a receiver's thread leaves aside */
#define PARKED_NS (2 * CONNECT_NS) /* and for how long: its sender gives up first, so that the error is always the sender's */

#define FAILURES_MAX 8 /* most errno values by which failures are told apart; further ones count as the last */

struct connections {
    int64_t late;        /* how many began more than 1 ms after their time, as the last one took too long; -1: no time was given */
    int64_t retransmits; /* segments that the sender's kernel sent again, SYNs among them */
    int64_t unserved;    /* how many were established, and then had no answer in time */
    struct {
        int error; /* errno value; 0: unused */
        int64_t count;
    } failed[FAILURES_MAX];
};

static struct connections *counts_of(const struct flow *flow)
{
    return flow->counts;
}

static bool is_over(const struct flow *flow, int64_t began)
{
    int64_t now = clock_now();

    return flow_is_stopping(flow) || now >= flow->start->end_ns || now - began >= CONNECT_NS;
}

static void set_timeouts(int fd)
{
    struct timeval wait = {.tv_usec = WAIT_US};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}

static void count_failure(struct connections *counts, int error)
{
    int place = 0;

    while (place < FAILURES_MAX - 1 && counts->failed[place].error != 0 && counts->failed[place].error != error)
        place++;
    if (counts->failed[place].error == 0)
        counts->failed[place].error = error;
    counts->failed[place].count++;
}

static int64_t read_retransmits(int fd)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 ? info.tcpi_total_retrans : 0;
}

/* Wait until connect(2), which began, has succeeded. Returns 0 or an errno value; EINPROGRESS if the flow is over. */
static int await_connection(const struct flow *flow, int fd, int64_t began)
{
    int error = EINPROGRESS;

    while (error == EINPROGRESS && !is_over(flow, began)) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        socklen_t length = sizeof error;

        if (poll(&ready, 1, WAIT_US / 1000) > 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
            error = errno;
    }
    return error == EINPROGRESS && clock_now() - began >= CONNECT_NS ? ETIMEDOUT : error;
}

/* Open a connection from the flow's own address. Returns its descriptor, or -1 with `*error`. */
static int open_connection(const struct flow *flow, const struct sockaddr_storage *there, int64_t began, int *error)
{
    const struct sockaddr_storage *here = &flow->request->bind;
    int fd = socket(here->ss_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP), on = 1;

    if (fd < 0) {
        *error = errno;
        return -1;
    }
    set_timeouts(fd);
    /* Else bind(2) takes a port that no connection to another address or port may have meanwhile. */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    *error = sockopts_apply(fd, here->ss_family, true, &flow->request->sockopts) != NULL ||
                     bind(fd, (const struct sockaddr *)here, address_length(here)) != 0 ||
                     connect(fd, (const struct sockaddr *)there, address_length(there)) != 0
                 ? errno
                 : 0;
    if (*error == EINPROGRESS || *error == EAGAIN || *error == EINTR)
        *error = await_connection(flow, fd, began);
    return fd;
}

/* Receive one byte, or the end of the connection. Returns the bytes received, or -1 with errno; EINPROGRESS if the flow is over. */
static int receive_byte(const struct flow *flow, int fd, int64_t began)
{
    unsigned char byte;
    ssize_t got;

    while ((got = recv(fd, &byte, 1, 0)) < 0 && (errno == EAGAIN || errno == EINTR))
        if (is_over(flow, began)) {
            errno = clock_now() - began >= CONNECT_NS ? ETIMEDOUT : EINPROGRESS;
            break;
        }
    return (int)got;
}

/* Exchange a byte each way, and close. Returns 0 or an errno value. */
static int use_connection(const struct flow *flow, int fd, int64_t began)
{
    const unsigned char byte = 0;
    int got = send(fd, &byte, 1, MSG_NOSIGNAL) == 1 ? receive_byte(flow, fd, began) : -1;

    if (got == 1 && flow->request->closing == CLOSE_RECEIVER)
        return receive_byte(flow, fd, began) == 0 ? 0 : errno;
    return got == 1 ? 0 : got == 0 ? ECONNRESET : errno;
}

/* Open, use and close one connection that was to begin at `began`. Returns 0 or an errno value; EINPROGRESS if the flow is over. */
static int make_one(struct flow *flow, const struct sockaddr_storage *there, int64_t began)
{
    int error, fd = open_connection(flow, there, began, &error);

    if (fd < 0)
        return error;
    if (error == 0) {
        histogram_add(flow->trips, clock_now() - began);
        error = use_connection(flow, fd, began);
        counts_of(flow)->unserved += error == ETIMEDOUT;
    }
    counts_of(flow)->retransmits += read_retransmits(fd);
    if (error == 0)
        flow_count(flow, fd, clock_now(), 1);
    if (error != 0 || flow->request->closing == CLOSE_RESET)
        system_reset_at_close(fd, true);
    close(fd);
    return error;
}

static void connections_make(struct flow *flow)
{
    const struct start *start = flow->start;
    struct sockaddr_storage there = flow->request->address;
    int64_t woke = clock_now(), left = start->iterations;
    int64_t due = (woke - start->at_ns > LATE_NS ? woke : start->at_ns) + flow->number * start->stagger_ns;

    *address_port(&there) = htons((in_port_t)flow->datagram.port);
    counts_of(flow)->late = start->every_ns > 0 ? 0 : -1;
    flow->first_byte_ns = woke;
    for (; left > 0 && !flow_is_stopping(flow); left--, due += start->every_ns) {
        int64_t now = clock_now(), began = now;
        int error;

        if (start->every_ns > 0) {
            if (due >= start->end_ns)
                break;
            if (now < due) {
                flow_sleep_until(flow, due);
                now = clock_now();
                /* That this thread woke late is no fault of the path: all that follows is due later. */
                due = now - due > LATE_NS ? now : due;
            }
            began = due;
            counts_of(flow)->late += now - began > LATE_NS;
        }
        if (now >= start->end_ns || flow_is_stopping(flow))
            break;
        error = make_one(flow, &there, began);
        if (error == EINPROGRESS)
            break;
        if (error != 0)
            count_failure(counts_of(flow), error);
        if (error != 0 && clock_now() - now < FAILED_AT_ONCE_NS)
            clock_sleep_until(now + NAP_NS);
    }
}

/* A connection that a receiver accepted, and that is not closed yet. */
struct taken {
    int fd;
    bool answered;
    int64_t since;
};

/* What a receiver's thread leaves aside for others while nothing comes: a firewall may have cut it, or its sender is far away. */
struct parking {
    struct taken taken[PARKED_MAX];
    int count;
};

static void reset(int fd)
{
    system_reset_at_close(fd, true);
    close(fd);
}

/* Go on with a connection: receive its byte, answer with a byte, and close it, first or after the sender. `flags` are those of recv(2).
 * Returns false if nothing came. */
static bool serve(struct flow *flow, struct taken *taken, int flags)
{
    unsigned char byte = 0;
    ssize_t got = recv(taken->fd, &byte, 1, flags);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got == 1 && !taken->answered && send(taken->fd, &byte, 1, MSG_NOSIGNAL) == 1) {
        flow_count(flow, taken->fd, clock_now(), 1);
        taken->answered = true;
        if (flow->request->closing != CLOSE_RECEIVER)
            return serve(flow, taken, flags);
        close(taken->fd);
    } else if (got == 0 && taken->answered) {
        close(taken->fd);
    } else {
        reset(taken->fd);
    }
    return true;
}

static void park(struct parking *parking, const struct taken *taken)
{
    if (parking->count == PARKED_MAX) { /* the first one has waited longest */
        reset(parking->taken[0].fd);
        memmove(parking->taken, parking->taken + 1, (size_t)--parking->count * sizeof *parking->taken);
    }
    parking->taken[parking->count++] = *taken;
}

/* Wait until a connection comes, or something to one of those parked, for at most `wait_ms`, and serve the latter. */
static void serve_parked(struct flow *flow, struct parking *parking, int wait_ms)
{
    struct pollfd polls[PARKED_MAX + 1];
    int left = 0, count = parking->count;

    for (int i = 0; i < count; i++)
        polls[i] = (struct pollfd){.fd = parking->taken[i].fd, .events = POLLIN};
    polls[count] = (struct pollfd){.fd = flow->datagram.fd, .events = POLLIN};
    poll(polls, (nfds_t)count + 1, wait_ms);
    for (int i = 0; i < count; i++) {
        struct taken *taken = &parking->taken[i];

        if (polls[i].revents != 0 && serve(flow, taken, MSG_DONTWAIT))
            continue;
        if (clock_now() - taken->since >= PARKED_NS)
            reset(taken->fd);
        else
            parking->taken[left++] = *taken;
    }
    parking->count = left;
}

/* Tell whether two addresses are of one host. */
static bool same_host(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
    struct sockaddr_storage mine = *one, theirs = *other;

    *address_port(&mine) = *address_port(&theirs) = 0;
    return address_equal(&mine, &theirs);
}

/* Accept a connection of the flow's own sender. Returns its descriptor, or -1 with errno. */
static int accept_own(const struct flow *flow, const struct sockaddr_storage *sender)
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer;
    int fd = accept4(flow->datagram.fd, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC);

    if (fd < 0 || same_host(sender, &peer))
        return fd;
    reset(fd); /* of a stranger */
    errno = ECONNABORTED;
    return -1;
}

static void connections_serve(struct flow *flow)
{
    struct sockaddr_storage sender = {0};
    struct parking parking = {.count = 0};
    socklen_t length = sizeof sender;
    int64_t looked = 0;

    if (getpeername(flow->fd, (struct sockaddr *)&sender, &length) != 0)
        return;
    while (!flow_is_stopping(flow)) {
        struct taken taken = {.since = clock_now()};

        /* Connections that a firewall has cut may wait in the queue by the thousand: a sender that has ended needs none of them. */
        if (taken.since - looked >= WAIT_US * US) {
            looked = taken.since;
            if (udp_has_ended(flow))
                break;
        }
        taken.fd = accept_own(flow, &sender);
        if (taken.fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            clock_sleep_until(clock_now() + NAP_NS); /* no descriptor or memory is left for it */
        else if (taken.fd < 0)
            serve_parked(flow, &parking, WAIT_US / 1000);
        else if (!serve(flow, &taken, parking.count > 0 ? MSG_DONTWAIT : 0))
            park(&parking, &taken);
        if (taken.fd >= 0 && parking.count > 0)
            serve_parked(flow, &parking, 0);
    }
    while (parking.count > 0)
        reset(parking.taken[--parking.count].fd);
}

/* Make the listening socket that the flows of a receiver share, on a port of its range if it has one. Returns it, or -1 with errno. */
static int make_listener(const struct flow *flow)
{
    int first = (int)flow->request->first_port, last = (int)flow->request->last_port, fd = -1;

    errno = EADDRINUSE;
    for (int port = first; port <= last && fd < 0 && errno == EADDRINUSE; port++) {
        struct sockaddr_storage here = flow->request->address;

        *address_port(&here) = htons((in_port_t)port);
        fd = socket(here.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
        if (fd < 0)
            break;
        set_timeouts(fd); /* which accepted sockets inherit */
        if (sockopts_apply(fd, here.ss_family, true, &flow->request->sockopts) != NULL ||
            bind(fd, (struct sockaddr *)&here, address_length(&here)) != 0 || listen(fd, SOMAXCONN) != 0)
            fd = system_close_failed(fd);
    }
    return fd;
}

/* `*listener` is the socket that the first flow made. */
static int connections_open(struct flow *flow, int *listener)
{
    struct sockaddr_storage here;
    socklen_t length = sizeof here;

    if (flow->sender)
        return 0;
    if (*listener < 0)
        *listener = make_listener(flow);
    flow->datagram.fd = *listener < 0 ? -1 : fcntl(*listener, F_DUPFD_CLOEXEC, 0);
    if (flow->datagram.fd < 0 || getsockname(flow->datagram.fd, (struct sockaddr *)&here, &length) != 0)
        return errno;
    flow->datagram.port = ntohs(*address_port(&here));
    return 0;
}

static int connections_prepare(struct flow *flow)
{
    flow->counts = flow->sender ? calloc(1, sizeof(struct connections)) : NULL;
    return flow->sender && flow->counts == NULL ? ENOMEM : 0;
}

static void connections_report(const struct flow *flow)
{
    const struct connections *counts = counts_of(flow);

    line_add(",\"connections\":{\"retransmits\":%lld", (long long)counts->retransmits);
    line_add_count("late", counts->late);
    line_add_count("unserved", counts->unserved);
    line_add(",\"failed\":[");
    for (int i = 0; i < FAILURES_MAX && counts->failed[i].error != 0; i++)
        line_add("%s[\"%s\",%lld]", i > 0 ? "," : "", errno_name(counts->failed[i].error), (long long)counts->failed[i].count);
    line_add("]}");
}

const struct work connect_work = {"connect", "tcp", connections_open, connections_prepare, connections_make, connections_serve, flow_end,
                                  1, 1, .report = connections_report, .messages = true, .trips = true, .connects = true};
