/* Probes of a path: datagrams that are never fragmented, and a connection (docs/reference/agent-protocol.md, "Probes"). */
#pragma once

#include "agent.h"

/* An ICMP error: what a router or the peer said about a datagram. */
struct probe_error {
    int error, type, code;
    uint32_t mtu; /* of an error "fragmentation needed"; else 0 */
    char from[INET6_ADDRSTRLEN];
};

/* probe-linux.c. Never fragment the datagrams of this socket, even above the known MTU of the path. Returns 0, or -1 with errno. */
int probe_forbid_fragments(int fd, int family);
/* Read the next ICMP error about the datagrams of a socket. Returns false if there is none. */
bool probe_error_next(int fd, struct probe_error *found);
