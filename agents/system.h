/* What each operating system does in its own way: system-linux.c, system-freebsd.c. */
#pragma once

#include "agent.h"

#include <signal.h>

#if defined(__linux__)
#define SYSTEM_DISCARDS true
#define SYSTEM_PACES true
#else
#define SYSTEM_DISCARDS false /* recv(2) cannot discard bytes without a copy */
#define SYSTEM_PACES false    /* SO_MAX_PACING_RATE works only with network cards that pace */
#endif

/* Close a descriptor, if there is one. */
static inline void system_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Close a descriptor after a call failed, and keep the errno of that call. Returns -1. */
static inline int system_close_failed(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
    return -1;
}

/* Return a descriptor that becomes readable when one of `signals`, which are blocked, arrives. Returns -1 with errno if that fails. */
int system_signals(const sigset_t *signals);
/* Have this thread wake exactly when it asked to, if the system can. */
void system_wake_exactly(void);
/* Set the name of this process in listings. */
void system_name(const char *name);
/* Receive bytes of a TCP connection and discard them. Returns as recv(2). */
ssize_t system_discard(int fd, size_t bytes);
/* Limit TCP to `bits_per_s` of payload, and to about `unsent` bytes that wait to be sent. Returns 0 or an errno value. */
int system_pace(int fd, int64_t bits_per_s, int unsent);
/* Limit the window that a TCP receiver advertises to `bytes`, if the system can. */
void system_clamp_window(int fd, int bytes);
/* Claim `name` among all processes of this network. Returns a descriptor that holds the name until it is closed, or -1 with errno,
 * EADDRINUSE if somebody else has the name. */
int system_claim(const char *name);
/* Read a text that changes with each boot. Returns false if it is unknown. */
bool system_boot_id(char text[64]);
/* Read the path of this program, without a NUL. Returns its length, or -1. */
ssize_t system_program(char *path, size_t room);
/* Read a number that identifies the network whose settings this process sees. Returns false with errno if that fails. */
bool system_network(unsigned long long *number);
/* Tell whether `folder` is in memory: 1, 0, or -1 with errno. */
int system_in_memory(const char *folder);

/* MSG_ZEROCOPY (linux/Documentation/networking/msg_zerocopy.rst): sending without a copy into the kernel. The kernel may copy all the
 * same, and always does if the receiver is on the same machine. It reports that afterwards. */
struct flow;
/* Enable it on a socket that is not connected yet. Returns 0, or -1 with errno. */
int zerocopy_enable(int fd);
/* Send as send(2) does; the memory must never change. */
ssize_t zerocopy_send(struct flow *flow, const void *bytes, size_t count);
/* Take the kernel's reports of sends. Returns true if there were any. */
bool zerocopy_collect(struct flow *flow);
/* Wait shortly for the missing reports. */
void zerocopy_finish(struct flow *flow);
