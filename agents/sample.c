/* The parts of sampling that are equal on all systems: socket options and getrusage(2). */
#include "sample.h"

#include "clock.h"

void sample_clear(struct tcp_totals *totals)
{
    /* 0xff makes every number -1. The socket options also have names, so they are cleared separately. */
    memset(totals, 0xff, sizeof *totals);
    sockopts_clear(&totals->sockopts);
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

        /* Skip a CPU that was off at one of the readings: its count would include time before the first reading. */
        if (before->busy_ms[i] == UINT32_MAX || after->busy_ms[i] == UINT32_MAX)
            continue;
        if (rose <= INT32_MAX && (int64_t)rose * 1000 > most)
            most = (int64_t)rose * 1000;
    }
    return most;
}
