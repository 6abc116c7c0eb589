/* A stream over TCP: as many bytes as go. */
#pragma once

struct flow;

/* Memory of a receiver that copies, the pace of a sender. */
int stream_prepare(struct flow *flow);
/* What the threads of such flows do. */
void stream_run(struct flow *flow);
