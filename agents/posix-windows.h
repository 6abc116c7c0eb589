/* The POSIX names that the shared files use, for Windows. A descriptor is a Windows handle (a socket, a file, a mutex) as an int, but 0
 * and 1 are standard input and output. All sockets are non-blocking for Windows; a call of a flow's thread waits (posix-windows.c). */
#pragma once

#include <winsock2.h>
#include <ws2tcpip.h>
#include <mswsock.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

/* COM defines these names as macros; structures of the agent use them. */
#undef interface
#undef small

typedef ADDRESS_FAMILY sa_family_t;
typedef unsigned short in_port_t;

#define STDIN_FILENO 0
#define STDOUT_FILENO 1
#define STDERR_FILENO 2

/* Flags that Windows lacks. Those of sockets differ from all flags that Windows has. */
#define SOCK_NONBLOCK 0x100
#define SOCK_CLOEXEC 0x200
#define MSG_DONTWAIT 0x10000
#define MSG_NOSIGNAL 0
#undef MSG_TRUNC
#define MSG_TRUNC 0x20000
#define MSG_WAITFORONE 0x40000
#define SHUT_RD SD_RECEIVE
#define SHUT_WR SD_SEND
#define SHUT_RDWR SD_BOTH
#define F_OK 0
#define F_GETFL 3
#define F_SETFL 4
#define O_NONBLOCK 0x800
#define O_CLOEXEC 0
#define O_RDONLY 0
#define EFD_CLOEXEC 0
#define EFD_NONBLOCK 0

/* Options that Windows lacks: setting and reading them fails. */
#define LACKING (-1)
#define SO_REUSEPORT LACKING
#define TCP_CONGESTION LACKING
#define UDP_SEGMENT 2 /* UDP_SEND_MSG_SIZE */
#define UDP_GRO 3     /* UDP_RECV_MAX_COALESCED_SIZE; in a control message UDP_COALESCED_INFO */
#undef IP_RECVERR
#define IP_RECVERR LACKING
#undef IPV6_RECVERR
#define IPV6_RECVERR LACKING

struct posix_pollfd {
    int fd;
    short events, revents;
};
typedef unsigned long nfds_t;

struct iovec {
    void *iov_base;
    size_t iov_len;
};
struct msghdr {
    void *msg_name;
    socklen_t msg_namelen;
    struct iovec *msg_iov;
    size_t msg_iovlen;
    void *msg_control;
    size_t msg_controllen;
    int msg_flags;
};
struct mmsghdr {
    struct msghdr msg_hdr;
    unsigned msg_len;
};
#undef CMSG_FIRSTHDR
#define CMSG_FIRSTHDR(message) \
    ((message)->msg_controllen >= sizeof(struct cmsghdr) ? (struct cmsghdr *)(message)->msg_control : (struct cmsghdr *)NULL)
#undef CMSG_NXTHDR
#define CMSG_NXTHDR(message, note) posix_next_note(message, note)
#undef CMSG_DATA
#define CMSG_DATA WSA_CMSG_DATA

/* Windows has no signals except Ctrl-C (system_signals). */
#undef SIGHUP
#define SIGHUP 1
#undef SIGPIPE
#define SIGPIPE 13
#define SIG_BLOCK 0
typedef _sigset_t sigset_t;
#define sigemptyset(set) (*(set) = 0)
#define sigaddset(set, number) (*(set) |= (sigset_t)1 << (number))
#undef pthread_sigmask
#define pthread_sigmask(how, set, old) ((void)(set), 0)
#define signal(number, action) (action)

/* Windows has processors in groups of 64; here their numbers run through all groups. */
#define CPU_SETSIZE 1024
typedef struct {
    uint64_t bits[CPU_SETSIZE / 64];
} cpu_set_t;
#define CPU_ZERO(set) memset(set, 0, sizeof *(set))
#define CPU_SET(cpu, set) ((set)->bits[(cpu) / 64] |= UINT64_C(1) << (cpu) % 64)
#define CPU_CLR(cpu, set) ((set)->bits[(cpu) / 64] &= ~(UINT64_C(1) << (cpu) % 64))
#define CPU_ISSET(cpu, set) (((set)->bits[(cpu) / 64] >> (cpu) % 64 & 1) != 0)
#define CPU_COUNT(set) posix_count(set)

struct utsname {
    char machine[32];
};
struct rusage {
    struct timeval ru_utime, ru_stime;
};
#define RUSAGE_SELF 0

#define htobe64(word) __builtin_bswap64(word)
#define be64toh(word) __builtin_bswap64(word)
#define htobe32(word) __builtin_bswap32(word)
#define be32toh(word) __builtin_bswap32(word)
#define htole64(word) (word)
#define le64toh(word) (word)

/* Sockets that stand for standard input and output. */
extern int posix_standard[2];

/* Make a socket of Winsock non-blocking. Returns it as a descriptor, or -1 with errno. */
int posix_begin_socket(SOCKET made);
int posix_accept(int fd, int flags);
int posix_access(const char *path, int mode);
void *posix_aligned(size_t alignment, size_t bytes);
int posix_bind(int fd, const struct sockaddr *address, socklen_t length);
int posix_clock(int clock, struct timespec *now);
int posix_close(int fd);
int posix_connect(int fd, const struct sockaddr *address, socklen_t length);
int posix_count(const cpu_set_t *set);
int posix_eventfd(void);
_Noreturn void posix_exit(int code);
int posix_fcntl(int fd, int command, int flags);
int posix_fdatasync(int fd);
void posix_free(void *memory);
int posix_getaffinity(cpu_set_t *set);
int posix_getcpu(void);
int posix_getpeername(int fd, struct sockaddr *address, socklen_t *length);
int posix_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int posix_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int posix_listen(int fd, int waiting);
struct cmsghdr *posix_next_note(const struct msghdr *message, struct cmsghdr *note);
int posix_open(const char *path, int flags);
int posix_poll(struct posix_pollfd *polls, nfds_t count, int timeout_ms);
int posix_ppoll(struct posix_pollfd *polls, nfds_t count, const struct timespec *timeout);
int posix_print(int fd, const char *format, ...) __attribute__((format(printf, 2, 3)));
ssize_t posix_read(int fd, void *bytes, size_t count);
ssize_t posix_recv(int fd, void *bytes, size_t count, int flags);
ssize_t posix_recvmsg(int fd, struct msghdr *message, int flags);
int posix_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
int posix_rusage(struct rusage *usage);
ssize_t posix_send(int fd, const void *bytes, size_t count, int flags);
int posix_sendmmsg(int fd, struct mmsghdr *messages, unsigned count);
int posix_setaffinity(const cpu_set_t *set);
int posix_setsockopt(int fd, int level, int option, const void *value, socklen_t length);
int posix_shutdown(int fd, int how);
int posix_sleep_until(const struct timespec *until);
int posix_socket(int family, int type, int protocol);
const char *posix_strerror(int error);
int posix_uname(struct utsname *name);
ssize_t posix_write(int fd, const void *bytes, size_t count);
/* Set errno from the last error of Winsock, or of another call of Windows. Returns -1. */
int posix_fail_socket(void);
int posix_fail(void);
static inline HANDLE posix_handle(int fd)
{
    return (HANDLE)(intptr_t)fd;
}
/* Convert UTF-8 to UTF-16. Returns false with errno if it does not fit. */
bool posix_wide(const char *text, wchar_t *wide, int room);

#undef clock_gettime
#undef clock_nanosleep
#define CLOCK_MONOTONIC 1
#define TIMER_ABSTIME 1
#define _exit posix_exit
#define accept4(fd, address, length, flags) posix_accept(fd, flags)
#define access posix_access
#define aligned_alloc posix_aligned
#define bind posix_bind
#define clock_gettime posix_clock
#define clock_nanosleep(clock, flags, until, left) posix_sleep_until(until)
#define close posix_close
#define connect posix_connect
#define dprintf posix_print
#define eventfd(first, flags) posix_eventfd()
#define fcntl(fd, command, ...) posix_fcntl(fd, command, (__VA_ARGS__ + 0))
#define fdatasync posix_fdatasync
#define free posix_free
#define getpeername posix_getpeername
#define getpid() ((int)GetCurrentProcessId())
#define getrusage(who, usage) posix_rusage(usage)
#define getsockname posix_getsockname
#define getsockopt posix_getsockopt
#define listen posix_listen
#define open posix_open
#define poll posix_poll
#define pollfd posix_pollfd
#define ppoll(polls, count, timeout, mask) posix_ppoll(polls, count, timeout)
#define read posix_read
#define recv posix_recv
#define recvmmsg(fd, messages, count, flags, timeout) posix_recvmmsg(fd, messages, count, flags)
#define recvmsg posix_recvmsg
#define sched_getaffinity(process, size, set) posix_getaffinity(set)
#define sched_getcpu posix_getcpu
#define sched_setaffinity(process, size, set) posix_setaffinity(set)
#define send posix_send
#define sendmmsg(fd, messages, count, flags) posix_sendmmsg(fd, messages, count)
#define setsockopt posix_setsockopt
#define shutdown posix_shutdown
#define socket posix_socket
#define strerror posix_strerror
#define uname posix_uname
#define write posix_write
