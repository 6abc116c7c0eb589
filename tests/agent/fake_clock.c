/* A clock that the test moves, for an agent that is started with this library (LD_PRELOAD): CLOCK_MONOTONIC is the number in the file
 * FAKE_CLOCK. Time stands still in between, so nothing that an agent gives up after a time is given up because a machine is slow.
 * With FAKE_CLOCK_JUMPS a sleep moves the clock itself and ends at once. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define LOOK_NS 2000000 /* real time between looks whether the clock has moved */

static _Atomic int64_t *shown(void)
{
    static _Atomic(_Atomic int64_t *) known;
    _Atomic int64_t *at = atomic_load(&known);
    int fd;

    if (at != NULL)
        return at;
    fd = open(getenv("FAKE_CLOCK"), O_RDWR | O_CLOEXEC);
    at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || at == MAP_FAILED)
        abort();
    close(fd);
    atomic_store(&known, at);
    return at;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int64_t ns;

    if (clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, now);
    ns = atomic_load(shown());
    *now = (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
    return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    int64_t at = until->tv_sec * SECOND + until->tv_nsec;

    if (clock != CLOCK_MONOTONIC || flags != TIMER_ABSTIME)
        abort();
    if (getenv("FAKE_CLOCK_JUMPS") != NULL && atomic_load(shown()) < at)
        atomic_store(shown(), at);
    while (atomic_load(shown()) < at)
        syscall(SYS_nanosleep, &look, left);
    return 0;
}

int ppoll(struct pollfd *polls, nfds_t count, const struct timespec *most, const sigset_t *mask)
{
    struct timespec look = {.tv_nsec = LOOK_NS};

    if (most != NULL && most->tv_sec == 0 && most->tv_nsec < LOOK_NS)
        look = *most;
    return (int)syscall(SYS_ppoll, polls, count, &look, mask, _NSIG / 8);
}
