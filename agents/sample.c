/* What every system says of a connection and of CPU time in the same words: getsockopt(2), getrusage(2). */
#include "sample.h"

#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

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
    socklen_t length = sizeof totals->congestion - 1;
    int64_t nodelay = option(fd, IPPROTO_TCP, TCP_NODELAY);

    sample_unknown(totals);
    totals->sndbuf = option(fd, SOL_SOCKET, SO_SNDBUF);
    totals->rcvbuf = option(fd, SOL_SOCKET, SO_RCVBUF);
    totals->nodelay = nodelay < 0 ? -1 : nodelay != 0; /* on FreeBSD it reads back as the option's own bit */
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, totals->congestion, &length) != 0)
        totals->congestion[0] = '\0';
    sample_info(fd, totals);
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

        /* One that was switched on meanwhile would show all it ever did. */
        if (before->busy_ms[i] == UINT32_MAX || after->busy_ms[i] == UINT32_MAX)
            continue;
        if (rose <= INT32_MAX && (int64_t)rose * 1000 > most)
            most = (int64_t)rose * 1000;
    }
    return most;
}
