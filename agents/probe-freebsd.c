/* IP_DONTFRAG of ip(4) and IPV6_DONTFRAG of ip6(4). A UDP socket gets no ICMP message here. Compiled, not run: docs/reference/freebsd.md. */
#include "probe.h"

#include <netinet/in.h>
#include <sys/socket.h>

int probe_whole(int fd, int family)
{
    int on = 1;

    return family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_DONTFRAG, &on, sizeof on)
                              : setsockopt(fd, IPPROTO_IP, IP_DONTFRAG, &on, sizeof on);
}

bool probe_error_next(int fd, struct probe_error *found)
{
    (void)fd;
    (void)found;
    return false;
}
