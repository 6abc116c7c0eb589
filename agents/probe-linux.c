/* The don't-fragment bit and the queue of ICMP errors: IP_MTU_DISCOVER and IP_RECVERR of ip(7), and their twins in ipv6(7). */
#include <arpa/inet.h>
#include <time.h>

#include <linux/errqueue.h> /* this header uses types of time.h, so time.h comes first */
#include "probe.h"

#define DISCOVER_PROBE 3 /* IP_PMTUDISC_PROBE, missing in some C libraries: never fragment, whatever MTU is known for the path */

int probe_forbid_fragments(int fd, int family)
{
    int mode = DISCOVER_PROBE, on = 1, level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;

    if (setsockopt(fd, level, family == AF_INET6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &mode, sizeof mode) != 0)
        return -1;
    return setsockopt(fd, level, family == AF_INET6 ? IPV6_RECVERR : IP_RECVERR, &on, sizeof on);
}

static bool read_error(const struct cmsghdr *head, struct probe_error *found)
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
        head = CMSG_FIRSTHDR(&message); /* the socket receives no other control messages */
    } while (head == NULL || !read_error(head, found));
    return true;
}
