/* A stream over TCP: as many bytes as go. */
#ifndef RIGCTL_STREAM_H
#define RIGCTL_STREAM_H

struct flow;

/* What the threads of such flows do. */
void stream_run(struct flow *flow);

#endif
