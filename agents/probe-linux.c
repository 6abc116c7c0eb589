/* The don't-fragment bit and the queue of ICMP errors: IP_MTU_DISCOVER and IP_RECVERR of ip(7), and their twins of ipv6(7). */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h> /* after time.h, which it needs */

#include "probe.h"

/* Not in every C library; from linux/in.h and linux/in6.h. */
#define DISCOVER_PROBE 3 /* don't fragment, and ignore what is known of the path */

int probe_whole(int fd, int family)
{
    int mode = DISCOVER_PROBE, on = 1;

    if (family == AF_INET6)
        return setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &mode, sizeof mode) != 0 ||
                       setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on) != 0
                   ? -1
                   : 0;
    return setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &mode, sizeof mode) != 0 ||
                   setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on) != 0
               ? -1
               : 0;
}

static bool take(const struct cmsghdr *head, struct probe_error *found)
{
    struct {
        struct sock_extended_err said;
        struct sockaddr_in6 offender;
    } error = {0};
    size_t size = head->cmsg_len - CMSG_LEN(0);
    bool v6 = head->cmsg_level == IPPROTO_IPV6;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&error.offender;

    if (v6 ? head->cmsg_type != IPV6_RECVERR : head->cmsg_level != IPPROTO_IP || head->cmsg_type != IP_RECVERR)
        return false;
    memcpy(&error, CMSG_DATA(head), size < sizeof error ? size : sizeof error);
    if (error.said.ee_origin != SO_EE_ORIGIN_ICMP && error.said.ee_origin != SO_EE_ORIGIN_ICMP6)
        return false;
    found->error = (int)error.said.ee_errno;
    found->type = error.said.ee_type;
    found->code = error.said.ee_code;
    found->mtu = error.said.ee_info;
    inet_ntop(v6 ? AF_INET6 : AF_INET, v6 ? (const void *)&error.offender.sin6_addr : (const void *)&v4->sin_addr, found->from,
              sizeof found->from);
    return true;
}

bool probe_error_next(int fd, struct probe_error *found)
{
    char control[256] __attribute__((aligned(8)));
    struct msghdr message;
    struct cmsghdr *head;

    do {
        message = (struct msghdr){.msg_control = control, .msg_controllen = sizeof control};
        memset(found, 0, sizeof *found);
        if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return false;
        head = CMSG_FIRSTHDR(&message); /* nothing else was asked for */
    } while (head == NULL || !take(head, found));
    return true;
}
