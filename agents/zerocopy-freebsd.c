/* FreeBSD has no MSG_ZEROCOPY: it is refused where it is asked for. */
#include "zerocopy.h"

#include <errno.h>
#include <sys/socket.h>

int zerocopy_enable(int fd)
{
    (void)fd;
    errno = ENOPROTOOPT;
    return -1;
}

ssize_t zerocopy_send(struct flow *flow, const void *bytes, size_t count)
{
    return send(flow->fd, bytes, count, MSG_NOSIGNAL);
}

bool zerocopy_collect(struct flow *flow)
{
    (void)flow;
    return false;
}

void zerocopy_finish(struct flow *flow)
{
    (void)flow;
}
