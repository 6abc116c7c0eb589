/* The POSIX functions for memory, clock, timers and processors, made of calls of Windows. */
#include "posix-windows.h"

#undef free

#define TICKS 10000000 /* units of a FILETIME in a second */

/* Aligned memory begins at a multiple of 64 KiB, and memory of malloc() never does: so posix_free() can tell them apart. */

void *posix_aligned(size_t alignment, size_t bytes)
{
    (void)alignment;
    return VirtualAlloc(NULL, bytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
}

void posix_free(void *memory)
{
    if (((uintptr_t)memory & UINT16_MAX) == 0)
        VirtualFree(memory, 0, MEM_RELEASE);
    else
        free(memory);
}

int posix_clock(int clock, struct timespec *now)
{
    LARGE_INTEGER ticks, frequency;

    (void)clock;
    QueryPerformanceFrequency(&frequency); /* cheap: reads a number in memory */
    QueryPerformanceCounter(&ticks);
    now->tv_sec = (time_t)(ticks.QuadPart / frequency.QuadPart);
    now->tv_nsec = (long)(ticks.QuadPart % frequency.QuadPart * 1000000000 / frequency.QuadPart);
    return 0;
}

int posix_sleep_until(const struct timespec *until)
{
    HANDLE timer = CreateWaitableTimerExW(NULL, NULL, CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, TIMER_ALL_ACCESS);
    struct timespec now;
    LARGE_INTEGER left;

    if (timer == NULL) /* Windows before 10 1803 has no such timer */
        timer = CreateWaitableTimerExW(NULL, NULL, 0, TIMER_ALL_ACCESS);
    for (;;) {
        posix_clock(CLOCK_MONOTONIC, &now);
        left.QuadPart = -((until->tv_sec - now.tv_sec) * TICKS + (until->tv_nsec - now.tv_nsec) / 100); /* negative: relative to now */
        if (left.QuadPart >= 0)
            break;
        if (timer != NULL && SetWaitableTimer(timer, &left, 0, NULL, NULL, FALSE))
            WaitForSingleObject(timer, INFINITE);
        else
            Sleep(1);
    }
    if (timer != NULL)
        CloseHandle(timer);
    return 0;
}

static struct timeval as_timeval(FILETIME time)
{
    int64_t us = ((int64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) / 10;

    return (struct timeval){.tv_sec = (long)(us / 1000000), .tv_usec = (long)(us % 1000000)};
}

int posix_rusage(struct rusage *usage)
{
    FILETIME made, ended, system, user;

    if (!GetProcessTimes(GetCurrentProcess(), &made, &ended, &system, &user))
        return posix_fail();
    *usage = (struct rusage){.ru_utime = as_timeval(user), .ru_stime = as_timeval(system)};
    return 0;
}

int posix_count(const cpu_set_t *set)
{
    int count = 0;

    for (int group = 0; group < CPU_SETSIZE / 64; group++)
        count += __builtin_popcountll(set->bits[group]);
    return count;
}

int posix_getcpu(void)
{
    PROCESSOR_NUMBER found;

    GetCurrentProcessorNumberEx(&found);
    return found.Group * 64 + found.Number;
}

int posix_getaffinity(cpu_set_t *set)
{
    WORD groups = GetActiveProcessorGroupCount();
    DWORD_PTR own, all;

    memset(set, 0, sizeof *set);
    for (WORD group = 0; group < groups && group < CPU_SETSIZE / 64; group++) {
        DWORD count = GetActiveProcessorCount(group);

        set->bits[group] = count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
    }
    if (groups == 1 && GetProcessAffinityMask(GetCurrentProcess(), &own, &all))
        set->bits[0] &= own;
    return 0;
}

int posix_setaffinity(const cpu_set_t *set)
{
    GROUP_AFFINITY wanted = {0};

    for (WORD group = 0; group < CPU_SETSIZE / 64; group++) {
        if (set->bits[group] == 0)
            continue;
        if (wanted.Mask != 0) { /* a thread can run in one group only */
            errno = EINVAL;
            return -1;
        }
        wanted.Group = group;
        wanted.Mask = set->bits[group];
    }
    return SetThreadGroupAffinity(GetCurrentThread(), &wanted, NULL) ? 0 : posix_fail();
}

int posix_uname(struct utsname *name)
{
#if defined(__aarch64__)
    snprintf(name->machine, sizeof name->machine, "windows-aarch64");
#else
    snprintf(name->machine, sizeof name->machine, "windows-x86_64");
#endif
    return 0;
}
