/* Functions that each operating system implements differently: system-linux.c, system-freebsd.c, system-windows.c. */
#pragma once

#include "agent.h"

#if defined(_WIN32)
#define SYSTEM_LACKS "congestion", "mss", "zerocopy", "mptcp", "close", "role", /* keys of listen and connect that the agent refuses here */
#define SYSTEM_TUNES_WINDOWS true /* SO_SNDBUF and SO_RCVBUF tell the buffer sizes in use only if a window was requested */
#define SYSTEM_SHARES_PORTS false /* of sockets that share a UDP port, one gets the datagrams of all senders */
#else
#if defined(__linux__)
#define SYSTEM_LACKS
#else
#define SYSTEM_LACKS "close", "role", /* of connections that a test opens, and of multicast */
#endif
#define SYSTEM_TUNES_WINDOWS false
#define SYSTEM_SHARES_PORTS true /* sockets of one user can share a UDP port, and each gets the datagrams of its own sender */
#endif

#if defined(_WIN32)
#define SYSTEM_IS_ABSOLUTE(path) ((path)[0] == '/' || (path)[0] == '\\' || ((path)[0] != '\0' && (path)[1] == ':'))
#else
#define SYSTEM_IS_ABSOLUTE(path) ((path)[0] == '/')
#endif

#if defined(__linux__)
#define SYSTEM_DOUBLES_BUFFERS true /* getsockopt(2) reports twice the buffer size that was set (socket(7)) */
#define SYSTEM_DISCARDS true
#define SYSTEM_PACES true
#else
#define SYSTEM_DOUBLES_BUFFERS false
#define SYSTEM_DISCARDS false /* recv(2) cannot discard bytes without copying them */
#define SYSTEM_PACES false    /* SO_MAX_PACING_RATE works only with network cards that pace */
#endif

static inline void system_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Close a descriptor after a failed call, keeping the errno of that call. Returns -1. */
static inline int system_close_failed(int fd)
{
    int error = errno;

    close(fd);
    errno = error;
    return -1;
}

/* Let the connection be reset when its descriptor is closed, also if this process is killed. A port whose connections are reset can be
 * used again at once; a connection that this side ended in order would keep it for a minute (TIME-WAIT). */
static inline void system_reset_at_close(int fd, bool reset)
{
    struct linger linger = {.l_onoff = reset, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

/* Return a descriptor that becomes readable when one of `signals`, which are blocked, arrives. Returns -1 with errno on failure. */
int system_signals(const sigset_t *signals);
/* Make timers of this thread exact, if the system can. */
void system_wake_exactly(void);
/* Set the name of this process in process listings. */
void system_name(const char *name);
/* Receive bytes of a TCP connection and discard them. Returns as recv(2) does. */
ssize_t system_discard(int fd, size_t bytes);
/* Limit TCP to `bits_per_s` of payload, and to about `unsent` bytes of unsent data. Returns 0 or an errno value. */
int system_pace(int fd, int64_t bits_per_s, int unsent);
/* Limit the window that a TCP receiver advertises to `bytes`, if the system can. */
void system_clamp_window(int fd, int bytes);
/* Claim `name` in this network namespace. Returns a descriptor that holds the name until closed, or -1 with errno; EADDRINUSE: taken. */
int system_claim(const char *name);
/* FreeBSD only: claim the file `path`, as system_claim() does. EPERM: it is no regular file. */
int system_claim_file(const char *path);
/* Read a text that differs for each boot. Returns false if it is unknown. */
bool system_boot_id(char text[64]);
/* Read the path of this program, without a final NUL. Returns its length, or -1. */
ssize_t system_program(char *path, size_t room);
/* Read a number that identifies the network namespace of this process. Returns false with errno on failure. */
bool system_network(unsigned long long *number);
/* Read how many connections wait at most in the queue of a listening socket, and how many SYNs and connections it dropped. Returns false if
 * that is unknown. */
bool system_queue(int listen_fd, int *room, int64_t *dropped);
/* Tell whether `folder` is in memory. Returns 1, 0, or -1 with errno. */
int system_in_memory(const char *folder);

/* MSG_ZEROCOPY (linux/Documentation/networking/msg_zerocopy.rst). The kernel reports later whether it copied the bytes after all. */
struct flow;
/* Enable MSG_ZEROCOPY on a socket that is not connected yet. Returns 0, or -1 with errno. */
int zerocopy_enable(int fd);
/* Send as send(2) does. The caller must never change the memory. */
ssize_t zerocopy_send(struct flow *flow, const void *bytes, size_t count);
/* Read the kernel's reports of completed sends. Returns true if a report had arrived. */
bool zerocopy_collect(struct flow *flow);
/* Wait a fraction of a second for the reports of sends that are still missing. */
void zerocopy_finish(struct flow *flow);
