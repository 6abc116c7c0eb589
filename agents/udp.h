/* UDP: a flow's datagrams, beside the TCP connection that opened it and whose end-of-file ends it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct flow;

#define UDP_QUIET_US 50000 /* a receiver looks for the end-of-file when nothing came for this long */
#define UDP_TRIP_S 1       /* a round trip that takes longer counts as lost */

/* A socket between the addresses and ports of the flow's connection; 0 or an errno value. */
int udp_open(struct flow *flow);
/* Memory for its datagrams, and how its socket hands them over; 0 or an errno value. */
int udp_prepare_stream(struct flow *flow);
int udp_prepare_pingpong(struct flow *flow);
int udp_prepare_probe(struct flow *flow);
/* What the threads of such flows do. */
void udp_stream(struct flow *flow);
void udp_pingpong(struct flow *flow);
void udp_probe(struct flow *flow);
/* Send back what comes, until the peer has ended. */
void udp_pong(struct flow *flow);

/* For both of them: `room` bytes for datagrams, what is counted of them, and how long a receive call waits. 0 or an errno value. */
int udp_prepare(struct flow *flow, size_t room);
/* Whether the peer has ended. */
bool udp_ended(const struct flow *flow);
/* Note what the kernel says of the socket, and end. */
void udp_finish(struct flow *flow);
