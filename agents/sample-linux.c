/* TCP_INFO, getsockopt(2), getrusage(2) and /proc/stat. An older kernel gives a shorter TCP_INFO: what it lacks stays unknown. */
#include "sample.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

/* The field of TCP_INFO, or -1 where the kernel's struct ends before it. */
#define FIELD(name) (offsetof(struct tcp_info, name) + sizeof info.name <= length ? (int64_t)info.name : -1)

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
    socklen_t length = sizeof info;
    socklen_t name_length = sizeof totals->congestion - 1;

    sample_unknown(totals);
    totals->sndbuf = option(fd, SOL_SOCKET, SO_SNDBUF);
    totals->rcvbuf = option(fd, SOL_SOCKET, SO_RCVBUF);
    totals->nodelay = (int)option(fd, IPPROTO_TCP, TCP_NODELAY);
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, totals->congestion, &name_length) != 0)
        totals->congestion[0] = '\0';
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return;
    totals->mss = FIELD(tcpi_snd_mss);
    totals->rcv_mss = FIELD(tcpi_rcv_mss);
    totals->advmss = FIELD(tcpi_advmss);
    totals->pmtu = FIELD(tcpi_pmtu);
    totals->rtt_us = FIELD(tcpi_rtt);
    totals->rtt_min_us = FIELD(tcpi_min_rtt);
    if (totals->rtt_min_us == UINT32_MAX) /* no round trip was measured yet */
        totals->rtt_min_us = -1;
    totals->retransmits = FIELD(tcpi_total_retrans);
    totals->retransmitted_bytes = FIELD(tcpi_bytes_retrans);
    totals->cwnd = FIELD(tcpi_snd_cwnd);
    totals->busy_us = FIELD(tcpi_busy_time);
    totals->rwnd_limited_us = FIELD(tcpi_rwnd_limited);
    totals->sndbuf_limited_us = FIELD(tcpi_sndbuf_limited);
    totals->peer_window = FIELD(tcpi_snd_wnd);
    totals->segs_out = FIELD(tcpi_segs_out);
    totals->segs_in = FIELD(tcpi_segs_in);
    totals->timestamps = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
}

/* The first line of /proc/stat: cpu user nice system idle iowait irq softirq steal …, in ticks. */
static int64_t node_busy_us(void)
{
    char text[256], *at = text + strlen("cpu ");
    int64_t ticks_of[7], busy = 0; /* user, nice, system, idle, iowait, irq, softirq */
    int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;
    long ticks = sysconf(_SC_CLK_TCK);

    if (fd >= 0) {
        got = read(fd, text, sizeof text - 1);
        close(fd);
    }
    if (got <= 0 || ticks <= 0)
        return -1;
    text[got] = '\0';
    if (strncmp(text, "cpu ", strlen("cpu ")) != 0)
        return -1;
    for (int i = 0; i < 7; i++) {
        char *end;

        ticks_of[i] = strtoll(at, &end, 10);
        if (end == at)
            return -1;
        at = end;
        busy += i == 3 || i == 4 ? 0 : ticks_of[i];
    }
    return busy * (1000000 / ticks);
}

void sample_cpu(struct cpu_times *times)
{
    struct rusage usage;

    times->at_ns = clock_now();
    times->agent_us = -1;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        times->agent_us = (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
                          usage.ru_stime.tv_usec;
    times->node_busy_us = node_busy_us();
}
