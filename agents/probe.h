/* Probes of a path: datagrams that are never fragmented, a connection, and what became of them (docs/reference/agent-protocol.md, "Probes"). */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* What a router or the peer said of a datagram: an ICMP error. */
struct probe_error {
    int error, type, code;
    uint32_t mtu; /* that it told with "fragmentation needed"; else 0 */
    char from[INET6_ADDRSTRLEN];
};

/* probe-linux.c. Send what this socket is given whole or not at all, whatever is known of its path; 0, or -1 with errno. */
int probe_whole(int fd, int family);
/* The next ICMP error that answered its datagrams; false: there is none. */
bool probe_error_next(int fd, struct probe_error *found);
