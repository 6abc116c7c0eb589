/* The functions of system.h on FreeBSD. The tests compile this file but cannot run it (docs/reference/freebsd.md). */
#include "system.h"

#include <sys/param.h>
#include <sys/mount.h>
#include <sys/sysctl.h>
#include <sys/time.h>

#include "probe.h"

#define SCRATCH_BYTES (256 << 10)

static int pipe_ends[2] = {-1, -1};

static void pass_on(int number)
{
    int error = errno;
    char byte = (char)number;

    write(pipe_ends[1], &byte, 1); /* if the pipe is full, the reader is awake already */
    errno = error;
}

int system_signals(const sigset_t *signals)
{
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};

    if (pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -1;
    sigfillset(&action.sa_mask);
    for (int number = 1; number < NSIG; number++)
        if (sigismember(signals, number) == 1 && sigaction(number, &action, NULL) != 0)
            return -1;
    return sigprocmask(SIG_UNBLOCK, signals, NULL) == 0 ? pipe_ends[0] : -1;
}

void system_wake_exactly(void)
{
}

void system_name(const char *name)
{
    setproctitle("%s", name);
}

/* On FreeBSD MSG_TRUNC does not discard, so the bytes are copied to a buffer that nobody reads. */
ssize_t system_discard(int fd, size_t bytes)
{
    static _Thread_local char scratch[SCRATCH_BYTES];

    return recv(fd, scratch, bytes < sizeof scratch ? bytes : sizeof scratch, 0);
}

int system_pace(int fd, int64_t bits_per_s, int unsent)
{
    (void)fd;
    (void)bits_per_s;
    (void)unsent;
    return ENOTSUP;
}

void system_clamp_window(int fd, int bytes)
{
    (void)fd;
    (void)bytes;
}

int system_claim(const char *name)
{
    char path[128];

    if (strchr(name, ' ') != NULL) /* a name with a blank only shows who holds the lock (lock.c); FreeBSD cannot list names */
        return -1;
    snprintf(path, sizeof path, "/tmp/%s", name);
    return system_claim_file(path);
}

bool system_boot_id(char text[64])
{
    struct timeval boot;
    size_t length = sizeof boot;

    if (sysctlbyname("kern.boottime", &boot, &length, NULL, 0) != 0)
        return false;
    snprintf(text, 64, "%lld", (long long)boot.tv_sec);
    return true;
}

ssize_t system_program(char *path, size_t room)
{
    int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PATHNAME, -1};
    size_t length = room;

    return sysctl(name, 4, path, &length, NULL, 0) == 0 ? (ssize_t)strlen(path) : -1;
}

bool system_network(unsigned long long *number)
{
    *number = 0; /* one number is enough: a jail has its own file system, and so its own journal */
    return true;
}

int system_in_memory(const char *folder)
{
    struct statfs system;

    return statfs(folder, &system) != 0 ? -1 : strcmp(system.f_fstypename, "tmpfs") == 0;
}

int probe_forbid_fragments(int fd, int family)
{
    int on = 1;

    return family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_DONTFRAG, &on, sizeof on)
                              : setsockopt(fd, IPPROTO_IP, IP_DONTFRAG, &on, sizeof on);
}

/* FreeBSD does not report ICMP errors to UDP sockets. */
bool probe_error_next(int fd, struct probe_error *found)
{
    (void)fd;
    (void)found;
    return false;
}
