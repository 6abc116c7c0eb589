/* Windows cannot poll the pipes of standard input and output, so a thread copies the bytes between each pipe and a socket. This file also
 * reads and writes files, and ends the process. */
#include "posix-windows.h"

#include <stdarg.h>

#undef accept
#undef bind
#undef connect
#undef getpeername
#undef getsockname
#undef listen
#undef recv
#undef send
#undef setsockopt
#undef shutdown
#undef socket

#define BLOCK_BYTES 16384

static int wakers[2] = {-1, -1}; /* sockets made by posix_eventfd */
static HANDLE writer;

static bool is_same_port(SOCKET one, SOCKET other)
{
    struct sockaddr_in here = {0}, there = {0};
    int length = sizeof here, other_length = sizeof there;

    return getsockname(one, (struct sockaddr *)&here, &length) == 0 && getpeername(other, (struct sockaddr *)&there, &other_length) == 0 &&
           here.sin_port == there.sin_port && here.sin_addr.s_addr == there.sin_addr.s_addr;
}

static const struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.S_un.S_addr = 0x0100007f};

/* Make two connected sockets. A stranger who connects first has another port and is dropped. */
static bool make_pair(int *inner_end, SOCKET *thread_end)
{
    SOCKET listener = socket(AF_INET, SOCK_STREAM, 0), near_end = socket(AF_INET, SOCK_STREAM, 0), far_end = INVALID_SOCKET;
    struct sockaddr_in address = loopback;
    int length = sizeof address, small = BLOCK_BYTES;

    /* The buffers are small, so that the agent soon notices a controller that does not read. */
    setsockopt(near_end, SOL_SOCKET, SO_SNDBUF, (const char *)&small, sizeof small);
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, (const char *)&small, sizeof small);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        connect(near_end, (struct sockaddr *)&address, sizeof address) != 0)
        return false;
    do {
        if (far_end != INVALID_SOCKET)
            closesocket(far_end);
        far_end = accept(listener, NULL, NULL);
    } while (far_end != INVALID_SOCKET && !is_same_port(near_end, far_end));
    closesocket(listener);
    *thread_end = far_end;
    *inner_end = posix_begin_socket(near_end);
    return far_end != INVALID_SOCKET;
}

static DWORD WINAPI carry_input(void *end)
{
    SOCKET fd = (SOCKET)end;
    HANDLE from = GetStdHandle(STD_INPUT_HANDLE);
    char block[BLOCK_BYTES];
    DWORD got;

    while (ReadFile(from, block, sizeof block, &got, NULL) && got > 0)
        if (send(fd, block, (int)got, 0) != (int)got)
            break;
    shutdown(fd, SD_SEND);
    return 0;
}

static DWORD WINAPI carry_output(void *end)
{
    SOCKET fd = (SOCKET)end;
    HANDLE to = GetStdHandle(STD_OUTPUT_HANDLE);
    char block[BLOCK_BYTES];
    int got;

    while ((got = recv(fd, block, sizeof block, 0)) > 0) {
        DWORD put = 0;

        for (DWORD sent = 0; sent < (DWORD)got; sent += put)
            if (!WriteFile(to, block + sent, (DWORD)got - sent, &put, NULL)) {
                closesocket(fd); /* so that the main thread's next write fails */
                return 1;
            }
    }
    return 0;
}

static int begin_carrying(int std)
{
    SOCKET end;
    HANDLE thread;

    if (!make_pair(std == STDIN_FILENO ? &posix_standard[STDIN_FILENO] : &posix_standard[STDOUT_FILENO], &end))
        return posix_fail_socket();
    thread = CreateThread(NULL, 0, std == STDIN_FILENO ? carry_input : carry_output, (void *)end, 0, NULL);
    if (std == STDOUT_FILENO)
        writer = thread;
    return thread != NULL ? 0 : posix_fail();
}

/* Start the thread of standard input or output. For other descriptors do nothing: all sockets are non-blocking anyway. */
int posix_fcntl(int fd, int command, int flags)
{
    (void)flags;
    return command == F_SETFL && (fd == STDIN_FILENO || fd == STDOUT_FILENO) ? begin_carrying(fd) : 0;
}

/* Make an eventfd of a UDP socket that is connected to itself, so that only this process can write to it. */
int posix_eventfd(void)
{
    struct sockaddr_in address = loopback;
    int length = sizeof address, fd = posix_socket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);

    if (fd < 0 || bind((SOCKET)fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname((SOCKET)fd, (struct sockaddr *)&address, &length) != 0 ||
        connect((SOCKET)fd, (struct sockaddr *)&address, sizeof address) != 0)
        return posix_fail_socket();
    wakers[wakers[0] >= 0] = fd;
    return fd;
}

static bool is_socket(int fd)
{
    return fd == STDIN_FILENO || fd == STDOUT_FILENO || fd == wakers[0] || fd == wakers[1];
}

ssize_t posix_read(int fd, void *bytes, size_t count)
{
    DWORD got = 0;

    if (is_socket(fd))
        return posix_recv(fd == STDIN_FILENO || fd == STDOUT_FILENO ? posix_standard[fd] : fd, bytes, count, MSG_DONTWAIT);
    return ReadFile(posix_handle(fd), bytes, (DWORD)count, &got, NULL) ? (ssize_t)got : posix_fail();
}

ssize_t posix_write(int fd, const void *bytes, size_t count)
{
    DWORD put = 0;

    if (is_socket(fd))
        return posix_send(fd == STDIN_FILENO || fd == STDOUT_FILENO ? posix_standard[fd] : fd, bytes, count, MSG_DONTWAIT);
    return WriteFile(posix_handle(fd), bytes, (DWORD)count, &put, NULL) ? (ssize_t)put : posix_fail();
}

int posix_fdatasync(int fd)
{
    return FlushFileBuffers(posix_handle(fd)) ? 0 : posix_fail();
}

int posix_print(int fd, const char *format, ...)
{
    char text[1024];
    va_list values;
    DWORD put;
    int length;

    va_start(values, format);
    length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    WriteFile(GetStdHandle(fd == STDOUT_FILENO ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE), text, (DWORD)length, &put, NULL);
    return length;
}

_Noreturn void posix_exit(int code)
{
    if (writer != NULL) {
        shutdown((SOCKET)posix_standard[STDOUT_FILENO], SD_SEND);
        WaitForSingleObject(writer, 500);
    }
    TerminateProcess(GetCurrentProcess(), (UINT)code);
    abort();
}

/* Files of /proc and /sys do not exist on Windows. */

int posix_open(const char *path, int flags)
{
    (void)path, (void)flags;
    errno = ENOENT;
    return -1;
}

int posix_access(const char *path, int mode)
{
    return posix_open(path, mode);
}

bool posix_wide(const char *text, wchar_t *wide, int room)
{
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, room) > 0 || posix_fail() == 0;
}
