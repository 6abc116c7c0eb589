/* Multicast: the keys of the orders for it. */
#pragma once

#include "agent.h"

/* What an endpoint does. Datagrams are sent once, by one sender to the group, however many receivers there are. */
enum multicast_role { MULTICAST_SEND, MULTICAST_WAIT, MULTICAST_JOIN, MULTICAST_WATCH };

struct multicast {
    enum multicast_role role;
    struct sockaddr_storage group; /* with the port of its datagrams */
    int64_t ttl;
    int64_t join_ns, leave_ns; /* a receiver joins this long after the start, and leaves this long before the end */
};

struct order;
struct request;
/* Read the keys of a test of multicast, after `address` and `token`. Returns NULL, or what is wrong. */
const char *multicast_parse(struct order *order, bool sender, struct request *request);
