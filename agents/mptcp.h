/* Multipath TCP (RFC 8684): its sockets, and what the kernel tells of a connection's subflows. One file per system. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "sample.h"

#define SUBFLOWS_MAX 16 /* of a connection, those included that ended; Linux has at most 8 at once */

enum multipath_state { MULTIPATH_UNTOLD, MULTIPATH_USED, MULTIPATH_FELL_BACK };

struct ends { /* struct mptcp_subflow_addrs */
    struct sockaddr_storage local, remote;
};

struct multipath {
    pthread_mutex_t lock; /* the flow's thread and the main loop look at it */
    enum multipath_state state;
    _Atomic bool ending; /* from here on the kernel closes subflows, as nothing is sent any more */
    _Atomic bool last;   /* the next look at the subflows is the last: totals and subflows are of one moment */
    bool settled;        /* it was */
    int count;
    struct subflow {
        struct ends ends;
        struct tcp_totals totals; /* as seen last: a subflow that ends is gone */
        bool open, lost; /* it is there; it ended before the flow did */
    } found[SUBFLOWS_MAX];
};

/* An unconnected socket, as socket(2): of plain TCP where the system has Multipath TCP switched off, as connections then fall back.
 * -1 with errno, EPROTONOSUPPORT where the system has none. */
int mptcp_socket(int family, int flags);
/* What free(3) takes back; NULL with errno. */
struct multipath *mptcp_new(void);
/* As sample_info(), of all subflows: counts are sums, and what only a single one has is unknown once there are several. */
void mptcp_sample(int fd, struct multipath *paths, struct tcp_totals *totals);
/* Add the subflows to the line of a flow's totals: addresses of sender and receiver, bytes acknowledged to a sender or received, and
 * timeouts in a row at the end, null of one that ended before the flow did. NULL: not asked for. */
void mptcp_report(const struct multipath *paths, bool sender);
