/* Bursts: at equal intervals the sender hands over `length` datagrams at once, one by one (no UDP_SEGMENT), so that a queue takes and drops
 * single frames. Both ends write a row of samples for each burst: when it began, the bytes so far, and the time from its first datagram to
 * its last, at the interfaces: the sender's kernel tells when it passed them to the card, the receiver's when they arrived. The number of a
 * datagram is that of its burst × `length` + its place, also if an earlier one was refused. */
#include "clock.h"
#include "flow.h"
#include "marks.h"

#if defined(__linux__)
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#endif

#define AT_ONCE 64              /* most datagrams sent or received in one call */
#define BATCH_BYTES (256 << 10) /* most bytes sent in one call, unless a single datagram has more */
#define MARGIN_NS (500 * MS)    /* largest error of the receiver's estimate of the sender's clock */
#define NOTES_ROOM 256          /* bytes for control messages */

union notes {
    struct cmsghdr aligned;
    char bytes[NOTES_ROOM];
};

/* The first and the last of some times. */
struct span {
    int64_t first, last; /* 0: there was none */
};

static int64_t *find_row(const struct flow *flow, int64_t burst)
{
    return flow->samples.rows + (size_t)burst * COLUMNS_BURST;
}

/* Write a burst's bytes, and the times of its datagrams, into its row. Without times the row keeps 0: unknown. */
static void fill_row(const struct flow *flow, int64_t burst, int64_t bytes, const struct span *span)
{
    int64_t *row = find_row(flow, burst);

    row[0] = span->first;
    row[1] = bytes;
    row[2] = span->last - span->first;
}

/* Turn the bytes of each burst into a running sum. A burst without datagrams has the time of the one before it. */
static void sum_up(struct flow *flow)
{
    for (int64_t burst = 0; burst < flow->samples.count; burst++) {
        int64_t *row = find_row(flow, burst);

        if (row[0] == 0)
            row[0] = burst > 0 ? row[0 - COLUMNS_BURST] : flow->start->at_ns;
        if (burst > 0)
            row[1] += row[1 - COLUMNS_BURST];
    }
}

/* Times of packets, as the kernel tells them: by the clock of the day, which differs from ours by an offset. */
static int64_t day_offset(void)
{
    int64_t now = clock_now();

    return clock_wall() - now;
}

#if defined(__linux__)
static void widen(struct span *span, int64_t at)
{
    if (span->first == 0 || at < span->first)
        span->first = at;
    if (at > span->last)
        span->last = at;
}

static int64_t time_in(const struct cmsghdr *note, int64_t offset)
{
    struct timespec time;

    memcpy(&time, CMSG_DATA(note), sizeof time);
    return clock_ns(&time) - offset;
}

static void tell_times(int fd, bool sender)
{
    int on = 1, flags = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY;

    if (sender)
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags);
    else
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    /* With IP_RECVERR (ip(7)) send(2) fails if the sender's own queue drops the datagram. */
    if (sender) {
        setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on);
    }
}

/* Ask for the time at which this datagram goes to the card. */
static void ask_time(struct msghdr *message, union notes *notes)
{
    const uint32_t flags = SOF_TIMESTAMPING_TX_SOFTWARE;
    struct cmsghdr *note = &notes->aligned;

    memset(notes, 0, sizeof *notes);
    note->cmsg_level = SOL_SOCKET;
    note->cmsg_type = SO_TIMESTAMPING;
    note->cmsg_len = CMSG_LEN(sizeof flags);
    memcpy(CMSG_DATA(note), &flags, sizeof flags);
    message->msg_control = notes;
    message->msg_controllen = CMSG_SPACE(sizeof flags);
}

/* Read the times that the kernel has told meanwhile, and drop its other notes. */
static void take_times(const struct flow *flow, struct span *span)
{
    const int64_t offset = day_offset();

    for (;;) {
        union notes notes;
        struct msghdr message = {.msg_control = &notes, .msg_controllen = sizeof notes};

        if (recvmsg(flow->datagram.fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return;
        for (struct cmsghdr *note = CMSG_FIRSTHDR(&message); note != NULL; note = marks_next_note(&message, note))
            if (note->cmsg_level == SOL_SOCKET && note->cmsg_type == SO_TIMESTAMPING)
                widen(span, time_in(note, offset));
    }
}

/* Return when a datagram arrived, or `now` if the kernel does not tell. */
static int64_t arrival_of(struct msghdr *message, int64_t offset, int64_t now)
{
    for (struct cmsghdr *note = CMSG_FIRSTHDR(message); note != NULL; note = marks_next_note(message, note))
        if (note->cmsg_level == SOL_SOCKET && note->cmsg_type == SO_TIMESTAMPNS)
            return time_in(note, offset);
    return now;
}
#else
static void tell_times(int fd, bool sender)
{
    (void)fd, (void)sender;
}

static void ask_time(struct msghdr *message, union notes *notes)
{
    (void)message, (void)notes;
}

static void take_times(const struct flow *flow, struct span *span)
{
    (void)flow, (void)span;
}

static int64_t arrival_of(struct msghdr *message, int64_t offset, int64_t now)
{
    (void)message, (void)offset;
    return now;
}
#endif

static int64_t at_once(const struct flow *flow)
{
    int64_t most = BATCH_BYTES / flow->request->size;

    return most < 1 ? 1 : most < AT_ONCE ? most : AT_ONCE;
}

static int burst_prepare(struct flow *flow)
{
    int64_t room = flow->sender ? at_once(flow) * flow->request->size : AT_ONCE * (flow->request->size + 1);
    int error = udp_allocate(flow, room);

    if (error == 0)
        tell_times(flow->datagram.fd, flow->sender);
    return error;
}

/* Send `count` datagrams of a burst from its place `from` on. Returns how many were sent, or -1 if the flow failed. One that the sender's
 * own queue refuses is counted and left out. */
static int64_t send_some(struct flow *flow, int64_t burst, int64_t from, int64_t count)
{
    const int64_t size = flow->request->size, length = flow->request->length, now = clock_now();
    struct mmsghdr messages[AT_ONCE];
    struct iovec vectors[AT_ONCE];
    union notes notes[2];
    int64_t sent = 0;

    for (int64_t i = 0; i < count; i++) {
        unsigned char *at = flow->buffer + i * size;

        datagram_write(at, flow->datagram.tag, burst * length + from + i, now);
        vectors[i] = (struct iovec){.iov_base = at, .iov_len = (size_t)size};
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1}};
        if (from + i == 0)
            ask_time(&messages[i].msg_hdr, &notes[0]);
        else if (from + i == length - 1)
            ask_time(&messages[i].msg_hdr, &notes[1]);
    }
    for (int64_t done = 0; done < count;) {
        int put = sendmmsg(flow->datagram.fd, messages + done, (unsigned)(count - done), 0);

        if (put > 0) {
            sent += put;
            done += put;
        } else if (errno == ENOBUFS || errno == EAGAIN) {
            flow->datagram.counts->refused++;
            done++;
        } else if (errno != EINTR && errno != ECONNREFUSED) {
            flow_fail_unless_stopping(flow, "send", errno);
            return -1;
        }
    }
    flow->datagram.counts->count += sent;
    if (sent > 0)
        flow_count(flow, flow->datagram.fd, clock_now(), sent * size);
    return sent;
}

/* Send a burst as fast as the socket takes it. Returns its bytes, or -1 if the flow failed. */
static int64_t send_burst(struct flow *flow, int64_t burst)
{
    const int64_t length = flow->request->length;
    int64_t bytes = 0;

    for (int64_t place = 0; place < length && !flow_is_stopping(flow);) {
        int64_t count = length - place < at_once(flow) ? length - place : at_once(flow);
        int64_t sent = send_some(flow, burst, place, count);

        if (sent < 0)
            return -1;
        bytes += sent * flow->request->size;
        place += count;
    }
    return bytes;
}

/* Bursts begin on a grid of times, so that those of several senders begin together. A burst to which the sender comes by more than half an
 * interval late is left out: its row has no bytes. Each has a whole interval before the end. */
static void burst_send(struct flow *flow)
{
    const struct start *start = flow->start;
    const int64_t every = flow->request->interval_ns;

    for (int64_t burst = 0; burst < start->iterations && burst < flow->samples.room; burst++) {
        const int64_t due = start->at_ns + burst * every;
        struct span left = {0, 0};
        int64_t began, bytes = 0;

        if (due + every > start->end_ns)
            break;
        flow_sleep_until(flow, due);
        if (flow_is_stopping(flow))
            break;
        began = clock_now();
        if (began <= due + every / 2) {
            if (flow->first_byte_ns == 0)
                flow->first_byte_ns = began;
            bytes = send_burst(flow, burst);
            if (bytes < 0)
                break;
            flow_sleep_until(flow, due + every);
            take_times(flow, &left);
            if (left.first < began) /* the kernel tells none */
                left.first = left.last = began;
        }
        fill_row(flow, burst, bytes, &left);
        flow->samples.count = (int)burst + 1;
    }
    sum_up(flow);
}

/* Count a datagram of this length that arrived at this time. Returns its bytes, or 0 for a duplicate or a stray. */
static int64_t take_one(struct flow *flow, const unsigned char *data, size_t got, int64_t at, int64_t most)
{
    struct datagrams *counts = flow->datagram.counts;
    int64_t burst, *row;
    uint32_t beyond;

    if (got != (size_t)flow->request->size || !datagrams_take(counts, data, at, most)) {
        counts->strays += got != (size_t)flow->request->size;
        return 0;
    }
    /* The whole number is the one with these low 32 bits that is at most the highest so far. */
    beyond = (uint32_t)(counts->next - 1) - (uint32_t)datagram_number(data);
    burst = (counts->next - 1 - beyond) / flow->request->length;
    row = find_row(flow, burst);
    if (burst >= flow->samples.count)
        flow->samples.count = (int)burst + 1;
    if (row[0] == 0 || at < row[0]) {
        row[2] += row[0] == 0 ? 0 : row[0] - at;
        row[0] = at;
    }
    if (at - row[0] > row[2])
        row[2] = at - row[0];
    row[1] += flow->request->size;
    return flow->request->size;
}

/* Return the most datagrams that the sender can have sent by now. */
static int64_t limit_count(const struct flow *flow, int64_t now)
{
    int64_t bursts = (now - flow->start->at_ns + MARGIN_NS) / flow->request->interval_ns + 1;

    return (bursts < 0 ? 0 : bursts < flow->samples.room ? bursts : flow->samples.room) * flow->request->length;
}

static void burst_receive(struct flow *flow)
{
    const size_t room = (size_t)flow->request->size + 1; /* a longer datagram is not of the sender */
    struct mmsghdr messages[AT_ONCE];
    struct iovec vectors[AT_ONCE];
    union notes notes[AT_ONCE];

    for (;;) {
        int got;
        int64_t now, offset, most, counted = 0;

        for (int i = 0; i < AT_ONCE; i++) {
            vectors[i] = (struct iovec){.iov_base = flow->buffer + (size_t)i * room, .iov_len = room};
            messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1, .msg_control = &notes[i],
                                                       .msg_controllen = sizeof notes[i]}};
        }
        got = recvmmsg(flow->datagram.fd, messages, AT_ONCE, MSG_WAITFORONE, NULL);
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
        offset = day_offset();
        most = limit_count(flow, now);
        for (int i = 0; i < got; i++) {
            int64_t took = take_one(flow, vectors[i].iov_base, messages[i].msg_len, arrival_of(&messages[i].msg_hdr, offset, now), most);

            marks_note(flow->marks, &messages[i].msg_hdr);
            marks_count(flow->marks, took > 0);
            counted += took;
        }
        /* A receiver that gets only strays must end too. */
        if (flow_is_stopping(flow) || (counted == 0 && now - flow->last_byte_ns > UDP_QUIET_US * US && udp_has_ended(flow)))
            break;
        if (counted > 0)
            flow_count_received(flow, flow->datagram.fd, now, counted);
    }
    datagrams_end(flow->datagram.counts);
    sum_up(flow);
}

const struct work burst_work = {"burst", "udp", udp_open, burst_prepare, burst_send, burst_receive, udp_finish, DATAGRAM_HEADER,
                                DATAGRAM_MAX, .messages = true, .by_burst = true};
