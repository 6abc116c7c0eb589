/* What every system says of a connection and of CPU time in the same words: getsockopt(2), getrusage(2). */
#include "sample.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "clock.h"
#include "mptcp.h"

void sample_unknown(struct tcp_totals *totals)
{
    /* Every field is a number that is unknown, but for the names of options. */
    memset(totals, 0xff, sizeof *totals);
    sockopts_unknown(&totals->sockopts);
}

void sample_tcp(int fd, struct multipath *paths, struct tcp_totals *totals)
{
    sample_unknown(totals);
    sockopts_read(fd, &totals->sockopts, true);
    if (paths != NULL)
        mptcp_sample(fd, paths, totals);
    else
        sample_info(fd, totals);
}

void sample_cpu(struct cpu_times *times)
{
    struct rusage usage;

    times->at_us = clock_now() / US;
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
