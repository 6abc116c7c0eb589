/* The functions of system.h on Linux: prctl(2), signalfd(2), tcp(7) and /proc. */
#include "system.h"

#include <limits.h>
#include <linux/magic.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>

#include "text.h"

int system_signals(const sigset_t *signals)
{
    return signalfd(-1, signals, SFD_CLOEXEC);
}

void system_wake_exactly(void)
{
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL); /* wake exactly; by default a thread may wake 50 us late */
}

void system_name(const char *name)
{
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

ssize_t system_discard(int fd, size_t bytes)
{
    /* A direct system call, because ThreadSanitizer assumes that recv(2) writes to its buffer. */
    return (ssize_t)syscall(SYS_recvfrom, fd, NULL, bytes, MSG_TRUNC, NULL, NULL);
}

int system_pace(int fd, int64_t bits_per_s, int unsent)
{
    /* A kernel before 4.20 reads only the first 32 bits, which suffice below 34 Gbit/s. */
    uint64_t asked = (uint64_t)(bits_per_s + 7) / 8;
    unsigned long bytes_per_s = (unsigned long)asked;

    if (asked >= ULONG_MAX) /* only on a 32-bit system, where ULONG_MAX would mean an unlimited rate */
        return ERANGE;
    if (setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_s, sizeof bytes_per_s) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent) != 0)
        return errno;
    return 0;
}

void system_clamp_window(int fd, int bytes)
{
    setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &bytes, sizeof bytes);
}

int system_claim(const char *name)
{
    /* An abstract address (unix(7)) needs no file and is valid in one network namespace; every user can read it in /proc/net/unix. */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name) < sizeof address.sun_path ? strlen(name) : sizeof address.sun_path - 1;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path + 1, name, length);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0)
        return fd;
    return system_close_failed(fd);
}

bool system_boot_id(char text[64])
{
    bool known = text_read("/proc/sys/kernel/random/boot_id", text, 64) > 0;

    text[strcspn(text, "\n")] = '\0';
    return known;
}

ssize_t system_program(char *path, size_t room)
{
    return readlink("/proc/self/exe", path, room);
}

bool system_network(unsigned long long *number)
{
    struct stat space;

    if (stat("/proc/self/ns/net", &space) != 0)
        return false;
    *number = space.st_ino;
    return true;
}

bool system_queue(int listen_fd, int *room, int64_t *dropped)
{
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    struct tcp_info info = {0};
    socklen_t length = sizeof info, memory_length = sizeof memory;

    if (getsockopt(listen_fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || info.tcpi_state != TCP_LISTEN ||
        getsockopt(listen_fd, SOL_SOCKET, SO_MEMINFO, memory, &memory_length) != 0)
        return false;
    *room = (int)info.tcpi_sacked; /* of a listening socket, its sk_max_ack_backlog */
    *dropped = memory[SK_MEMINFO_DROPS];
    return true;
}

int system_in_memory(const char *folder)
{
    struct statfs system;

    return statfs(folder, &system) != 0 ? -1 : system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}
