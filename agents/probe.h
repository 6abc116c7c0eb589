/* Probes of a path: unfragmented datagrams, and a connection (docs/reference/agent-protocol.md, "Probes"). */
#pragma once

#include "agent.h"

/* An ICMP error that a router or the peer sent about a datagram. */
struct probe_error {
    int error, type, code;
    uint32_t mtu; /* MTU of the next hop in "fragmentation needed", else 0 */
    char from[INET6_ADDRSTRLEN];
};

/* probe-linux.c: never fragment the datagrams of this socket, even above the path's known MTU. Returns 0, or -1 with errno. */
int probe_forbid_fragments(int fd, int family);
/* Read the next ICMP error about datagrams of a socket. Returns false if there is none. */
bool probe_error_next(int fd, struct probe_error *found);
