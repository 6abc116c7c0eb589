/* Multipath TCP (RFC 8684): its sockets, and what the kernel tells about the subflows of a connection. */
#pragma once

#include "sample.h"

#define SUBFLOWS_MAX 16 /* of a connection, including those that have ended; Linux has at most 8 at once */

enum multipath_state { MULTIPATH_UNKNOWN, MULTIPATH_USED, MULTIPATH_FELL_BACK };

struct ends { /* struct mptcp_subflow_addrs */
    struct sockaddr_storage local, remote;
};

struct multipath {
    pthread_mutex_t lock; /* held by the flow's thread or the main loop while it reads the subflows */
    enum multipath_state state;
    _Atomic bool ending; /* nothing is sent any more, so the kernel closes subflows */
    _Atomic bool last;   /* the next reading is the last, so that totals and subflows are of one moment */
    bool settled;        /* the last reading is done */
    int count;
    struct subflow {
        struct ends ends;
        struct tcp_totals totals; /* as read last; the kernel forgets a subflow that ends */
        bool open;
        bool lost; /* it ended before the flow did */
    } found[SUBFLOWS_MAX];
};

/* Make a socket, as socket(2) does. It is of plain TCP if Multipath TCP is switched off: connections would fall back anyway. Returns -1
 * with errno, EPROTONOSUPPORT if the system has no Multipath TCP. */
int mptcp_socket(int family, int flags);
/* Allocate the record of a connection's subflows, to be freed by free(3). Returns NULL with errno if that fails. */
struct multipath *mptcp_new(void);
/* Do as sample_info() for all subflows: add up their counts. Values that cannot be added up are unknown if there are several. */
void mptcp_sample(int fd, struct multipath *paths, struct tcp_totals *totals);
/* Add the subflows to the line with a flow's totals: addresses of sender and receiver, bytes that were acknowledged or received, and
 * timeouts in a row at the end, or null if the subflow was lost. `paths` is NULL if Multipath TCP was not requested. */
void mptcp_report(const struct multipath *paths, bool sender);
