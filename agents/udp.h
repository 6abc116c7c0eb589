/* UDP: a flow's datagrams, beside the TCP connection that opened it and whose end-of-file ends it. */
#ifndef RIGCTL_UDP_H
#define RIGCTL_UDP_H

#include "flow.h"

/* A socket between the addresses and ports of the flow's connection, and memory for its datagrams; 0 or an errno value. */
int udp_prepare(struct flow *flow, int64_t window);
/* What the threads of such flows do. */
void udp_stream(struct flow *flow);
void udp_pingpong(struct flow *flow);

#endif
