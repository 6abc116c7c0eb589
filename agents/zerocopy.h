/* Sending without a copy into the kernel: MSG_ZEROCOPY (linux/Documentation/networking/msg_zerocopy.rst). The kernel may copy all the
 * same, always so where the receiver is on the same machine; it says so afterwards, and that is counted. One file per system. */
#pragma once

#include <sys/types.h>

#include "flow.h"

/* Ask for it on a socket that is not connected yet. Returns 0, or -1 and errno. */
int zerocopy_enable(int fd);
/* As send(2) of memory that is never written to. */
ssize_t zerocopy_send(struct flow *flow, const void *bytes, size_t count);
/* Take what the kernel has said of sends so far; true where it said anything. */
bool zerocopy_collect(struct flow *flow);
/* Wait for what it has still to say, a moment. */
void zerocopy_finish(struct flow *flow);
