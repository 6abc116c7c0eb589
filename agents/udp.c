/* Datagrams: their sockets, ping-pong, and probes of the round trip during other traffic. The receiver returns each datagram. */
#if defined(__linux__)
#include <linux/sock_diag.h>
#endif

#include "address.h"
#include "clock.h"
#include "flow.h"
#include "marks.h"
#include "system.h"

#define TRIP_S 1                 /* seconds after which a message without an answer counts as lost */
#define SPINS 4096               /* receive calls of a busy ping-pong between two readings of the clock */
#define NAP_NS (50 * MS)         /* longest wait of a probe's sender, so that an order to stop takes effect soon */
#define RECEIVER_BYTES (4 << 20) /* bytes of the receive buffer without a requested window, if the node grants them */

int udp_reserve(const struct sockaddr_storage *address)
{
    int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);

    if (fd < 0 || bind(fd, (const struct sockaddr *)address, address_length(address)) == 0)
        return fd;
    return system_close_failed(fd);
}

int udp_share(int fd)
{
    int on = 1;

    /* Not SO_REUSEADDR: with it any user could bind the port, connect to the sender and take its datagrams. */
    return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
}

/* Make a socket on the port of all flows. The kernel gives it the datagrams of its sender once it is connected. */
static int join_port(const struct sockaddr_storage *here)
{
    int fd = socket(here->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);

    if (fd < 0 || (udp_share(fd) == 0 && bind(fd, (const struct sockaddr *)here, address_length(here)) == 0))
        return fd;
    return system_close_failed(fd);
}

/* Make a socket on a port of its own, from the receiver's range of ports if it has one. */
static int next_port(const struct flow *flow, struct sockaddr_storage *here)
{
    int first = (int)flow->request->first_port, last = (int)flow->request->last_port, fd = -1;

    errno = EADDRINUSE;
    for (int port = first; port <= last && fd < 0 && errno == EADDRINUSE; port++) {
        *address_port(here) = htons((in_port_t)port);
        fd = udp_reserve(here);
    }
    return fd;
}

/* Return a receiver's socket for the datagrams of a flow, or -1 with errno. */
static int receiver_socket(const struct flow *flow, struct sockaddr_storage *here, int *reserved)
{
    int fd = *reserved;

    if (SYSTEM_SHARES_PORTS)
        return join_port(here);
    if (fd < 0)
        return next_port(flow, here);
    *reserved = -1;
    return fd;
}

static int connect_socket(struct flow *flow, int *reserved)
{
    struct sockaddr_storage here, there;
    socklen_t here_length = sizeof here, there_length = sizeof there;

    if (getsockname(flow->fd, (struct sockaddr *)&here, &here_length) != 0 ||
        getpeername(flow->fd, (struct sockaddr *)&there, &there_length) != 0)
        return errno;
    if (flow->sender)
        *address_port(&there) = htons((in_port_t)flow->datagram.port);
    else
        flow->datagram.fd = receiver_socket(flow, &here, reserved);
    if (flow->datagram.fd < 0 || connect(flow->datagram.fd, (struct sockaddr *)&there, there_length) != 0 ||
        getsockname(flow->datagram.fd, (struct sockaddr *)&here, &here_length) != 0)
        return errno;
    if (!flow->sender)
        flow->datagram.port = ntohs(*address_port(&here));
    return 0;
}

int udp_open(struct flow *flow, int *reserved)
{
    int error = connect_socket(flow, reserved);

    return error != 0 ? error : udp_set_options(flow);
}

int udp_set_options(struct flow *flow)
{
    int large = RECEIVER_BYTES;
    bool large_buffer = (!flow->work->messages || flow->work->by_burst) && !flow->sender && flow->window.bytes < 0;

    if (sockopts_apply(flow->datagram.fd, flow->request->address.ss_family, false, &flow->request->sockopts) != NULL)
        return errno;
    if (flow->marks != NULL)
        marks_receive(flow->datagram.fd, flow->request->address.ss_family);
    /* The buffer is large, because drops while the processor is busy for a millisecond say nothing about the network. */
#if defined(SO_RCVBUFFORCE)
    if (large_buffer && setsockopt(flow->datagram.fd, SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large) == 0)
        return 0;
#endif
    if (flow->window.bytes >= 0)
        return 0;
    /* FreeBSD sends no datagram that is larger than the send buffer, and receives none that is larger than the receive buffer. By default
     * these have 9,216 (net.inet.udp.maxdgram) and 42,080 bytes (net.inet.udp.recvspace). */
    sockopts_enlarge_buffer(flow->datagram.fd, SO_SNDBUF, (int)flow->request->size);
    sockopts_enlarge_buffer(flow->datagram.fd, SO_RCVBUF, large_buffer ? large : 2 * (int)flow->request->size);
    return 0;
}

int udp_allocate(struct flow *flow, int64_t bytes)
{
    struct timeval quiet = {.tv_usec = UDP_QUIET_US}, trip = {.tv_sec = TRIP_S};

    flow->datagram.counts = calloc(1, sizeof *flow->datagram.counts);
    if (flow->datagram.counts == NULL || flow_buffer(flow, bytes) != 0)
        return ENOMEM;
    datagrams_begin(flow->datagram.counts, flow->datagram.tag);
    return setsockopt(flow->datagram.fd, SOL_SOCKET, SO_RCVTIMEO, flow->sender ? &trip : &quiet, sizeof quiet) == 0 ? 0 : errno;
}

static int udp_prepare(struct flow *flow)
{
    return udp_allocate(flow, DATAGRAM_MAX);
}

bool udp_has_ended(const struct flow *flow)
{
    char byte;

    return recv(flow->fd, &byte, 1, MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

/* Read the socket options and the kernel's count of dropped datagrams; a UDP socket has no TCP_INFO. */
void udp_finish(struct flow *flow)
{
    sample_clear(&flow->totals);
    sockopts_read(flow->datagram.fd, &flow->totals.sockopts, false);
#if defined(SO_MEMINFO)
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof memory;

    if (!flow->sender && getsockopt(flow->datagram.fd, SOL_SOCKET, SO_MEMINFO, memory, &length) == 0 &&
        length > SK_MEMINFO_DROPS * sizeof *memory)
        flow->datagram.counts->overflow = memory[SK_MEMINFO_DROPS];
#endif
    flow_finish(flow);
}

/* Receive a datagram into the buffer. Returns its length, or -1 if none came in time or if the flow has ended. */
static ssize_t receive_one(struct flow *flow, int64_t until)
{
    for (int spins = 1;; spins++) {
        ssize_t got = marks_recv(flow->marks, flow->datagram.fd, flow->buffer, DATAGRAM_MAX, flow->request->busy ? MSG_DONTWAIT : 0);

        if (got >= 0)
            return got;
        if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED) {
            flow_fail_unless_stopping(flow, "recv", errno);
            return -1;
        }
        if (flow->request->busy && spins % SPINS != 0)
            continue;
        if (flow_is_stopping(flow) || (flow->sender ? clock_now() >= until : udp_has_ended(flow)))
            return -1;
    }
}

/* Write a message's tag if it fits, and as much of the message's number as fits. Returns the number of bytes. */
static size_t write_header(struct flow *flow, uint64_t number)
{
    size_t size = (size_t)flow->request->size, tagged = size < DATAGRAM_HEADER ? 0 : TAG_BYTES;
    size_t numbered = size - tagged < sizeof number ? size - tagged : sizeof number;

    number = htole64(number);
    if (tagged > 0)
        datagram_put_tag(flow->buffer, flow->datagram.tag);
    memcpy(flow->buffer + tagged, &number, numbered);
    return tagged + numbered;
}

static void udp_ping(struct flow *flow)
{
    size_t size = (size_t)flow->request->size;
    int64_t before = flow->first_byte_ns = clock_now();

    for (int64_t number = 1; number <= flow->start->iterations && before < flow->start->end_ns && !flow_is_stopping(flow); number++) {
        unsigned char expected[DATAGRAM_HEADER];
        size_t header = write_header(flow, (uint64_t)number);
        int64_t until = before + TRIP_S * SECOND, now;
        ssize_t got;

        memcpy(expected, flow->buffer, header);
        if (send(flow->datagram.fd, flow->buffer, size, 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED) {
            flow_fail_unless_stopping(flow, "send", errno);
            return;
        }
        flow->datagram.counts->count++;
        /* A late answer to an earlier message has another number. */
        while ((got = receive_one(flow, until)) >= 0 && ((size_t)got != size || memcmp(flow->buffer, expected, header) != 0)) {
            flow->datagram.counts->strays++;
            if (clock_now() >= until)
                break;
        }
        if (flow->failure.error != 0)
            return;
        now = clock_now();
        if (got == (ssize_t)size && memcmp(flow->buffer, expected, header) == 0) {
            histogram_add(flow->trips, now - before);
            marks_count(flow->marks, 1);
            flow_count(flow, flow->datagram.fd, now, got);
        }
        before = clock_now();
    }
}

static void udp_pong(struct flow *flow)
{
    ssize_t got;

    while ((got = receive_one(flow, 0)) >= 0) {
        if (got != (ssize_t)flow->request->size ||
            (got >= DATAGRAM_HEADER && !datagram_has_tag(flow->buffer, flow->datagram.tag))) {
            flow->datagram.counts->strays++;
            if (flow_is_stopping(flow) || udp_has_ended(flow))
                break;
            continue;
        }
        flow_count(flow, flow->datagram.fd, clock_now(), got);
        marks_count(flow->marks, 1);
        flow->datagram.counts->count++;
        if (send(flow->datagram.fd, flow->buffer, (size_t)got, 0) < 0 && errno == ENOBUFS)
            flow->datagram.counts->refused++;
    }
}

/* A probe is one datagram per interval. Its row of samples has its send time, the number of answered probes so far, and its round trip. */
static int64_t *find_row(const struct flow *flow, int64_t number)
{
    return flow->samples.rows + (size_t)number * COLUMNS_PROBE;
}

static void send_probe(struct flow *flow)
{
    int64_t now = clock_now();

    if (flow->samples.count == 0)
        flow->first_byte_ns = now;
    datagram_write(flow->buffer, flow->datagram.tag, flow->samples.count, now);
    find_row(flow, flow->samples.count)[0] = now;
    flow->samples.count++;
    flow->datagram.counts->count++;
    /* A refused datagram counts as lost, as if another queue had dropped it. */
    if (send(flow->datagram.fd, flow->buffer, (size_t)flow->request->size, 0) < 0)
        flow->datagram.counts->refused++;
}

/* Read all answers that have arrived. */
static void take_answers(struct flow *flow)
{
    ssize_t got;

    while ((got = recv(flow->datagram.fd, flow->buffer, DATAGRAM_MAX, MSG_DONTWAIT)) >= 0) {
        int64_t now = clock_now(), number = got == flow->request->size ? datagram_number(flow->buffer) : INT64_MAX;

        /* Further answers to the same probe do not count. */
        if (number >= flow->samples.count || !datagram_has_tag(flow->buffer, flow->datagram.tag) || find_row(flow, number)[1] != 0) {
            flow->datagram.counts->strays++;
            continue;
        }
        find_row(flow, number)[1] = 1;
        find_row(flow, number)[2] = now - find_row(flow, number)[0];
        flow_count(flow, flow->datagram.fd, now, got);
    }
}

/* Return until when to wait for answers: one second after the last unanswered probe. */
static int64_t wait_until_ns(const struct flow *flow)
{
    for (int64_t number = flow->samples.count - 1; number >= 0; number--)
        if (find_row(flow, number)[1] == 0)
            return find_row(flow, number)[0] + TRIP_S * SECOND;
    return 0;
}

static void send_probes(struct flow *flow)
{
    struct pollfd answers = {.fd = flow->datagram.fd, .events = POLLIN};
    int64_t next = flow->start->at_ns, now;

    while (!flow_is_stopping(flow) && ((now = clock_now()) < flow->start->end_ns || now < wait_until_ns(flow))) {
        struct timespec nap;

        if (now >= next && next < flow->start->end_ns && flow->samples.count < flow->samples.room) {
            send_probe(flow);
            next += flow->request->interval_ns;
        }
        nap = clock_spec(next > now && next - now < NAP_NS ? next - now : NAP_NS);
        if (next > now || next >= flow->start->end_ns)
            ppoll(&answers, 1, &nap, NULL);
        take_answers(flow);
    }
}

/* Replace the second column (1: answered) by a running count of answers, and a missing round trip by the one of the previous probe. */
static void sum_up(struct flow *flow)
{
    for (int64_t number = 1; number < flow->samples.count; number++) {
        int64_t *row = find_row(flow, number), *before = find_row(flow, number - 1);

        if (row[1] == 0)
            row[2] = before[2];
        row[1] += before[1];
    }
}

static void udp_probe(struct flow *flow)
{
    send_probes(flow);
    sum_up(flow);
}

const struct work udp_pingpong_work = {"pingpong", "udp", udp_open, udp_prepare, udp_ping, udp_pong, udp_finish, 1, DATAGRAM_MAX,
                                       .messages = true, .trips = true};
const struct work probe_work = {"probe", "udp", udp_open, udp_prepare, udp_probe, udp_pong, udp_finish, DATAGRAM_HEADER,
                                DATAGRAM_MAX, .messages = true, .paced = true};
