/* Ping-pong and blast: what the threads of such flows do. */
#ifndef RIGCTL_MESSAGES_H
#define RIGCTL_MESSAGES_H

#include "flow.h"

#define MESSAGE_MAX (16 << 20)
#define ITERATIONS_MAX 1000000000
#define DRAIN_S 10

/* Memory for a flow's messages; 0 or an errno value. */
int messages_prepare(struct flow *flow);
void messages_run(struct flow *flow);

#endif
