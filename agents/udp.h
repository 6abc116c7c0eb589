/* UDP: a flow's datagrams, beside the TCP connection that opened it and whose end-of-file ends it. */
#ifndef RIGCTL_UDP_H
#define RIGCTL_UDP_H

struct flow;

/* A socket between the addresses and ports of the flow's connection; 0 or an errno value. */
int udp_open(struct flow *flow);
/* Memory for its datagrams, and how its socket hands them over; 0 or an errno value. */
int udp_prepare_stream(struct flow *flow);
int udp_prepare_pingpong(struct flow *flow);
/* What the threads of such flows do. */
void udp_stream(struct flow *flow);
void udp_pingpong(struct flow *flow);

#endif
