/* Counters of an interface from rtnetlink(7): IFLA_STATS64 and IFLA_CARRIER_CHANGES of RTM_GETLINK, and the root's drops of RTM_GETQDISC. */
#include "sample.h"

#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Larger than any one message of a dump; aligned for its headers. */
static char answer[32768] __attribute__((aligned(8)));

/* The attribute of this type among `length` bytes from `first`, with at least `size` bytes in it; or NULL. */
static struct rtattr *attribute(struct rtattr *first, int length, int type, size_t size)
{
    for (struct rtattr *found = first; RTA_OK(found, length); found = RTA_NEXT(found, length))
        if (found->rta_type == type && RTA_PAYLOAD(found) >= size)
            return found;
    return NULL;
}

static void take_link(struct nlmsghdr *message, struct nic_counters *counters)
{
    struct ifinfomsg *body = NLMSG_DATA(message);
    struct rtnl_link_stats64 stats;
    uint32_t changes;
    /* Older kernels end the struct earlier: what is read of it has been there from the first. */
    size_t size = offsetof(struct rtnl_link_stats64, multicast);
    struct rtattr *found = attribute(IFLA_RTA(body), (int)IFLA_PAYLOAD(message), IFLA_CARRIER_CHANGES, sizeof changes);

    if (found != NULL) {
        memcpy(&changes, RTA_DATA(found), sizeof changes);
        counters->carrier_changes = changes;
    }
    found = attribute(IFLA_RTA(body), (int)IFLA_PAYLOAD(message), IFLA_STATS64, size);
    if (found == NULL)
        return;
    memcpy(&stats, RTA_DATA(found), size);
    counters->rx_bytes = (int64_t)stats.rx_bytes, counters->rx_packets = (int64_t)stats.rx_packets;
    counters->rx_errors = (int64_t)stats.rx_errors, counters->rx_dropped = (int64_t)stats.rx_dropped;
    counters->tx_bytes = (int64_t)stats.tx_bytes, counters->tx_packets = (int64_t)stats.tx_packets;
    counters->tx_errors = (int64_t)stats.tx_errors, counters->tx_dropped = (int64_t)stats.tx_dropped;
}

/* The root's count holds that of what is below it. */
static void take_qdisc(struct nlmsghdr *message, int index, struct nic_counters *counters)
{
    struct tcmsg *body = NLMSG_DATA(message);
    struct gnet_stats_queue queue;
    struct rtattr *stats, *found = NULL;

    if (body->tcm_ifindex != index || body->tcm_parent != TC_H_ROOT)
        return;
    stats = attribute(TCA_RTA(body), (int)TCA_PAYLOAD(message), TCA_STATS2, 0);
    if (stats != NULL)
        found = attribute(RTA_DATA(stats), (int)RTA_PAYLOAD(stats), TCA_STATS_QUEUE, sizeof queue);
    if (found == NULL)
        return;
    memcpy(&queue, RTA_DATA(found), sizeof queue);
    counters->queue_drops = queue.drops;
}

/* Take the messages that answer a request; false at their end. */
static bool take(int index, size_t left, struct nic_counters *counters)
{
    for (struct nlmsghdr *message = (void *)answer; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_type == RTM_NEWLINK)
            take_link(message, counters);
        else if (message->nlmsg_type == RTM_NEWQDISC)
            take_qdisc(message, index, counters);
        if ((message->nlmsg_flags & NLM_F_MULTI) == 0 || message->nlmsg_type == NLMSG_DONE)
            return false;
    }
    return true;
}

static void request(int fd, const void *message, size_t length, int index, struct nic_counters *counters)
{
    ssize_t got;

    if (send(fd, message, length, 0) < 0)
        return;
    do
        got = recv(fd, answer, sizeof answer, 0);
    while (got > 0 && take(index, (size_t)got, counters));
}

void sample_nic(const char *interface, struct nic_counters *counters)
{
    int index = *interface != '\0' ? (int)if_nametoindex(interface) : 0;
    struct timeval patience = {.tv_usec = 200000};
    struct {
        struct nlmsghdr head;
        struct ifinfomsg body;
    } link = {.head = {.nlmsg_len = sizeof link, .nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
              .body = {.ifi_index = index}};
    struct {
        struct nlmsghdr head;
        struct tcmsg body;
    } qdisc = {.head = {.nlmsg_len = sizeof qdisc, .nlmsg_type = RTM_GETQDISC, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
               .body = {.tcm_ifindex = index}};
    int fd;

    memset(counters, 0xff, sizeof *counters); /* every one unknown */
    if (index == 0)
        return;
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    request(fd, &link, sizeof link, index, counters);
    request(fd, &qdisc, sizeof qdisc, index, counters);
    close(fd);
}
