/* A stream of datagrams, at a requested rate or as fast as possible. One call sends all datagrams that are due: one at low rates, those of
 * 250 µs at high rates, up to 1024 if the sender is late. The kernel or the card cuts a piece of the buffer into datagrams (udp(7),
 * UDP_SEGMENT), and joins them to pieces at the receiver (UDP_GRO). If the kernel cannot cut pieces, each piece is one datagram. */
#include "clock.h"
#include "flow.h"
#include "marks.h"

#if !defined(UDP_SEGMENT)
/* FreeBSD lacks these options. With -1, setsockopt(2) fails, as it may on Linux. */
#define UDP_SEGMENT (-1)
#define UDP_GRO (-1)
#define IP_RECVERR (-1)
#define IPV6_RECVERR (-1)
#endif

#define PIECES 16               /* most pieces (parts of the buffer) sent or received in one call */
#define SEGMENTS 64             /* most datagrams in a piece: UDP_MAX_SEGMENTS of older kernels */
#define BATCH_BYTES (256 << 10) /* most bytes sent in one call, few enough for the processor's cache */
#define PIECE_BYTES 65536
#define QUANTUM_NS (250 * US) /* shortest sleep of a sender */
#define BURST_NS (10 * MS)    /* most time that a late sender makes up for, if no burst is requested */
#define FASTEST_NS 50.0       /* shortest time that a sender without a rate needs per datagram */
#define MARGIN_NS (500 * MS)  /* largest error of the receiver's estimate of the sender's clock */

/* Tell whether the flow's datagrams have room for their header, and so have numbers. */
static bool has_header(const struct flow *flow)
{
    return flow->request->size >= DATAGRAM_HEADER;
}

int udp_stream_prepare(struct flow *flow)
{
    int on = 1, size = (int)flow->request->size;
    int error = udp_allocate(flow, flow->sender ? BATCH_BYTES + DATAGRAM_MAX : PIECES * PIECE_BYTES);

    if (error != 0)
        return error;
    if (!flow->sender) {
        if (!has_header(flow))
            datagrams_begin_short(flow->datagram.counts, flow->datagram.tag);
        /* If the kernel refuses UDP_GRO, datagrams arrive one by one, at a higher cost and with the same result. */
        setsockopt(flow->datagram.fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
        return 0;
    }
    /* With IP_RECVERR (ip(7)) send(2) fails if the sender's own queue drops the datagram. */
    setsockopt(flow->datagram.fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
    setsockopt(flow->datagram.fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on);
    flow->datagram.counts->segmented = setsockopt(flow->datagram.fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) == 0;
    return 0;
}

static void stop_segmenting(struct flow *flow)
{
    int none = 0;

    flow->datagram.counts->segmented = false;
    setsockopt(flow->datagram.fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof none);
}

/* Write as many datagrams as fit one call, at most `due`, as pieces into `messages`. Returns the number of pieces. */
static int write_pieces(struct flow *flow, struct mmsghdr *messages, struct iovec *vectors, int64_t due)
{
    int64_t size = flow->request->size, now = clock_now(), written = 0;
    int64_t whole = flow->datagram.counts->segmented ? DATAGRAM_MAX / size : 1; /* most datagrams in one piece */
    unsigned char *at = flow->buffer;
    int pieces = 0;

    if (whole > SEGMENTS)
        whole = SEGMENTS;
    for (; pieces < PIECES && written < due && at < flow->buffer + BATCH_BYTES; pieces++) {
        int64_t count = due - written < whole ? due - written : whole;

        vectors[pieces] = (struct iovec){.iov_base = at, .iov_len = (size_t)(count * size)};
        messages[pieces] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[pieces], .msg_iovlen = 1}};
        for (int64_t i = 0; i < count; i++, at += size, written++) {
            if (has_header(flow))
                datagram_write(at, flow->datagram.tag, flow->datagram.counts->next + written, now);
            else
                datagram_write_short(at, (size_t)size, flow->datagram.tag);
        }
    }
    return pieces;
}

/* Send the datagrams that are due, or as many as one call takes. Returns the number sent or refused, or -1 if the flow failed. */
static int64_t send_due(struct flow *flow, int64_t due)
{
    struct mmsghdr messages[PIECES];
    struct iovec vectors[PIECES];
    int pieces = write_pieces(flow, messages, vectors, due);
    int sent = sendmmsg(flow->datagram.fd, messages, (unsigned)pieces, 0);
    int64_t taken = 0;

    if (sent < 0 && (errno == ENOBUFS || errno == EAGAIN)) {
        /* Refused datagrams were not sent, so the next ones get the same numbers. The sender does not make up for them. */
        flow->datagram.counts->refused += (int64_t)vectors[0].iov_len / flow->request->size;
        return (int64_t)vectors[0].iov_len / flow->request->size;
    }
    if (sent < 0 && flow->datagram.counts->segmented && (errno == EINVAL || errno == EIO || errno == EMSGSIZE)) {
        stop_segmenting(flow);
        return 0;
    }
    if (sent < 0 && errno == EINTR)
        return 0;
    if (sent < 0) {
        flow_fail_unless_stopping(flow, "send", errno);
        return -1;
    }
    for (int i = 0; i < sent; i++)
        taken += (int64_t)vectors[i].iov_len / flow->request->size;
    flow->datagram.counts->count += taken;
    flow->datagram.counts->next += taken;
    flow_count(flow, flow->datagram.fd, clock_now(), taken * flow->request->size);
    return taken;
}

/* A leaky bucket: each datagram raises its level, which falls at the rate. Its highest level is the longest burst, at most `most`. */
struct pace {
    double each_ns; /* time between two datagrams in ns; 0: no rate */
    double level;
    int64_t at_ns, most, quantum_ns;
};

static struct pace make_pace(const struct flow *flow)
{
    struct pace pace = {.at_ns = clock_now()};

    if (flow->start->rate == 0)
        return pace;
    flow->datagram.counts->burst = 0;
    pace.each_ns = 8e9 * (double)flow->request->size / (double)flow->start->rate;
    pace.most = flow->start->burst > 0 ? flow->start->burst : (int64_t)(BURST_NS / pace.each_ns) + 1;
    /* A sleep lasts at most half the time of a burst; the other half makes up for waking late. */
    pace.quantum_ns = (int64_t)((double)(pace.most - 1) * pace.each_ns / 2);
    if (pace.quantum_ns > QUANTUM_NS)
        pace.quantum_ns = QUANTUM_NS;
    return pace;
}

/* Send the datagrams that are due and store the longest burst. Returns as send_due() does. */
static int64_t send_paced(struct flow *flow, struct pace *pace, int64_t now, int64_t due)
{
    int64_t before = flow->datagram.counts->count, sent = send_due(flow, due);

    if (pace->each_ns > 0) {
        pace->level -= (double)(now - pace->at_ns) / pace->each_ns;
        pace->level = (pace->level > 0 ? pace->level : 0) + (double)(flow->datagram.counts->count - before);
        pace->at_ns = now;
        if ((int64_t)pace->level > flow->datagram.counts->burst)
            flow->datagram.counts->burst = (int64_t)pace->level;
    }
    return sent;
}

void udp_stream_send(struct flow *flow)
{
    struct pace pace = make_pace(flow);
    int64_t from = flow->start->bulk_ns, gone = 0, now;

    flow->first_byte_ns = clock_now();
    if (send_paced(flow, &pace, flow->first_byte_ns, 1) < 0)
        return;
    flow_sleep_until(flow, from);
    while ((now = clock_now()) < flow->start->end_ns && !flow_is_stopping(flow)) {
        int64_t due = INT64_MAX, sent;

        if (pace.each_ns > 0) {
            due = (int64_t)((double)(now - from) / pace.each_ns) + 1 - gone;
            if (due > pace.most) { /* the sender is too slow: it gives up late datagrams beyond one burst */
                from = now - (int64_t)((double)(pace.most - 1) * pace.each_ns);
                gone = 0;
                due = pace.most;
            }
            if (due <= 0) {
                int64_t next = from + (int64_t)((double)gone * pace.each_ns) + 1;

                if (next < now + pace.quantum_ns && pace.each_ns < (double)pace.quantum_ns)
                    next = now + pace.quantum_ns;
                flow_sleep_until(flow, next < flow->start->end_ns ? next : flow->start->end_ns);
                continue;
            }
        }
        sent = send_paced(flow, &pace, now, due);
        if (sent < 0)
            return;
        gone += sent;
    }
}

/* Return the most datagrams that the sender can have sent by now, with a margin for its clock. */
static int64_t limit_count(const struct flow *flow, int64_t now)
{
    double each_ns = flow->start->rate > 0 ? 8e9 * (double)flow->request->size / (double)flow->start->rate : FASTEST_NS;
    double most = (double)(now - flow->start->at_ns + MARGIN_NS) / each_ns + 2;

    return most < 1 ? 1 : most > 1e15 ? INT64_C(1000000000000000) : (int64_t)most;
}

/* Count one datagram. Returns false for a duplicate and for a stray. */
static bool take_one(const struct flow *flow, const unsigned char *data, size_t size, int64_t now, int64_t most)
{
    if (has_header(flow) && size >= DATAGRAM_HEADER)
        return datagrams_take(flow->datagram.counts, data, now, most);
    if (!has_header(flow) && size == (size_t)flow->request->size)
        return datagrams_take_short(flow->datagram.counts, data, size);
    flow->datagram.counts->strays++;
    return false;
}

/* Count the datagrams of one piece. Returns the number of counted bytes. */
static int64_t take_piece(struct flow *flow, struct msghdr *header, size_t length, int64_t now)
{
    int64_t most = limit_count(flow, now);
    const unsigned char *data = header->msg_iov->iov_base;
    struct datagrams *datagrams = flow->datagram.counts;
    /* Windows may join datagrams without telling their size, so a piece is cut into datagrams of the size that the sender sends. */
    size_t size = (size_t)flow->request->size;
    int64_t counted = 0, before = datagrams->count;

    for (struct cmsghdr *note = CMSG_FIRSTHDR(header); note != NULL; note = marks_next_note(header, note)) {
        int cut;

        if (note->cmsg_level != IPPROTO_UDP || note->cmsg_type != UDP_GRO)
            continue;
        memcpy(&cut, CMSG_DATA(note), sizeof cut);
        size = cut > 0 ? (size_t)cut : size;
    }
    for (size_t at = 0; at < length; at += size) {
        size_t part = length - at < size ? length - at : size;

        if (take_one(flow, data + at, part, now, most))
            counted += (int64_t)part;
    }
    /* The kernel joins only datagrams with equal marks into a piece. */
    marks_note(flow->marks, header);
    marks_count(flow->marks, datagrams->count - before);
    return counted;
}

void udp_stream_receive(struct flow *flow)
{
    struct mmsghdr messages[PIECES];
    struct iovec vectors[PIECES];
    union {
        struct cmsghdr aligned;
        char bytes[MARKS_NOTES];
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
            if (udp_has_ended(flow))
                break;
            continue;
        }
        if (got < 0 && errno != ECONNREFUSED) {
            flow_fail_unless_stopping(flow, "recv", errno);
            break;
        }
        now = clock_now();
        for (int i = 0; i < got; i++)
            counted += take_piece(flow, &messages[i].msg_hdr, messages[i].msg_len, now);
        /* A receiver that gets only strays must end too. */
        if (flow_is_stopping(flow) || (counted == 0 && now - flow->last_byte_ns > UDP_QUIET_US * US && udp_has_ended(flow)))
            break;
        if (counted == 0)
            continue;
        atomic_store_explicit(&flow->highest, flow->datagram.counts->next, memory_order_relaxed);
        flow_count_received(flow, flow->datagram.fd, now, counted);
    }
    datagrams_end(flow->datagram.counts);
}

const struct work udp_stream_work = {"", "udp", udp_open, udp_stream_prepare, udp_stream_send, udp_stream_receive, udp_finish,
                                     1, DATAGRAM_MAX, .rate = true, .bins = true, .bursts = true};
