/* Reading a file into a connection and a connection into a file, in pieces of 64 KiB, by read(2) and write(2): what an application
 * does that does not know better. The sender's time ends with the receiver's word that it has written all of it; what its disk takes
 * after that to have it safe is measured by itself.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "clock.h"
#include "messages.h"

#define PIECE_BYTES (64 << 10)
#define FILL_BYTES (1 << 20)
#define ACKNOWLEDGED 0x06

int file_open(const char *folder)
{
    struct statfs system;
    char name[300];
    int fd;

    if (statfs(folder, &system) != 0)
        return -1;
    if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
        errno = EINVAL;
        return -1;
    }
    fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
        return fd;
    snprintf(name, sizeof name, "%s/.rigctl-XXXXXX", folder);
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

int file_fill(int fd, int64_t size, const _Atomic bool *stop)
{
    unsigned char *data = malloc(FILL_BYTES);
    int error = data == NULL ? ENOMEM : 0;

    if (error == 0)
        flow_fill(data, FILL_BYTES);
    for (int64_t left = size; left > 0 && error == 0 && !atomic_load(stop);) {
        ssize_t put = write(fd, data, (size_t)(left < FILL_BYTES ? left : FILL_BYTES));

        if (put < 0 && errno != EINTR)
            error = errno;
        else if (put > 0)
            left -= put;
    }
    free(data);
    if (error == 0 && !atomic_load(stop) && fdatasync(fd) != 0)
        error = errno;
    /* Else it would be read out of memory. */
    if (error == 0)
        error = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (error == 0 && lseek(fd, 0, SEEK_SET) != 0)
        error = errno;
    return error;
}

static void fail(struct flow *flow, const char *where, int error)
{
    if (atomic_load(&flow->stopping))
        return;
    flow->error = error;
    flow->where = where;
}

static bool send_piece(struct flow *flow, size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        ssize_t put = send(flow->fd, flow->buffer + sent, bytes - sent, MSG_NOSIGNAL);

        if (put > 0)
            sent += (size_t)put;
        else if (errno != EINTR) {
            fail(flow, "send", errno);
            return false;
        }
    }
    atomic_fetch_add_explicit(&flow->bytes, (int64_t)bytes, memory_order_relaxed);
    return true;
}

/* The next piece of what is to be sent, at most `left` bytes, out of the file or out of memory. Returns how many; -1 where it broke. */
static ssize_t next_piece(struct flow *flow, int64_t left)
{
    size_t wanted = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    int64_t before = clock_now();
    ssize_t got;

    if (flow->file_fd < 0)
        return (ssize_t)wanted;
    got = read(flow->file_fd, flow->buffer, wanted);
    flow->disk_ns += clock_now() - before;
    if (got <= 0)
        fail(flow, "reading the file", got == 0 ? EIO : errno);
    return got > 0 ? got : -1;
}

static void put(struct flow *flow)
{
    unsigned char byte = 0;
    struct pollfd readable = {.fd = flow->fd, .events = POLLIN};
    int64_t left = flow->message_bytes;

    flow->first_byte_ns = clock_now();
    while (left > 0 && clock_now() < flow->end_ns && !atomic_load(&flow->stopping)) {
        ssize_t got = next_piece(flow, left);

        if (got < 0 || !send_piece(flow, (size_t)got))
            return;
        left -= got;
    }
    shutdown(flow->fd, SHUT_WR);
    if (poll(&readable, 1, DRAIN_S * 1000) == 1 && recv(flow->fd, &byte, 1, 0) == 1 && byte == ACKNOWLEDGED)
        flow->last_byte_ns = clock_now();
    else
        fail(flow, "waiting for the receiver's acknowledgement", ETIMEDOUT);
}

static bool keep_piece(struct flow *flow, size_t bytes)
{
    int64_t before = clock_now();

    for (size_t kept = 0; flow->file_fd >= 0 && kept < bytes;) {
        ssize_t put_bytes = write(flow->file_fd, flow->buffer + kept, bytes - kept);

        if (put_bytes > 0)
            kept += (size_t)put_bytes;
        else if (errno != EINTR) {
            fail(flow, "writing the file", errno);
            return false;
        }
    }
    if (flow->file_fd >= 0)
        flow->disk_ns += clock_now() - before;
    return true;
}

static void get(struct flow *flow)
{
    unsigned char byte = ACKNOWLEDGED;
    ssize_t got;

    while ((got = recv(flow->fd, flow->buffer, PIECE_BYTES, 0)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            fail(flow, "recv", errno);
            return;
        }
        flow_took(flow, got);
        if (!keep_piece(flow, (size_t)got))
            return;
        atomic_fetch_add_explicit(&flow->bytes, got, memory_order_relaxed);
    }
    if (send(flow->fd, &byte, 1, MSG_NOSIGNAL) != 1)
        fail(flow, "send", errno);
    if (flow->file_fd >= 0) {
        int64_t before = clock_now();

        if (fdatasync(flow->file_fd) != 0)
            fail(flow, "writing the file", errno);
        flow->sync_ns = clock_now() - before;
    }
}

int file_prepare(struct flow *flow)
{
    flow->buffer = malloc(PIECE_BYTES);
    if (flow->buffer == NULL)
        return ENOMEM;
    flow_fill(flow->buffer, PIECE_BYTES);
    return 0;
}

void file_run(struct flow *flow)
{
    if (flow->sender)
        clock_sleep_until(flow->at_ns);
    (flow->sender ? put : get)(flow);
    sample_tcp(flow->fd, &flow->totals);
    if (flow->last_byte_ns == 0)
        flow->first_byte_ns = 0;
    shutdown(flow->fd, SHUT_WR);
}
