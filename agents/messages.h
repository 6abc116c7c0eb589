/* Ping-pong and blast: what the threads of such flows do. */
#pragma once

struct flow;

#define MESSAGE_MAX (16 << 20)

/* Memory for a flow's messages; 0 or an errno value. */
int messages_prepare_pingpong(struct flow *flow);
int messages_prepare_blast(struct flow *flow);
void messages_pingpong(struct flow *flow);
void messages_blast(struct flow *flow);
