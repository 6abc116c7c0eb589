/* Behaviours of FreeBSD's and Windows' kernels for an agent that is started with this library (LD_PRELOAD), by words in FOREIGN_KERNEL:
 *   maxsockbuf  SO_RCVBUF and SO_SNDBUF above 1,000,000 bytes are refused with ENOBUFS (FreeBSD, kern.ipc.maxsockbuf), SO_RCVBUFFORCE is unknown
 *   maxdgram    a datagram socket has a send buffer of 9,216 bytes until SO_SNDBUF is set, and sends no larger datagram (FreeBSD, udp(4))
 *   forgets     TCP_INFO cannot be read once the sending side was closed (Windows, SIO_TCP_INFO)
 *   joins       datagrams are joined without a message that has their size (Windows without UDP_COALESCED_INFO) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_MAX 1024
#define MOST_BYTES 1000000
#define MAXDGRAM 9216

static _Atomic bool closed[FILES_MAX], sized[FILES_MAX];

static bool is(const char *behaviour)
{
    const char *said = getenv("FOREIGN_KERNEL");

    return said != NULL && strstr(said, behaviour) != NULL;
}

int socket(int family, int type, int protocol)
{
    int fd = (int)syscall(SYS_socket, family, type, protocol);

    if (fd >= 0 && fd < FILES_MAX)
        closed[fd] = sized[fd] = false;
    return fd;
}

int shutdown(int fd, int how)
{
    if (how != SHUT_RD && fd < FILES_MAX)
        closed[fd] = true;
    return (int)syscall(SYS_shutdown, fd, how);
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
    bool buffer = level == SOL_SOCKET && (option == SO_RCVBUF || option == SO_SNDBUF);

    errno = level == SOL_SOCKET && option == SO_RCVBUFFORCE ? ENOPROTOOPT : ENOBUFS;
    if (is("maxsockbuf") && ((buffer && *(const int *)value > MOST_BYTES) || errno == ENOPROTOOPT))
        return -1;
    if (buffer && option == SO_SNDBUF && fd < FILES_MAX)
        sized[fd] = true;
    return (int)syscall(SYS_setsockopt, fd, level, option, value, length);
}

int getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
    int result, type = 0;
    socklen_t room = sizeof type;

    errno = ENOTCONN;
    if (is("forgets") && level == IPPROTO_TCP && option == TCP_INFO && fd < FILES_MAX && closed[fd])
        return -1;
    result = (int)syscall(SYS_getsockopt, fd, level, option, value, length);
    if (result == 0 && level == SOL_SOCKET && option == SO_SNDBUF && is("maxdgram") && fd < FILES_MAX && !sized[fd] &&
        syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &room) == 0 && type == SOCK_DGRAM)
        *(int *)value = MAXDGRAM;
    return result;
}

static bool is_too_long(int fd, size_t count)
{
    int room = 0;
    socklen_t length = sizeof room;

    return is("maxdgram") && count > MAXDGRAM && getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &length) == 0 && (size_t)room < count;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    errno = EMSGSIZE;
    return is_too_long(fd, count) ? -1 : syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);
}

int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    errno = EMSGSIZE;
    return is_too_long(fd, messages->msg_hdr.msg_iov->iov_len) ? -1 : (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
    int got = (int)syscall(SYS_recvmmsg, fd, messages, count, flags, timeout);

    for (int i = 0; i < got && is("joins"); i++)
        messages[i].msg_hdr.msg_controllen = 0;
    return got;
}
