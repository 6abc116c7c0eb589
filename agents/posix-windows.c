/* The POSIX functions for sockets, made of Winsock.
 *
 * On Winsock, shutdown(2) does not wake a thread that waits in send or recv. So no call waits for longer than WAIT_MS: sockets are
 * non-blocking, and a call of a flow's thread waits in WSAPoll and then fails with EINTR, after which all callers try again. The main
 * thread waits only in poll. Poll uses select, because WSAPoll conceals failed connections before Windows 10 2004
 * (docs/decisions/0046-windows-polling.md). */
#include "posix-windows.h"

#include <timeapi.h>

#undef accept
#undef bind
#undef close
#undef connect
#undef getpeername
#undef getsockname
#undef getsockopt
#undef listen
#undef poll
#undef recv
#undef send
#undef setsockopt
#undef shutdown
#undef socket
#undef strerror

#define WAIT_MS 50 /* as UDP_QUIET_US: after this silence a receiver of datagrams checks for the end of its flow */
#define POLLS_MAX 4096

static DWORD main_thread;
int posix_standard[2] = {-1, -1};

__attribute__((constructor)) static void begin(void)
{
    WSADATA data;

    main_thread = GetCurrentThreadId();
    timeBeginPeriod(1);
    if (WSAStartup(MAKEWORD(2, 2), &data) != 0)
        ExitProcess(1);
}

/* Errors */

static const struct {
    DWORD windows;
    int error;
    const char *text;
} errors[] = {
    {WSAEWOULDBLOCK, EAGAIN, "Resource temporarily unavailable"},
    {WSAEACCES, EACCES, "Permission denied"},
    {WSAEADDRINUSE, EADDRINUSE, "Address already in use"},
    {WSAEADDRNOTAVAIL, EADDRNOTAVAIL, "Cannot assign requested address"},
    {WSAEAFNOSUPPORT, EAFNOSUPPORT, "Address family not supported"},
    {WSAECONNABORTED, ECONNABORTED, "Software caused connection abort"},
    {WSAECONNREFUSED, ECONNREFUSED, "Connection refused"},
    {WSAECONNRESET, ECONNRESET, "Connection reset by peer"},
    {WSAENETRESET, ECONNRESET, "Connection reset by peer"},
    {WSAEHOSTUNREACH, EHOSTUNREACH, "No route to host"},
    {WSAENETUNREACH, ENETUNREACH, "Network is unreachable"},
    {WSAENETDOWN, ENETDOWN, "Network is down"},
    {WSAEINVAL, EINVAL, "Invalid argument"},
    {WSAEMFILE, EMFILE, "Too many open files"},
    {WSAEMSGSIZE, EMSGSIZE, "Message too long"},
    {WSAENOBUFS, ENOBUFS, "No buffer space available"},
    {WSAENOPROTOOPT, ENOPROTOOPT, "Protocol not available"},
    {WSAEOPNOTSUPP, EOPNOTSUPP, "Operation not supported"},
    {WSAENOTCONN, ENOTCONN, "Socket is not connected"},
    {WSAESHUTDOWN, EPIPE, "Broken pipe"},
    {WSAETIMEDOUT, ETIMEDOUT, "Connection timed out"},
    {ERROR_ACCESS_DENIED, EACCES, "Permission denied"},
    {ERROR_BROKEN_PIPE, EPIPE, "Broken pipe"},
    {ERROR_DISK_FULL, ENOSPC, "No space left on device"},
    {ERROR_HANDLE_DISK_FULL, ENOSPC, "No space left on device"},
    {ERROR_FILE_NOT_FOUND, ENOENT, "No such file or directory"},
    {ERROR_PATH_NOT_FOUND, ENOENT, "No such file or directory"},
    {ERROR_DIRECTORY, ENOTDIR, "Not a directory"},
    {ERROR_INVALID_NAME, ENOENT, "No such file or directory"},
    {ERROR_WRITE_PROTECT, EROFS, "Read-only file system"},
    {ERROR_INVALID_PARAMETER, EINVAL, "Invalid argument"},
    {ERROR_NOT_ENOUGH_MEMORY, ENOMEM, "Cannot allocate memory"},
};
#define ERRORS (sizeof errors / sizeof *errors)

static int find_error(DWORD windows)
{
    for (size_t i = 0; i < ERRORS; i++)
        if (errors[i].windows == windows)
            return errors[i].error;
    return EIO;
}

const char *posix_strerror(int error)
{
    for (size_t i = 0; i < ERRORS; i++)
        if (errors[i].error == error)
            return errors[i].text;
    return strerror(error);
}

int posix_fail_socket(void)
{
    errno = find_error((DWORD)WSAGetLastError());
    return -1;
}

int posix_fail(void)
{
    errno = find_error(GetLastError());
    return -1;
}

static int check(int result)
{
    return result == 0 ? 0 : posix_fail_socket();
}

/* Sockets */

int posix_begin_socket(SOCKET made)
{
    u_long on = 1;

    if (made == INVALID_SOCKET)
        return posix_fail_socket();
    SetHandleInformation((HANDLE)made, HANDLE_FLAG_INHERIT, 0);
    ioctlsocket(made, FIONBIO, &on);
    return (int)made;
}

int posix_socket(int family, int type, int protocol)
{
    int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), fd = posix_begin_socket(socket(family, kind, protocol));
    BOOL on = TRUE, off = FALSE;
    DWORD done;

    if (fd >= 0) /* no other socket can take the port, not even one with SO_REUSEADDR */
        setsockopt((SOCKET)fd, SOL_SOCKET, SO_EXCLUSIVEADDRUSE, (const char *)&on, sizeof on);
    if (fd >= 0 && kind == SOCK_DGRAM) /* an ICMP error about a datagram must not fail the next call */
        WSAIoctl((SOCKET)fd, SIO_UDP_CONNRESET, &off, sizeof off, NULL, 0, &done, NULL, NULL);
    return fd;
}

int posix_accept(int fd, int flags)
{
    (void)flags;
    return posix_begin_socket(accept((SOCKET)fd, NULL, NULL));
}

int posix_bind(int fd, const struct sockaddr *address, socklen_t length)
{
    int result = check(bind((SOCKET)fd, address, length));

    if (result != 0 && errno == EACCES) /* another program has the port exclusively, or Windows reserves it */
        errno = EADDRINUSE;
    return result;
}

int posix_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    int result = check(connect((SOCKET)fd, address, length));

    if (result != 0 && errno == EAGAIN)
        errno = EINPROGRESS;
    return result;
}

int posix_listen(int fd, int waiting)
{
    return check(listen((SOCKET)fd, waiting));
}

int posix_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
    return check(getsockname((SOCKET)fd, address, length));
}

int posix_getpeername(int fd, struct sockaddr *address, socklen_t *length)
{
    return check(getpeername((SOCKET)fd, address, length));
}

int posix_shutdown(int fd, int how)
{
    return check(shutdown((SOCKET)fd, how));
}

int posix_close(int fd)
{
    if (closesocket((SOCKET)fd) == 0)
        return 0;
    ReleaseMutex(posix_handle(fd)); /* needed for a mutex (system_claim); fails for other handles */
    return CloseHandle(posix_handle(fd)) ? 0 : posix_fail();
}

int posix_setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
    static const DWORD largest = UINT16_MAX;

    errno = ENOPROTOOPT;
    if (option == LACKING)
        return -1;
    if (level == SOL_SOCKET && option == SO_RCVTIMEO)
        return 0; /* needless: all calls return after WAIT_MS */
    if (level == IPPROTO_UDP && option == UDP_GRO)
        value = &largest;
    return check(setsockopt((SOCKET)fd, level, option, value, length));
}

int posix_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
    errno = ENOPROTOOPT;
    if (option == LACKING)
        return -1;
    memset(value, 0, (size_t)*length); /* Windows may write only one byte of a flag */
    if (getsockopt((SOCKET)fd, level, option, value, length) != 0)
        return posix_fail_socket();
    if (level == SOL_SOCKET && option == SO_ERROR && *(int *)value != 0)
        *(int *)value = find_error((DWORD) * (int *)value);
    return 0;
}

/* Wait if the failed call would have blocked. Returns true if the caller should repeat the call; else sets errno. */
static bool retry(int fd, short events, int flags)
{
    WSAPOLLFD ready = {.fd = (SOCKET)fd, .events = events};

    posix_fail_socket();
    if (errno != EAGAIN || (flags & MSG_DONTWAIT) != 0 || GetCurrentThreadId() == main_thread)
        return false;
    if (WSAPoll(&ready, 1, WAIT_MS) != 0)
        return true;
    errno = EINTR;
    return false;
}

static int limit(size_t count)
{
    return count < INT_MAX ? (int)count : INT_MAX;
}

ssize_t posix_send(int fd, const void *bytes, size_t count, int flags)
{
    int put;

    do
        put = send((SOCKET)fd, bytes, limit(count), 0);
    while (put < 0 && retry(fd, POLLWRNORM, flags));
    return put;
}

/* Receive the first `count` bytes of a datagram. Returns the length of all of it, as Linux does with MSG_TRUNC. */
static ssize_t receive_head(int fd, void *bytes, size_t count)
{
    static char datagram[UINT16_MAX]; /* only the main thread calls this */
    int got = recv((SOCKET)fd, datagram, sizeof datagram, 0);

    if (got < 0)
        return posix_fail_socket();
    memcpy(bytes, datagram, (size_t)got < count ? (size_t)got : count);
    return got;
}

ssize_t posix_recv(int fd, void *bytes, size_t count, int flags)
{
    int got;

    if ((flags & MSG_TRUNC) != 0)
        return receive_head(fd, bytes, count);
    do
        got = recv((SOCKET)fd, bytes, limit(count), 0);
    while (got < 0 && WSAGetLastError() != WSAESHUTDOWN && retry(fd, POLLRDNORM, flags));
    return got < 0 && WSAGetLastError() == WSAESHUTDOWN ? 0 : got; /* after shutdown(2), POSIX reports end-of-file, not an error */
}

ssize_t posix_recvmsg(int fd, struct msghdr *message, int flags)
{
    static _Atomic(LPFN_WSARECVMSG) receive;
    LPFN_WSARECVMSG call = receive;
    GUID name = WSAID_WSARECVMSG;
    WSABUF buffer = {.buf = message->msg_iov->iov_base, .len = (ULONG)message->msg_iov->iov_len};
    WSAMSG wrapped;
    DWORD got = 0;

    if (call == NULL && WSAIoctl((SOCKET)fd, SIO_GET_EXTENSION_FUNCTION_POINTER, &name, sizeof name, &call, sizeof call, &got, NULL,
                                 NULL) != 0)
        return posix_fail_socket();
    receive = call;
    do {
        wrapped = (WSAMSG){.lpBuffers = &buffer, .dwBufferCount = 1,
                           .Control = {.buf = message->msg_control, .len = (ULONG)message->msg_controllen}};
        if (call((SOCKET)fd, &wrapped, &got, NULL, NULL) == 0) {
            message->msg_controllen = wrapped.Control.len;
            return (ssize_t)got;
        }
    } while (retry(fd, POLLRDNORM, flags));
    return -1;
}

int posix_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    for (unsigned done = 0; done < count; done++) {
        ssize_t got = posix_recvmsg(fd, &messages[done].msg_hdr, done == 0 ? flags : MSG_DONTWAIT);

        if (got < 0)
            return done == 0 ? -1 : (int)done;
        messages[done].msg_len = (unsigned)got;
    }
    return (int)count;
}

int posix_sendmmsg(int fd, struct mmsghdr *messages, unsigned count)
{
    for (unsigned done = 0; done < count; done++) {
        const struct iovec *piece = messages[done].msg_hdr.msg_iov;

        if (posix_send(fd, piece->iov_base, piece->iov_len, 0) < 0)
            return done == 0 ? -1 : (int)done;
    }
    return (int)count;
}

struct cmsghdr *posix_next_note(const struct msghdr *message, struct cmsghdr *note)
{
    char *next = (char *)note + WSA_CMSGHDR_ALIGN(note->cmsg_len), *end = (char *)message->msg_control + message->msg_controllen;

    return note->cmsg_len < sizeof *note || next + sizeof *note > end ? NULL : (struct cmsghdr *)next;
}

/* Polling */

struct sockets { /* an fd_set with room for POLLS_MAX sockets */
    u_int count;
    SOCKET fds[POLLS_MAX];
};

static int inner(int fd)
{
    return fd == STDIN_FILENO || fd == STDOUT_FILENO ? posix_standard[fd] : fd;
}

static bool is_in(const void *sockets, int fd)
{
    return __WSAFDIsSet((SOCKET)fd, (fd_set *)sockets) != 0;
}

static int wait_in(struct sockets *in, struct sockets *out, struct sockets *bad, struct pollfd *polls, nfds_t count,
                   const struct timeval *timeout)
{
    int found = 0, got;

    in->count = out->count = bad->count = 0;
    for (nfds_t i = 0; i < count && i < POLLS_MAX; i++) {
        int fd = inner(polls[i].fd);

        polls[i].revents = 0;
        if (fd >= 0 && (polls[i].events & POLLIN) != 0)
            in->fds[in->count++] = (SOCKET)fd;
        if (fd >= 0 && (polls[i].events & POLLOUT) != 0)
            out->fds[out->count++] = bad->fds[bad->count++] = (SOCKET)fd;
    }
    got = select(0, (fd_set *)in, (fd_set *)out, (fd_set *)bad, timeout);
    if (got <= 0)
        return got == 0 ? 0 : posix_fail_socket();
    for (nfds_t i = 0; i < count && i < POLLS_MAX; i++) {
        int fd = inner(polls[i].fd);

        if (fd < 0)
            continue;
        polls[i].revents = (short)((is_in(in, fd) ? POLLIN : 0) | (is_in(out, fd) ? POLLOUT : 0) | (is_in(bad, fd) ? POLLERR : 0));
        found += polls[i].revents != 0;
    }
    return found;
}

int posix_ppoll(struct pollfd *polls, nfds_t count, const struct timespec *timeout)
{
    static struct sockets many[3]; /* only the main thread polls more than one socket */
    struct {
        u_int count;
        SOCKET fd;
    } one[3];
    struct timeval wait = {0};

    if (timeout != NULL) {
        int64_t us = (int64_t)timeout->tv_sec * 1000000 + (timeout->tv_nsec + 999) / 1000;

        wait = (struct timeval){.tv_sec = (long)(us / 1000000 < LONG_MAX ? us / 1000000 : LONG_MAX), .tv_usec = (long)(us % 1000000)};
    }
    if (count > 1)
        return wait_in(&many[0], &many[1], &many[2], polls, count, timeout != NULL ? &wait : NULL);
    return wait_in((struct sockets *)&one[0], (struct sockets *)&one[1], (struct sockets *)&one[2], polls, count,
                   timeout != NULL ? &wait : NULL);
}

int posix_poll(struct pollfd *polls, nfds_t count, int timeout_ms)
{
    struct timespec wait = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};

    return posix_ppoll(polls, count, timeout_ms < 0 ? NULL : &wait);
}
