/* The kernel reports the mark of each datagram, but of a TCP connection only the marks of the handshake. (With IPv6, Linux could
 * also report the mark of the last segment, but would have to copy each segment.) */
#include "marks.h"

#if !defined(_WIN32)
#include <netinet/tcp.h>
#endif

#include "control.h"

#define HEADERS_MAX 128 /* bytes for the IP and TCP headers of a SYN with options */

static void set_flag(int fd, int level, int option, int on)
{
    setsockopt(fd, level, option, &on, sizeof on);
}

static void count_packets(struct marks *marks, int mark, int64_t packets)
{
    if (mark >= 0)
        marks->counts[mark & 0xff] += packets;
}

/* Return the mark that came with a message, or -1. In IPv4 it is one byte, of type IP_TOS on Linux, IP_RECVTOS on FreeBSD. */
static int find_mark(struct msghdr *message)
{
    for (struct cmsghdr *note = CMSG_FIRSTHDR(message); note != NULL; note = marks_next_note(message, note)) {
        int mark;

        if (note->cmsg_level == IPPROTO_IP && (note->cmsg_type == IP_TOS || note->cmsg_type == IP_RECVTOS))
            return *(const unsigned char *)CMSG_DATA(note);
        if (note->cmsg_level != IPPROTO_IPV6 || note->cmsg_type != IPV6_TCLASS)
            continue;
        memcpy(&mark, CMSG_DATA(note), sizeof mark);
        return mark & 0xff;
    }
    return -1;
}

void marks_keep(int fd)
{
#if defined(TCP_SAVE_SYN)
    set_flag(fd, IPPROTO_TCP, TCP_SAVE_SYN, 1);
#else
    (void)fd;
#endif
}

#if defined(TCP_SAVED_SYN)
/* Return the mark in an IP header, or -1 if the bytes are no IP header. */
static int read_mark(const unsigned char *header, size_t length)
{
    if (length < 20)
        return -1;
    return header[0] >> 4 == 4 ? header[1] : header[0] >> 4 == 6 ? (header[0] & 0x0f) << 4 | header[1] >> 4 : -1;
}
#endif

void marks_handshake(int fd, int family, struct marks *marks)
{
#if defined(TCP_SAVED_SYN) && defined(IP_PKTOPTIONS) && defined(IPV6_2292PKTOPTIONS)
    bool v6 = family == AF_INET6;
    unsigned char headers[HEADERS_MAX];
    char notes[MARKS_NOTES] __attribute__((aligned(8)));
    socklen_t length = sizeof headers, room = sizeof notes;
    struct msghdr message;

    if (getsockopt(fd, IPPROTO_TCP, TCP_SAVED_SYN, headers, &length) == 0)
        count_packets(marks, read_mark(headers, length), 1);
    marks_receive(fd, family);
    if (getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_2292PKTOPTIONS : IP_PKTOPTIONS, notes, &room) == 0) {
        message = (struct msghdr){.msg_control = notes, .msg_controllen = room};
        count_packets(marks, find_mark(&message), 1);
    }
    set_flag(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVTCLASS : IP_RECVTOS, 0);
#else
    (void)fd, (void)family, (void)marks;
#endif
}

void marks_receive(int fd, int family)
{
    set_flag(fd, family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP, family == AF_INET6 ? IPV6_RECVTCLASS : IP_RECVTOS, 1);
}

void marks_note(struct marks *marks, struct msghdr *message)
{
    if (marks != NULL)
        marks->last = find_mark(message);
}

ssize_t marks_recv(struct marks *marks, int fd, void *buffer, size_t room, int flags)
{
    char notes[MARKS_NOTES] __attribute__((aligned(8)));
    struct iovec vector = {.iov_base = buffer, .iov_len = room};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = notes, .msg_controllen = sizeof notes};
    ssize_t got;

    if (marks == NULL)
        return recv(fd, buffer, room, flags);
    got = recvmsg(fd, &message, flags);
    if (got >= 0)
        marks_note(marks, &message);
    return got;
}

void marks_count(struct marks *marks, int64_t datagrams)
{
    if (marks != NULL)
        count_packets(marks, marks->last, datagrams);
}

void marks_report(const struct marks *marks)
{
    const char *gap = "";

    line_add(",\"marks\":");
    for (int mark = 0; marks != NULL && mark < 256; mark++) {
        if (marks->counts[mark] == 0)
            continue;
        line_add("%s[%d,%lld]", *gap == '\0' ? "[" : gap, mark, (long long)marks->counts[mark]);
        gap = ",";
    }
    line_add(*gap == '\0' ? "null" : "]");
}
