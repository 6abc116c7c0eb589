/* A stream over TCP: as many bytes as go. */
#ifndef RIGCTL_STREAM_H
#define RIGCTL_STREAM_H

struct flow;

/* Memory of a receiver that copies. */
int stream_prepare(struct flow *flow);
/* What the threads of such flows do. */
void stream_run(struct flow *flow);

#endif
