/* Reading a file into a connection and a connection into a file, in pieces of 64 KiB, by read(2) and write(2): what an application
 * without special calls does. The sender's time ends when the receiver says that it has written all of it; what its disk takes
 * after that to have it safe is measured by itself.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "data.h"
#include "flow.h"
#include "system.h"

#define PIECE_BYTES (64 << 10)

int file_open(const char *folder)
{
    char name[300];
    int fd, memory;

    memory = system_in_memory(folder);
    if (memory > 0)
        errno = EINVAL;
    if (memory != 0)
        return -1;
#if defined(O_TMPFILE)
    fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
#endif
    snprintf(name, sizeof name, "%s/.rigctl-XXXXXX", folder);
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

int file_fill(int fd, int64_t size, const _Atomic bool *stop)
{
    int error = 0;

    for (int64_t left = size; left > 0 && error == 0 && !atomic_load(stop);) {
        ssize_t put = write(fd, data_bytes(), (size_t)(left < DATA_BYTES ? left : DATA_BYTES));

        if (put < 0 && errno != EINTR)
            error = errno;
        else if (put > 0)
            left -= put;
    }
    if (error == 0 && !atomic_load(stop) && fdatasync(fd) != 0)
        error = errno;
    /* Else it would be read out of memory. */
    if (error == 0)
        error = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (error == 0 && lseek(fd, 0, SEEK_SET) != 0)
        error = errno;
    return error;
}

static bool send_piece(struct flow *flow, size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        ssize_t put = send(flow->fd, flow->buffer + sent, bytes - sent, MSG_NOSIGNAL);

        if (put > 0)
            sent += (size_t)put;
        else if (errno != EINTR) {
            flow_broke(flow, "send", errno);
            return false;
        }
    }
    flow_count(flow, (int64_t)bytes);
    flow_moved(flow, flow->fd);
    return true;
}

/* The next piece of what is to be sent, at most `left` bytes, out of the file or out of memory. Returns how many; -1 where it broke. */
static ssize_t next_piece(struct flow *flow, int64_t left)
{
    size_t wanted = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    int64_t before = clock_now();
    ssize_t got;

    if (flow->file.fd < 0)
        return (ssize_t)wanted;
    got = read(flow->file.fd, flow->buffer, wanted);
    flow->file.disk_ns += clock_now() - before;
    if (got <= 0)
        flow_broke(flow, "reading the file", got == 0 ? EIO : errno);
    return got > 0 ? got : -1;
}

static void send_file(struct flow *flow)
{
    int64_t left = flow->message.size;

    flow->first_byte_ns = clock_now();
    while (left > 0 && clock_now() < flow->time.end_ns && !flow_stopping(flow)) {
        ssize_t got = next_piece(flow, left);

        if (got < 0 || !send_piece(flow, (size_t)got))
            return;
        left -= got;
    }
    flow_await_acknowledgement(flow);
}

static bool keep_piece(struct flow *flow, size_t bytes)
{
    int64_t before = clock_now();

    for (size_t kept = 0; flow->file.fd >= 0 && kept < bytes;) {
        ssize_t put_bytes = write(flow->file.fd, flow->buffer + kept, bytes - kept);

        if (put_bytes > 0)
            kept += (size_t)put_bytes;
        else if (errno != EINTR) {
            flow_broke(flow, "writing the file", errno);
            return false;
        }
    }
    if (flow->file.fd >= 0)
        flow->file.disk_ns += clock_now() - before;
    return true;
}

static void receive_file(struct flow *flow)
{
    unsigned char byte = ACKNOWLEDGED;
    ssize_t got;

    while ((got = recv(flow->fd, flow->buffer, PIECE_BYTES, 0)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            flow_broke(flow, "recv", errno);
            return;
        }
        flow_took(flow, got);
        flow_moved(flow, flow->fd);
        if (!keep_piece(flow, (size_t)got))
            return;
        flow_count(flow, got);
    }
    if (send(flow->fd, &byte, 1, MSG_NOSIGNAL) != 1)
        flow_broke(flow, "send", errno);
    if (flow->file.fd >= 0) {
        int64_t before = clock_now();

        if (fdatasync(flow->file.fd) != 0)
            flow_broke(flow, "writing the file", errno);
        flow->file.sync_ns = clock_now() - before;
    }
}

int file_prepare(struct flow *flow)
{
    flow->buffer = malloc(PIECE_BYTES);
    if (flow->buffer == NULL)
        return ENOMEM;
    if (flow->sender)
        data_fill(flow->buffer, PIECE_BYTES);
    return 0;
}

void file_run(struct flow *flow)
{
    (flow->sender ? send_file : receive_file)(flow);
    sample_tcp(flow->fd, flow->multipath, &flow->totals);
    shutdown(flow->fd, SHUT_WR);
}
