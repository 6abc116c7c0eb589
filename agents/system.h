/* What each operating system does in its own way, one file per system: system-linux.c, system-freebsd.c. */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__linux__)
#define SYSTEM_DISCARDS true
#define SYSTEM_PACES true
#else
#define SYSTEM_DISCARDS false /* recv(2) has to copy what is thrown away */
#define SYSTEM_PACES false    /* SO_MAX_PACING_RATE is for network cards that pace */
#endif

/* Close a descriptor after a call failed whose errno stays. Returns -1. */
static inline int system_close_failed(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
    return -1;
}

/* A descriptor that can be read once one of `signals`, which are blocked, has come. -1 with errno. */
int system_signals(const sigset_t *signals);
/* This thread wakes at the instant it asked for, not some time after it, where the system lets it choose. */
void system_wake_exactly(void);
/* The name that process listings show. */
void system_name(const char *name);
/* Take bytes off a TCP connection and throw them away; as recv(2). */
ssize_t system_discard(int fd, size_t bytes);
/* Let TCP send no faster than `bits_per_s` of payload, and keep at most about `unsent` bytes that are not sent. 0 or an errno value. */
int system_pace(int fd, int64_t bits_per_s, int unsent);
/* Let a TCP receiver advertise no more than `bytes`, where the system can. */
void system_clamp_window(int fd, int bytes);
/* Claim `name` among all processes of this network; nobody else has it until the descriptor is closed. -1 with errno, EADDRINUSE where
 * somebody has it. */
int system_claim(const char *name);
/* A text that is another one after each boot. */
bool system_boot_id(char text[64]);
/* The path of this program. Returns its length, or -1. */
ssize_t system_program(char *path, size_t room);
/* A number of the network whose settings this process sees. False with errno. */
bool system_network(unsigned long long *number);
/* Whether `folder` is in memory: 1, 0, or -1 with errno. */
int system_in_memory(const char *folder);

/* MSG_ZEROCOPY (linux/Documentation/networking/msg_zerocopy.rst): sending without a copy into the kernel. The kernel may copy all the
 * same, always so where the receiver is on the same machine; it reports that afterwards, and this is counted. */
struct flow;
/* Ask for it on a socket that is not connected yet. Returns 0, or -1 and errno. */
int zerocopy_enable(int fd);
/* As send(2) of memory that is never written to. */
ssize_t zerocopy_send(struct flow *flow, const void *bytes, size_t count);
/* Take what the kernel has reported of sends so far. Returns true if it reported anything. */
bool zerocopy_collect(struct flow *flow);
/* Wait a moment for the reports that are missing. */
void zerocopy_finish(struct flow *flow);
