/* Reads TCP_INFO, CPU times from /proc/stat and cpu.stat of control groups, and interface counters by rtnetlink(7): IFLA_STATS64 and
 * IFLA_CARRIER_CHANGES of RTM_GETLINK, and the root discipline's drops (RTM_GETQDISC). Older kernels have a shorter TCP_INFO. */
#include "sample.h"

#include <assert.h>
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <sched.h>
#include <sys/auxv.h>

#include "netlink.h"
#include "text.h"
#include "wire.h"

#define RECEIVED_CE_AT 248 /* offset of tcpi_received_ce in TCP_INFO (Linux 6.18), which headers of C libraries lack */

/* A field of TCP_INFO, or -1 if the kernel's struct ends before it. */
#define READ(field) (offsetof(struct tcp_info, field) + sizeof info.field <= length ? (int64_t)info.field : -1)
#define AS_READ(name, field, rule) totals->name = READ(field);

void sample_info(int fd, struct tcp_totals *totals)
{
    unsigned char bytes[512];
    socklen_t length = sizeof bytes;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, bytes, &length) == 0)
        sample_parse(bytes, length, totals);
}

void sample_parse(const unsigned char *bytes, size_t length, struct tcp_totals *totals)
{
    struct tcp_info info = {0};
    uint32_t received_ce;

    memcpy(&info, bytes, length < sizeof info ? length : sizeof info);
    TCP_COUNTS(AS_READ)
    totals->received_bytes = READ(tcpi_bytes_received);
    if (totals->rtt_min_us == UINT32_MAX) /* no round trip was measured yet */
        totals->rtt_min_us = -1;
    if (totals->max_pacing_bps >= 0)
        totals->max_pacing_bps *= 8;
    if (length >= RECEIVED_CE_AT + sizeof received_ce) {
        memcpy(&received_ce, bytes + RECEIVED_CE_AT, sizeof received_ce);
        totals->received_ce = received_ce;
    }
    if ((info.tcpi_options & TCPI_OPT_ECN) == 0) /* without ECN no packet can carry this mark */
        totals->delivered_ce = totals->received_ce = -1;
    totals->timestamps = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
}

/* Return the busy ticks of a line of /proc/stat (user nice system idle iowait irq softirq …), or -1. Sets `*irq` to irq + softirq. */
static int64_t read_ticks(const char *at, int64_t *irq)
{
    int64_t busy = 0;

    *irq = 0;
    for (int i = 0; i < 7; i++) {
        const char *end;
        int64_t ticks = text_number(at + strspn(at, " "), &end);

        if (ticks < 0)
            return -1;
        at = end;
        busy += i == 3 || i == 4 ? 0 : ticks;
        *irq += i > 4 ? ticks : 0;
    }
    return busy;
}

/* Read one line of /proc/stat. Returns false after the CPU lines, which come first. */
static bool read_cpu(struct cpu_times *times, const char *line, int64_t tick_us)
{
    const char *rest;
    int64_t irq, cpu;

    if (strncmp(line, "cpu", 3) != 0)
        return false;
    if (line[3] == ' ') {
        int64_t busy = read_ticks(line + 3, &irq);

        times->node_busy_us = busy < 0 ? -1 : busy * tick_us;
        times->node_irq_us = busy < 0 ? -1 : irq * tick_us;
        return true;
    }
    cpu = text_number(line + 3, &rest);
    if (cpu >= 0 && cpu < CPUS_MAX)
        times->busy_ms[cpu] = (uint32_t)(read_ticks(rest, &irq) * tick_us / 1000);
    times->cpus = cpu < CPUS_MAX ? (int)cpu + 1 : -1;
    return true;
}

int sample_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/* Return how long CPU quotas have stopped this process's control group and its parents in microseconds, or -1 if no group has a
 * cpu.stat. A line of /proc/self/cgroup is `number:controllers:/path`, in version 2 without controllers (cgroups(7)). Version 1 counts
 * in ns. Invisible groups, as in a container, are skipped. */
static int64_t read_throttled_us(void)
{
    char text[1024], path[1100];
    const char *group;
    int64_t sum = -1;
    int end, root;

    text_read("/proc/self/cgroup", text, sizeof text);
    group = strstr(text, ":cpu,");
    if (group == NULL)
        group = strstr(text, ":cpu:");
    root = snprintf(path, 20, group != NULL ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup");
    if (group == NULL && (group = strstr(text, "::")) == NULL)
        return -1;
    snprintf(path + root, 1024, "%s", strchr(group + 1, ':') + 1);
    end = (int)strcspn(path, "\n");
    while (end >= root) {
        const char *line, *rest;

        strcpy(path + end, "/cpu.stat");
        text_read(path, text, sizeof text);
        line = strstr(text, "\nthrottled_");
        if (line != NULL)
            sum = (sum < 0 ? 0 : sum) + text_number(line + 16, &rest) / (line[11] == 'u' ? 1 : 1000);
        while (--end >= root && path[end] != '/')
            ;
    }
    return sum;
}

void sample_node(struct cpu_times *times)
{
    char text[2048];
    size_t have = 0;
    ssize_t got;
    bool more = true;
    int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    long ticks = (long)getauxval(AT_CLKTCK);

    times->throttled_us = read_throttled_us();
    times->node_busy_us = -1;
    times->node_irq_us = -1;
    times->cpus = -1;
    memset(times->busy_ms, 0xff, sizeof times->busy_ms);
    if (fd < 0)
        return;
    while (ticks > 0 && more && (got = read(fd, text + have, sizeof text - 1 - have)) > 0) {
        char *line = text, *end;

        text[have + (size_t)got] = '\0';
        while (more && (end = strchr(line, '\n')) != NULL) {
            more = read_cpu(times, line, 1000000 / ticks);
            line = end + 1;
        }
        have = strlen(line);
        memmove(text, line, have);
    }
    close(fd);
}

/* Return the value of a name in /proc/net/netstat or /proc/net/snmp, or -1. After a line with names comes one with their values. */
static int64_t find_count(const char *text, const char *group, const char *name)
{
    size_t length = strlen(name);
    const char *names = strstr(text, group), *values = names == NULL ? NULL : strchr(names, '\n'), *rest;

    while (names != NULL && values != NULL) {
        names += strcspn(names, " \n");
        values += strcspn(values + 1, " \n") + 1;
        if (*names != ' ' || *values != ' ')
            return -1;
        names++;
        if (strncmp(names, name, length) == 0 && strchr(" \n", names[length]) != NULL)
            return text_number(values + 1, &rest);
    }
    return -1;
}

/* Return the sum of a column of /proc/net/stat/nf_conntrack over its lines, one for each CPU, in hexadecimal digits; -1 without it. What is
 * in `insert_failed` is in `drop`, too. */
static int64_t sum_conntrack(const char *text, const char *name)
{
    int wanted = -1, column = 0;
    int64_t sum = 0;
    const char *at = text;

    for (; *at != '\n' && *at != '\0'; column++) {
        size_t length;

        at += strspn(at, " ");
        length = strcspn(at, " \n");
        wanted = length == strlen(name) && strncmp(at, name, length) == 0 ? column : wanted;
        at += length;
    }
    while (wanted >= 0 && *at == '\n' && at[1] != '\0') {
        at++;
        for (column = 0; *at != '\n' && *at != '\0'; column++) {
            int64_t value = 0;

            for (at += strspn(at, " "); text_hex_digit(*at) >= 0; at++)
                value = value << 4 | text_hex_digit(*at);
            sum += column == wanted ? value : 0;
            at += strspn(at, " ");
            if (text_hex_digit(*at) < 0 && *at != '\n' && *at != '\0')
                return -1;
        }
    }
    return wanted >= 0 ? sum : -1;
}

void sample_stack(struct stack_counters *counters)
{
    char text[16384];

    memset(counters, 0xff, sizeof *counters); /* -1: unknown */
    if (text_read("/proc/net/stat/nf_conntrack", text, sizeof text) > 0) {
        counters->conntrack_failures = sum_conntrack(text, "drop");
        counters->conntrack_clashes = sum_conntrack(text, "insert_failed");
    }
    if (text_read("/proc/net/netstat", text, sizeof text) == 0)
        return;
    counters->syn_retransmits = find_count(text, "TcpExt:", "TCPSynRetrans");
    counters->listen_overflows = find_count(text, "TcpExt:", "ListenOverflows");
    counters->listen_drops = find_count(text, "TcpExt:", "ListenDrops");
    counters->cookies_sent = find_count(text, "TcpExt:", "SyncookiesSent");
}

static_assert(offsetof(struct nic_counters, queue_drops) == offsetof(struct rtnl_link_stats64, multicast), "read as a block");

static void take_link(struct nlmsghdr *message, struct nic_counters *counters)
{
    struct ifinfomsg *body = NLMSG_DATA(message);
    uint32_t changes;
    /* Newer kernels append fields to the struct. */
    size_t size = offsetof(struct rtnl_link_stats64, multicast);
    struct rtattr *found = netlink_attribute(IFLA_RTA(body), (int)IFLA_PAYLOAD(message), IFLA_CARRIER_CHANGES, sizeof changes);

    if (found != NULL) {
        memcpy(&changes, RTA_DATA(found), sizeof changes);
        counters->carrier_changes = changes;
    }
    found = netlink_attribute(IFLA_RTA(body), (int)IFLA_PAYLOAD(message), IFLA_STATS64, size);
    if (found != NULL)
        memcpy(counters, RTA_DATA(found), size);
}

/* The root discipline's drops include those of all disciplines below it. */
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

struct target {
    int index;
    struct nic_counters *counters;
};

static void take_answer(struct nlmsghdr *message, void *into)
{
    struct target *target = into;

    if (message->nlmsg_type == RTM_NEWLINK)
        take_link(message, target->counters);
    else if (message->nlmsg_type == RTM_NEWQDISC)
        take_qdisc(message, target->index, target->counters);
}

void sample_nic(const char *interface, struct nic_counters *counters)
{
    int index = *interface != '\0' ? (int)if_nametoindex(interface) : 0;
    struct netlink_request link = {.head = {NLMSG_LENGTH(sizeof(struct ifinfomsg)), RTM_GETLINK, NLM_F_REQUEST, 0, 0}};
    struct netlink_request qdisc = {.head = {NLMSG_LENGTH(sizeof(struct tcmsg)), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 0, 0}};

    memset(counters, 0xff, sizeof *counters); /* -1: unknown */
    if (index == 0)
        return;
    ((struct ifinfomsg *)link.body)->ifi_index = index;
    ((struct tcmsg *)qdisc.body)->tcm_ifindex = index;
    netlink_ask(NETLINK_ROUTE, &link, take_answer, &(struct target){index, counters});
    netlink_ask(NETLINK_ROUTE, &qdisc, take_answer, &(struct target){index, counters});
    wire_read(interface, &counters->wire);
}
