/* Marks of received packets: the byte of the IP header with DSCP and ECN (ip(7) IP_TOS, ipv6(7) IPV6_TCLASS). */
#pragma once

#include "agent.h"

#define MARKS_NOTES 64 /* bytes for two control messages: the mark, and the datagram size that UDP_GRO reports */

struct marks {
    int64_t counts[256]; /* number of packets, by mark */
    int last;            /* mark of the last message; -1: unknown */
};

/* Make a listening socket keep the headers of each connection's SYN. */
void marks_keep(int fd);
/* Count the packets of an accepted connection's handshake: the SYN and the last acknowledgement. */
void marks_handshake(int fd, int family, struct marks *marks);
/* Make each datagram of a socket arrive with its mark. */
void marks_receive(int fd, int family);
/* Store the mark of a message. In this and the next three functions, `marks` is NULL if marks were not requested. */
void marks_note(struct marks *marks, struct msghdr *message);
/* Receive a datagram as recv(2) does, and store its mark. */
ssize_t marks_recv(struct marks *marks, int fd, void *buffer, size_t room, int flags);
/* Count datagrams with the mark that was stored last. */
void marks_count(struct marks *marks, int64_t datagrams);
/* Add the counts of marks to the line with a flow's totals. */
void marks_report(const struct marks *marks);
/* Do as CMSG_NXTHDR(3), without the compiler warning that musl's macro causes. */
static inline struct cmsghdr *marks_next_note(struct msghdr *message, struct cmsghdr *note)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
    return CMSG_NXTHDR(message, note);
#pragma GCC diagnostic pop
}
