/* Datagrams: a stream at a set rate, and ping-pong.
 *
 * A stream's datagrams go to the kernel as many at a time as are due: one alone at low rates, at high ones those of 250 µs (of a sender
 * that cannot keep up, up to 1024) in one call, in pieces that the kernel (or the NIC) cuts into datagrams (udp(7), UDP_SEGMENT), and
 * come back from it in such pieces (UDP_GRO). Where it cannot cut, each datagram is handed over by itself, many in one call.
 */
#include "udp.h"

#include <endian.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "clock.h"
#include "data.h"
#include "flow.h"

#define PIECES 16             /* in one call … */
#define SEGMENTS 64           /* … of so many datagrams each: UDP_MAX_SEGMENTS of older kernels … */
#define BATCH_BYTES (256 << 10) /* … and no more in all, so that they stay in the processor's cache */
#define PIECE_BYTES 65536
#define QUANTUM_NS (250 * US) /* it wakes no more often than that: what fell due meanwhile goes together */
#define DEBT_NS (10 * MS)     /* what was not sent in time is made up for, so much at most */
#define QUIET_US 50000        /* a receiver looks for the end-of-file when nothing came for so long */
#define RECEIVER_BYTES (4 << 20) /* of its buffer where no window is asked for, as far as the node grants it */
#define TRIP_S 1              /* a round trip that takes longer counts as lost */
#define SPINS 4096
#define FASTEST_NS 50.0          /* no sender without a rate spends less time on a datagram */
#define MARGIN_NS (500 * MS)

static int connected_socket(const struct flow *flow)
{
    struct sockaddr_storage here, there;
    socklen_t here_length = sizeof here, there_length = sizeof there;
    int on = 1, fd, error;

    if (getsockname(flow->fd, (struct sockaddr *)&here, &here_length) != 0 ||
        getpeername(flow->fd, (struct sockaddr *)&there, &there_length) != 0)
        return -1;
    fd = socket(here.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);
    if (fd < 0)
        return -1;
    /* All flows of a receiver share its port: their peers tell them apart. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 && bind(fd, (struct sockaddr *)&here, here_length) == 0 &&
        connect(fd, (struct sockaddr *)&there, there_length) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

int udp_open(struct flow *flow)
{
    int buffer = (int)flow->window.bytes, large = RECEIVER_BYTES;
    bool streams = !flow->work->messages;

    flow->datagram.fd = connected_socket(flow);
    if (flow->datagram.fd < 0)
        return errno;
    if (flow->window.bytes >= 0)
        return setsockopt(flow->datagram.fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer) != 0 ||
                       setsockopt(flow->datagram.fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer) != 0
                   ? errno
                   : 0;
    /* What a host drops because its processor was elsewhere for a millisecond says nothing of the network. */
    if (streams && !flow->sender && setsockopt(flow->datagram.fd, SOL_SOCKET, SO_RCVBUFFORCE, &large, sizeof large) != 0)
        setsockopt(flow->datagram.fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
    return 0;
}

/* `room` bytes for datagrams, what is counted of them, and how long a receive call waits. */
static int prepare(struct flow *flow, size_t room)
{
    struct timeval quiet = {.tv_usec = QUIET_US}, trip = {.tv_sec = TRIP_S};

    flow->buffer = malloc(room);
    flow->datagram.counts = calloc(1, sizeof *flow->datagram.counts);
    if (flow->buffer == NULL || flow->datagram.counts == NULL)
        return ENOMEM;
    datagrams_begin(flow->datagram.counts, flow->datagram.tag);
    if (flow->sender)
        data_fill(flow->buffer, room);
    return setsockopt(flow->datagram.fd, SOL_SOCKET, SO_RCVTIMEO, flow->sender ? &trip : &quiet, sizeof quiet) == 0 ? 0 : errno;
}

int udp_prepare_pingpong(struct flow *flow)
{
    if (flow->sender)
        flow->message.trips = calloc(1, sizeof *flow->message.trips);
    return flow->sender && flow->message.trips == NULL ? ENOMEM : prepare(flow, DATAGRAM_MAX);
}

int udp_prepare_stream(struct flow *flow)
{
    int on = 1, size = (int)flow->message.size;
    int error = prepare(flow, flow->sender ? BATCH_BYTES + DATAGRAM_MAX : (size_t)PIECES * PIECE_BYTES);

    if (error != 0)
        return error;
    if (!flow->sender) {
        /* Where it is refused each datagram comes by itself: at a higher price, with the same result. */
        setsockopt(flow->datagram.fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
        return 0;
    }
    /* With IP_RECVERR (ip(7)) a sender can tell what its own queue refuses from the network's losses. */
    setsockopt(flow->datagram.fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
    setsockopt(flow->datagram.fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on);
    flow->datagram.counts->segmented = setsockopt(flow->datagram.fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) == 0;
    return 0;
}

static void no_segments(struct flow *flow)
{
    int none = 0;

    flow->datagram.counts->segmented = false;
    setsockopt(flow->datagram.fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof none);
}

/* So many datagrams as fit one call, at most `due`, laid out and numbered. Returns how many; `*pieces` messages hold them. */
static int64_t lay_out(struct flow *flow, struct mmsghdr *messages, struct iovec *vectors, int64_t due, int *pieces)
{
    int64_t size = flow->message.size, now = clock_now(), laid = 0;
    int64_t whole = flow->datagram.counts->segmented ? DATAGRAM_MAX / size : 1; /* datagrams in a piece */
    unsigned char *at = flow->buffer;

    if (whole > SEGMENTS)
        whole = SEGMENTS;
    for (*pieces = 0; *pieces < PIECES && laid < due && at < flow->buffer + BATCH_BYTES; ++*pieces) {
        int64_t count = due - laid < whole ? due - laid : whole;

        vectors[*pieces] = (struct iovec){.iov_base = at, .iov_len = (size_t)(count * size)};
        messages[*pieces] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[*pieces], .msg_iovlen = 1}};
        for (int64_t i = 0; i < count; i++, at += size)
            datagram_write(at, flow->datagram.tag, flow->datagram.counts->next + laid++, now);
    }
    return laid;
}

/* Send what is due, or as much of it as one call takes. Returns how many datagrams were handed over or refused, -1 where it broke. */
static int64_t send_due(struct flow *flow, int64_t due)
{
    struct mmsghdr messages[PIECES];
    struct iovec vectors[PIECES];
    int pieces, sent;
    int64_t taken = 0;

    lay_out(flow, messages, vectors, due, &pieces);
    sent = sendmmsg(flow->datagram.fd, messages, (unsigned)pieces, 0);
    if (sent < 0 && (errno == ENOBUFS || errno == EAGAIN)) {
        /* Never sent, so its numbers are given again; its time is over all the same. */
        flow->datagram.counts->refused += (int64_t)vectors[0].iov_len / flow->message.size;
        return (int64_t)vectors[0].iov_len / flow->message.size;
    }
    if (sent < 0 && flow->datagram.counts->segmented && (errno == EINVAL || errno == EIO || errno == EMSGSIZE)) {
        no_segments(flow);
        return 0;
    }
    if (sent < 0 && errno == EINTR)
        return 0;
    if (sent < 0) {
        flow_broke(flow, "send", errno);
        return -1;
    }
    for (int i = 0; i < sent; i++)
        taken += (int64_t)vectors[i].iov_len / flow->message.size;
    flow->datagram.counts->count += taken;
    flow->datagram.counts->next += taken;
    flow_count(flow, taken * flow->message.size);
    return taken;
}

static void send_stream(struct flow *flow)
{
    double each_ns = flow->datagram.rate > 0 ? 8e9 * (double)flow->message.size / (double)flow->datagram.rate : 0;
    int64_t from = flow->time.bulk_ns, gone = 0, now;

    flow->first_byte_ns = clock_now();
    if (send_due(flow, 1) < 0)
        return;
    flow->last_byte_ns = clock_now();
    flow_sleep_until(flow, from);
    while ((now = clock_now()) < flow->time.end_ns && !flow_stopping(flow)) {
        int64_t due = INT64_MAX, sent;

        if (each_ns > 0) {
            due = (int64_t)((double)(now - from) / each_ns) + 1 - gone;
            if ((double)due * each_ns > DEBT_NS + each_ns) { /* it cannot keep up: what it is behind is given up */
                from = now - DEBT_NS;
                gone = 0;
                due = (int64_t)(DEBT_NS / each_ns) + 1;
            }
            if (due <= 0) {
                int64_t next = from + (int64_t)((double)gone * each_ns) + 1;

                if (next < now + QUANTUM_NS && each_ns < QUANTUM_NS)
                    next = now + QUANTUM_NS;
                flow_sleep_until(flow, next < flow->time.end_ns ? next : flow->time.end_ns);
                continue;
            }
        }
        sent = send_due(flow, due);
        if (sent < 0)
            return;
        gone += sent;
        flow->last_byte_ns = clock_now();
    }
}

static bool ended(const struct flow *flow)
{
    char byte;

    return recv(flow->fd, &byte, 1, MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

/* How many datagrams the sender can have sent by now, with a margin for what its clock may be off. */
static int64_t most_by(const struct flow *flow, int64_t now)
{
    double each_ns = flow->datagram.rate > 0 ? 8e9 * (double)flow->message.size / (double)flow->datagram.rate : FASTEST_NS;
    double most = (double)(now - flow->time.at_ns + MARGIN_NS) / each_ns + 2;

    return most < 1 ? 1 : most > 1e15 ? INT64_C(1000000000000000) : (int64_t)most;
}

/* The datagrams of one piece; how many bytes of them count. */
static int64_t take_piece(struct flow *flow, struct msghdr *header, size_t length, int64_t now)
{
    int64_t most = most_by(flow, now);
    const unsigned char *data = header->msg_iov->iov_base;
    const struct cmsghdr *note = CMSG_FIRSTHDR(header);
    size_t size = length;
    int64_t counted = 0;

    /* The only note there can be: how long the datagrams of this piece are. */
    if (note != NULL && note->cmsg_level == IPPROTO_UDP && note->cmsg_type == UDP_GRO) {
        int cut;

        memcpy(&cut, CMSG_DATA(note), sizeof cut);
        size = cut > 0 ? (size_t)cut : length;
    }
    for (size_t at = 0; at < length; at += size) {
        size_t part = length - at < size ? length - at : size;

        if (part < DATAGRAM_HEADER)
            flow->datagram.counts->strays++;
        else if (datagrams_take(flow->datagram.counts, data + at, now, most))
            counted += (int64_t)part;
    }
    return counted;
}

static void receive_stream(struct flow *flow)
{
    struct mmsghdr messages[PIECES];
    struct iovec vectors[PIECES];
    union {
        struct cmsghdr aligned;
        char bytes[CMSG_SPACE(sizeof(int))];
    } notes[PIECES];

    for (;;) {
        int got;
        int64_t now, counted = 0;

        for (int i = 0; i < PIECES; i++) {
            vectors[i] = (struct iovec){.iov_base = flow->buffer + (size_t)i * PIECE_BYTES, .iov_len = PIECE_BYTES};
            messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1, .msg_control = &notes[i],
                                                       .msg_controllen = sizeof notes[i]}};
        }
        got = recvmmsg(flow->datagram.fd, messages, PIECES, MSG_WAITFORONE, NULL);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (ended(flow))
                break;
            continue;
        }
        if (got < 0 && errno != ECONNREFUSED) {
            flow_broke(flow, "recv", errno);
            break;
        }
        now = clock_now();
        for (int i = 0; i < got; i++)
            counted += take_piece(flow, &messages[i].msg_hdr, messages[i].msg_len, now);
        /* Strays must not keep it here. */
        if (flow_stopping(flow) || (counted == 0 && now - flow->last_byte_ns > QUIET_US * US && ended(flow)))
            break;
        if (counted == 0)
            continue;
        flow->last_byte_ns = now;
        if (flow->first_byte_ns == 0)
            flow->first_byte_ns = now;
        flow_count(flow, counted);
        flow_bin(flow, now, counted);
    }
    datagrams_end(flow->datagram.counts);
}

/* What the kernel says of the socket, and no more: a UDP socket has no TCP_INFO. */
static void sample_socket(struct flow *flow)
{
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof memory;
    int value;
    socklen_t value_length = sizeof value;

    sample_unknown(&flow->totals);
    if (getsockopt(flow->datagram.fd, SOL_SOCKET, SO_SNDBUF, &value, &value_length) == 0)
        flow->totals.sndbuf = value;
    if (getsockopt(flow->datagram.fd, SOL_SOCKET, SO_RCVBUF, &value, &value_length) == 0)
        flow->totals.rcvbuf = value;
    if (!flow->sender && getsockopt(flow->datagram.fd, SOL_SOCKET, SO_MEMINFO, memory, &length) == 0 &&
        length > SK_MEMINFO_DROPS * sizeof *memory)
        flow->datagram.counts->overflow = memory[SK_MEMINFO_DROPS];
}

void udp_stream(struct flow *flow)
{
    (flow->sender ? send_stream : receive_stream)(flow);
    sample_socket(flow);
    flow_finish(flow);
}

/* One datagram into the buffer. Returns its length, -1 when none came in time or the flow has ended. */
static ssize_t receive_one(struct flow *flow, int64_t until)
{
    for (int spins = 1;; spins++) {
        ssize_t got = recv(flow->datagram.fd, flow->buffer, DATAGRAM_MAX, flow->message.busy ? MSG_DONTWAIT : 0);

        if (got >= 0)
            return got;
        if (errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED) {
            flow_broke(flow, "recv", errno);
            return -1;
        }
        if (flow->message.busy && spins % SPINS != 0)
            continue;
        if (flow_stopping(flow) || (flow->sender ? clock_now() >= until : ended(flow)))
            return -1;
    }
}

static void count_trip(struct flow *flow, int64_t before, int64_t now)
{
    histogram_add(flow->message.trips, now - before);
    flow->last_byte_ns = now;
    flow_count(flow, flow->message.size);
}

/* A message's tag, where it is long enough for one, and its number, or as much of that as there is room for. Returns their bytes. */
static size_t mark(struct flow *flow, uint64_t number)
{
    size_t size = (size_t)flow->message.size, tagged = size < DATAGRAM_HEADER ? 0 : TAG_BYTES;
    size_t numbered = size - tagged < sizeof number ? size - tagged : sizeof number;

    number = htole64(number);
    if (tagged > 0)
        datagram_put_tag(flow->buffer, flow->datagram.tag);
    memcpy(flow->buffer + tagged, &number, numbered);
    return tagged + numbered;
}

static void ping(struct flow *flow)
{
    size_t size = (size_t)flow->message.size;
    int64_t before = flow->first_byte_ns = clock_now();

    for (int64_t number = 1; number <= flow->message.iterations && before < flow->time.end_ns && !flow_stopping(flow); number++) {
        unsigned char marked[DATAGRAM_HEADER];
        size_t header = mark(flow, (uint64_t)number);
        int64_t until = before + TRIP_S * SECOND;
        ssize_t got;

        memcpy(marked, flow->buffer, header);
        if (send(flow->datagram.fd, flow->buffer, size, 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED) {
            flow_broke(flow, "send", errno);
            return;
        }
        flow->datagram.counts->count++;
        /* An answer to an earlier message that comes late has another number. */
        while ((got = receive_one(flow, until)) >= 0 && ((size_t)got != size || memcmp(flow->buffer, marked, header) != 0)) {
            flow->datagram.counts->strays++;
            if (clock_now() >= until)
                break;
        }
        if (flow->failure.error != 0)
            return;
        if (got == (ssize_t)size && memcmp(flow->buffer, marked, header) == 0)
            count_trip(flow, before, clock_now());
        before = clock_now();
    }
}

static void pong(struct flow *flow)
{
    ssize_t got;

    while ((got = receive_one(flow, 0)) >= 0) {
        if (got != (ssize_t)flow->message.size ||
            (got >= DATAGRAM_HEADER && !datagram_has_tag(flow->buffer, flow->datagram.tag))) {
            flow->datagram.counts->strays++;
            if (flow_stopping(flow) || ended(flow))
                break;
            continue;
        }
        flow->last_byte_ns = clock_now();
        if (flow->first_byte_ns == 0)
            flow->first_byte_ns = flow->last_byte_ns;
        flow_count(flow, got);
        flow->datagram.counts->count++;
        if (send(flow->datagram.fd, flow->buffer, (size_t)got, 0) < 0 && errno == ENOBUFS)
            flow->datagram.counts->refused++;
    }
}

void udp_pingpong(struct flow *flow)
{
    (flow->sender ? ping : pong)(flow);
    sample_socket(flow);
    flow_finish(flow);
}
