/* Times of CLOCK_MONOTONIC in nanoseconds, the only clock in the protocol; and the wall clock, by which kernels note the times of packets. */
#pragma once

#include "agent.h"

#include <time.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

static inline int64_t clock_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * SECOND + time->tv_nsec;
}

static inline int64_t clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return clock_ns(&now);
}

/* Return the time since 1970. Others may set this clock at any time. */
static inline int64_t clock_wall(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return clock_ns(&now);
}

static inline struct timespec clock_spec(int64_t ns)
{
    if (ns < 0)
        ns = 0;
    return (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
}

static inline int64_t clock_sooner(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* Sleep until the time `at`; return at once if that time has passed. */
static inline void clock_sleep_until(int64_t at)
{
    struct timespec until = clock_spec(at);

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
}
