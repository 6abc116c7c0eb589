/* Watches an interface for the datagrams of a multicast group, and for the queries and reports of group membership (IGMP, MLD). */
#pragma once

#include "agent.h"

#define WATCH_VERSIONS 4 /* versions of IGMP and MLD have the numbers 1 to 3; 0 is unused */

/* Datagrams of the group that arrived in a part of the test. */
struct watch_seen {
    int64_t count, first_ns, last_ns; /* times of arrival; 0: none arrived */
    int64_t gap_ns;                   /* longest time between two */
};

struct watch {
    int fd; /* packet socket; -1: none */
    bool watched; /* there was a packet socket; false: the rights for it are missing, so nothing of the following is known */
    int64_t size; /* payload bytes of a datagram, of which the kernel may join several to one frame */
    struct sockaddr_storage group;
    int64_t joined_ns, left_ns; /* datagrams between these times are not counted; 0: not yet, or never */
    struct watch_seen before, after;
    int64_t queries[WATCH_VERSIONS]; /* general queries that arrived, by version */
    int64_t specific;                /* queries for the group that arrived: a querier asks them after a leave */
    int64_t reports[WATCH_VERSIONS]; /* reports that this host sent, by version */
    int64_t first_query_ns, last_query_ns; /* 0: none */
    int64_t response_ns;             /* longest time in which hosts are to answer the last general query */
    char querier[INET6_ADDRSTRLEN];  /* source of the last general query */
};

/* Open a packet socket on an interface. It sees all multicast, also of groups that this host did not join, which a card drops otherwise.
 * Without the rights for it the watch sees nothing. */
void watch_open(struct watch *watch, int interface, const struct sockaddr_storage *group, int64_t size);
/* Begin or stop to receive the group's datagrams; membership messages are always received. */
void watch_group(struct watch *watch, bool wanted);
/* Count the frames that have arrived. */
void watch_read(struct watch *watch);
/* Count one frame, which arrived, or left if `outgoing`, at the time `at`. `have` bytes of its `length` bytes are there. */
void watch_take(struct watch *watch, const unsigned char *frame, size_t have, size_t length, bool outgoing, int64_t at);
void watch_close(struct watch *watch);
