/* The marks of packets that arrived: the byte of the IP header with DSCP and ECN (ip(7) IP_TOS, ipv6(7) IPV6_TCLASS). */
#pragma once

#include "agent.h"

#define MARKS_NOTES 64 /* bytes of control messages for a mark and the size of datagrams in a piece */

struct marks {
    int64_t counts[256]; /* of packets, by mark */
    int last;            /* mark of the last message; -1: unknown */
};

/* Have a listening socket keep the headers of each connection's SYN. */
void marks_keep(int fd);
/* Count the packets of an accepted connection's handshake: the SYN, and the acknowledgement of the answer. */
void marks_handshake(int fd, int family, struct marks *marks);
/* Have each datagram of a socket arrive with its mark. */
void marks_receive(int fd, int family);
/* In the following four, `marks` is NULL if marks were not requested. Note the mark of a message. */
void marks_note(struct marks *marks, struct msghdr *message);
/* Receive a datagram as recv(2) does, and note its mark. */
ssize_t marks_recv(struct marks *marks, int fd, void *buffer, size_t room, int flags);
/* Count datagrams with the mark that was noted last. */
void marks_count(struct marks *marks, int64_t datagrams);
/* Add the counts to the line with a flow's totals. */
void marks_report(const struct marks *marks);
/* CMSG_NXTHDR(3). The macro of musl compares numbers of different signs. */
static inline struct cmsghdr *marks_next_note(struct msghdr *message, struct cmsghdr *note)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
    return CMSG_NXTHDR(message, note);
#pragma GCC diagnostic pop
}
