/* TCP_INFO of FreeBSD (tcp(4)), and CPU times by sysctl(3). It does not report the path MTU, byte counts and why a sender waited. */
#include "sample.h"

#include <ifaddrs.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#include <sys/time.h>
#include <net/if.h>
#include <netinet/tcp.h>

void sample_info(int fd, struct tcp_totals *totals)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return;
    totals->mss = info.tcpi_snd_mss;
    totals->rcv_mss = info.tcpi_rcv_mss;
    totals->rtt_us = info.tcpi_rtt;
    totals->retransmits = info.tcpi_snd_rexmitpack;
    totals->cwnd = info.tcpi_snd_mss > 0 ? info.tcpi_snd_cwnd / info.tcpi_snd_mss : -1; /* from bytes to segments, as on Linux */
    totals->advertised_window = info.tcpi_snd_wnd;
    totals->timestamps = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
}

static int64_t read_ticks(const long *times, int64_t *irq)
{
    *irq = times[CP_INTR];
    return (int64_t)times[CP_USER] + times[CP_NICE] + times[CP_SYS] + times[CP_INTR];
}

void sample_node(struct cpu_times *times)
{
    static long ticks[CPUS_MAX * CPUSTATES];
    struct clockinfo clock;
    size_t length = sizeof clock;
    int64_t irq, tick_us, busy = 0, irqs = 0;

    times->node_busy_us = -1;
    times->node_irq_us = -1;
    times->throttled_us = -1; /* unknown: FreeBSD has no control groups with CPU quotas */
    times->cpus = -1;
    memset(times->busy_ms, 0xff, sizeof times->busy_ms);
    if (sysctlbyname("kern.clockrate", &clock, &length, NULL, 0) != 0 || clock.stathz <= 0)
        return;
    length = sizeof ticks;
    if (sysctlbyname("kern.cp_times", ticks, &length, NULL, 0) != 0)
        return;
    tick_us = 1000000 / clock.stathz;
    times->cpus = (int)(length / (CPUSTATES * sizeof *ticks));
    for (int cpu = 0; cpu < times->cpus; cpu++) {
        int64_t own = read_ticks(ticks + (size_t)cpu * CPUSTATES, &irq);

        times->busy_ms[cpu] = (uint32_t)(own * tick_us / 1000);
        busy += own;
        irqs += irq;
    }
    times->node_busy_us = busy * tick_us;
    times->node_irq_us = irqs * tick_us;
}

int sample_cpus(void)
{
    int cpus;
    size_t length = sizeof cpus;

    return sysctlbyname("hw.ncpu", &cpus, &length, NULL, 0) == 0 ? cpus : 1;
}

/* queue_drops and carrier_changes stay unknown: struct if_data (net/if.h) lacks them. */
void sample_nic(const char *interface, struct nic_counters *counters)
{
    struct ifaddrs *all;

    memset(counters, 0xff, sizeof *counters); /* -1: unknown */
    if (*interface == '\0' || getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        const struct if_data *data = at->ifa_data;

        if (at->ifa_addr == NULL || at->ifa_addr->sa_family != AF_LINK || data == NULL || strcmp(at->ifa_name, interface) != 0)
            continue;
        counters->rx_bytes = (int64_t)data->ifi_ibytes;
        counters->rx_packets = (int64_t)data->ifi_ipackets;
        counters->rx_dropped = (int64_t)data->ifi_iqdrops;
        counters->rx_errors = (int64_t)data->ifi_ierrors;
        counters->tx_bytes = (int64_t)data->ifi_obytes;
        counters->tx_packets = (int64_t)data->ifi_opackets;
        counters->tx_dropped = (int64_t)data->ifi_oqdrops;
        counters->tx_errors = (int64_t)data->ifi_oerrors;
    }
    freeifaddrs(all);
}

void sample_stack(struct stack_counters *counters)
{
    memset(counters, 0xff, sizeof *counters); /* -1: unknown */
}
