/* Multipath TCP (RFC 8684): its sockets, and what the kernel reports about the subflows of a connection. */
#pragma once

#include "sample.h"

#define SUBFLOWS_MAX 16 /* most subflows of a connection, ended ones included; Linux has at most 8 at a time */

enum multipath_state { MULTIPATH_UNKNOWN, MULTIPATH_USED, MULTIPATH_FELL_BACK };

struct ends { /* laid out as struct mptcp_subflow_addrs of linux/mptcp.h */
    struct sockaddr_storage local, remote;
};

struct multipath {
    pthread_mutex_t lock; /* held by the flow's thread or the main loop while reading subflows */
    enum multipath_state state;
    _Atomic bool ending; /* nothing more is sent; subflows that the kernel now closes are not lost */
    _Atomic bool last;   /* the next reading is the last, so that totals and subflows are from one moment */
    bool settled;        /* the last reading of the subflows is done */
    int count;
    struct subflow {
        struct ends ends;
        struct tcp_totals totals; /* values of the last reading; the kernel forgets a subflow that ends */
        bool open;
        bool lost; /* the subflow ended before the flow */
    } found[SUBFLOWS_MAX];
};

/* Make a socket as socket(2) does, or a TCP socket if Multipath TCP is disabled. EPROTONOSUPPORT: the system lacks Multipath TCP. */
int mptcp_socket(int family, int flags);
/* Allocate the record of a connection's subflows; the caller frees it with free(3). Returns NULL with errno on failure. */
struct multipath *mptcp_new(void);
/* Do as sample_info() does, with sums over all subflows. A value that cannot be summed is unknown if there are several subflows. */
void mptcp_sample(int fd, struct multipath *paths, struct tcp_totals *totals);
/* Add the subflows to the line with a flow's totals (docs/reference/agent-protocol.md). `paths` is NULL if they were not requested. */
void mptcp_report(const struct multipath *paths, bool sender);
