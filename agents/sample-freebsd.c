/* TCP_INFO of FreeBSD (tcp(4), netinet/tcp.h) and CPU times by sysctl(3). Linux's shares of time, path MTU and byte counts are not
 * among them: they stay unknown. */
#include "sample.h"

#include <stdbool.h>
#include <string.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysctl.h>
#include <sys/time.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "clock.h"

static int64_t option(int fd, int level, int name)
{
    int value;
    socklen_t length = sizeof value;

    return getsockopt(fd, level, name, &value, &length) == 0 ? value : -1;
}

void sample_unknown(struct tcp_totals *totals)
{
    /* Every field is a number that is unknown, but for the name. */
    memset(totals, 0xff, sizeof *totals);
    memset(totals->congestion, 0, sizeof totals->congestion);
}

void sample_tcp(int fd, struct tcp_totals *totals)
{
    struct tcp_info info;
    socklen_t length = sizeof info, name_length = sizeof totals->congestion - 1;
    int64_t nodelay = option(fd, IPPROTO_TCP, TCP_NODELAY);

    sample_unknown(totals);
    totals->sndbuf = option(fd, SOL_SOCKET, SO_SNDBUF);
    totals->rcvbuf = option(fd, SOL_SOCKET, SO_RCVBUF);
    totals->nodelay = nodelay < 0 ? -1 : nodelay != 0; /* it reads back as the option's own bit */
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, totals->congestion, &name_length) != 0)
        totals->congestion[0] = '\0';
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return;
    totals->mss = info.tcpi_snd_mss;
    totals->rcv_mss = info.tcpi_rcv_mss;
    totals->rtt_us = info.tcpi_rtt;
    totals->retransmits = info.tcpi_snd_rexmitpack;
    totals->cwnd = info.tcpi_snd_mss > 0 ? info.tcpi_snd_cwnd / info.tcpi_snd_mss : -1; /* bytes here, segments there */
    totals->advertised_window = info.tcpi_snd_wnd;
    totals->timestamps = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
}

static int64_t busy_ticks(const long *times, int64_t *irq)
{
    *irq = times[CP_INTR];
    return (int64_t)times[CP_USER] + times[CP_NICE] + times[CP_SYS] + times[CP_INTR];
}

static void sample_node(struct cpu_times *times)
{
    static long ticks[MOST_CPUS * CPUSTATES];
    struct clockinfo clock;
    size_t length = sizeof clock;
    int64_t irq, tick_us, busy = 0, irqs = 0;

    times->node_busy_us = -1;
    times->node_irq_us = -1;
    times->throttled_us = -1; /* control groups are Linux's */
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
        int64_t own = busy_ticks(ticks + (size_t)cpu * CPUSTATES, &irq);

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

void sample_cpu(struct cpu_times *times)
{
    struct rusage usage;

    times->at_ns = clock_now();
    times->agent_us = -1;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        times->agent_us = (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
                          usage.ru_stime.tv_usec;
    sample_node(times);
}

int64_t sample_busiest_us(const struct cpu_times *before, const struct cpu_times *after)
{
    int64_t most = -1;

    for (int i = 0; i < before->cpus && i < after->cpus; i++) {
        uint32_t rose = after->busy_ms[i] - before->busy_ms[i];

        if (rose <= INT32_MAX && (int64_t)rose * 1000 > most)
            most = (int64_t)rose * 1000;
    }
    return most;
}
