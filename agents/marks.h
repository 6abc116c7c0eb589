/* The marks with which packets arrived: the byte of IP's header that has DSCP and ECN (ip(7) IP_TOS, ipv6(7) IPV6_TCLASS). */
#pragma once

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define MARKS_NOTES 64 /* bytes of control messages for a mark and for the size of datagrams in a piece */

struct marks {
    int64_t counts[256]; /* of packets, by that byte */
    int last;            /* of the message that came last; -1: not known */
};

/* A listening socket keeps the headers of the SYN of each connection. */
void marks_keep(int fd);
/* Count the packets of the handshake of an accepted connection: the SYN, and the acknowledgement of its answer. */
void marks_handshake(int fd, int family, struct marks *marks);
/* Each datagram of a socket comes with its mark. */
void marks_receive(int fd, int family);
/* In these four, NULL for `marks`: nobody asked. Note the mark that came with a message. */
void marks_note(struct marks *marks, struct msghdr *message);
/* recv(2) of one datagram whose mark is noted. */
ssize_t marks_recv(struct marks *marks, int fd, void *buffer, size_t room, int flags);
/* Count datagrams of the mark that was noted last. */
void marks_count(struct marks *marks, int64_t datagrams);
/* Add all to the line of a flow's totals. */
void marks_report(const struct marks *marks);
/* CMSG_NXTHDR(3), of which musl's macro compares numbers of different signs. */
static inline struct cmsghdr *marks_next_note(struct msghdr *message, struct cmsghdr *note)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
    return CMSG_NXTHDR(message, note);
#pragma GCC diagnostic pop
}
