/* Counters of an interface from rtnetlink(7): IFLA_STATS64 and IFLA_CARRIER_CHANGES of RTM_GETLINK, and the root's drops of RTM_GETQDISC. */
#include "sample.h"

#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "netlink.h"

static void take_link(struct nlmsghdr *message, struct nic_counters *counters)
{
    struct ifinfomsg *body = NLMSG_DATA(message);
    struct rtnl_link_stats64 stats;
    uint32_t changes;
    /* Older kernels end the struct earlier: what is read of it has been there from the first. */
    size_t size = offsetof(struct rtnl_link_stats64, multicast);
    struct rtattr *found = netlink_attribute(IFLA_RTA(body), (int)IFLA_PAYLOAD(message), IFLA_CARRIER_CHANGES, sizeof changes);

    if (found != NULL) {
        memcpy(&changes, RTA_DATA(found), sizeof changes);
        counters->carrier_changes = changes;
    }
    found = netlink_attribute(IFLA_RTA(body), (int)IFLA_PAYLOAD(message), IFLA_STATS64, size);
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
    stats = netlink_attribute(TCA_RTA(body), (int)TCA_PAYLOAD(message), TCA_STATS2, 0);
    if (stats != NULL)
        found = netlink_attribute(RTA_DATA(stats), (int)RTA_PAYLOAD(stats), TCA_STATS_QUEUE, sizeof queue);
    if (found == NULL)
        return;
    memcpy(&queue, RTA_DATA(found), sizeof queue);
    counters->queue_drops = queue.drops;
}

/* The counters of an interface, and which it is. */
struct asked {
    int index;
    struct nic_counters *counters;
};

static void take(struct nlmsghdr *message, void *into)
{
    struct asked *asked = into;

    if (message->nlmsg_type == RTM_NEWLINK)
        take_link(message, asked->counters);
    else if (message->nlmsg_type == RTM_NEWQDISC)
        take_qdisc(message, asked->index, asked->counters);
}

void sample_nic(const char *interface, struct nic_counters *counters)
{
    int index = *interface != '\0' ? (int)if_nametoindex(interface) : 0;
    struct netlink_request link = {.head = {NLMSG_LENGTH(sizeof(struct ifinfomsg)), RTM_GETLINK, NLM_F_REQUEST, 0, 0}};
    struct netlink_request qdisc = {.head = {NLMSG_LENGTH(sizeof(struct tcmsg)), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 0, 0}};

    memset(counters, 0xff, sizeof *counters); /* every one unknown */
    if (index == 0)
        return;
    ((struct ifinfomsg *)link.body)->ifi_index = index;
    ((struct tcmsg *)qdisc.body)->tcm_ifindex = index;
    netlink_ask(&link, take, &(struct asked){index, counters});
    netlink_ask(&qdisc, take, &(struct asked){index, counters});
}
