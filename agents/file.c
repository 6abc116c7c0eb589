/* File transfer: disk → network → disk, like an FTP put, in pieces of 64 KiB by read(2) and write(2). The receiver acknowledges the
 * file after its last write(2), which ends the sender's time. The receiver's fdatasync(2) is timed separately. */
#include "clock.h"
#include "flow.h"
#include "system.h"

#define FILE_MAX (INT64_C(1) << 40)
#define PIECE_BYTES (64 << 10)

#if !defined(_WIN32)
int file_open(const char *folder, bool sender)
{
    char name[300];
    int fd, memory = system_in_memory(folder);

    (void)sender;
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
        ssize_t put = write(fd, data_bytes, (size_t)(left < DATA_BYTES ? left : DATA_BYTES));

        if (put < 0 && errno != EINTR)
            error = errno;
        else if (put > 0)
            left -= put;
    }
    if (error == 0 && !atomic_load(stop) && fdatasync(fd) != 0)
        error = errno;
    /* Drop the file from the page cache, so that the sender reads from the disk. */
    if (error == 0)
        error = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (error == 0 && lseek(fd, 0, SEEK_SET) != 0)
        error = errno;
    return error;
}
#endif

/* Read the next piece to send, at most `left` bytes, into the buffer. Returns its length, or -1 if the flow failed. */
static ssize_t read_piece(struct flow *flow, int64_t left)
{
    size_t wanted = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    int64_t before = clock_now();
    ssize_t got;

    if (flow->file.fd < 0)
        return (ssize_t)wanted;
    got = read(flow->file.fd, flow->buffer, PIECE_BYTES);
    flow->file.disk_ns += clock_now() - before;
    if (got <= 0)
        flow_fail_unless_stopping(flow, "reading the file", got == 0 ? EIO : errno);
    return got > (ssize_t)wanted ? (ssize_t)wanted : got > 0 ? got : -1;
}

static void file_send(struct flow *flow)
{
    int64_t left = flow->request->size, now = flow->first_byte_ns = clock_now();

    while (left > 0 && now < flow->start->end_ns && !flow_is_stopping(flow)) {
        ssize_t got = read_piece(flow, left);

        if (got < 0 || !flow_send(flow, (size_t)got))
            return;
        left -= got;
        now = clock_now();
        flow_count(flow, flow->fd, now, got);
    }
    flow_await_acknowledgement(flow);
}

static bool write_piece(struct flow *flow, size_t bytes)
{
    int64_t before = clock_now();

    for (size_t kept = 0; kept < bytes;) {
        ssize_t put = write(flow->file.fd, flow->buffer + kept, bytes - kept);

        if (put > 0) {
            kept += (size_t)put;
        } else if (errno != EINTR) {
            flow_fail_unless_stopping(flow, "writing the file", errno);
            return false;
        }
    }
    flow->file.disk_ns += clock_now() - before;
    return true;
}

static void file_receive(struct flow *flow)
{
    bool disk = flow->file.fd >= 0;
    int64_t before;

    if (!flow_receive(flow, PIECE_BYTES, disk ? write_piece : NULL))
        return;
    flow_acknowledge(flow);
    if (!disk)
        return;
    before = clock_now();
    if (fdatasync(flow->file.fd) != 0)
        flow_fail_unless_stopping(flow, "writing the file", errno);
    flow->file.sync_ns = clock_now() - before;
}

static int file_prepare(struct flow *flow)
{
    return flow_buffer(flow, PIECE_BYTES);
}

const struct work file_work = {"file", "tcp", NULL, file_prepare, file_send, file_receive, flow_end, 1, FILE_MAX,
                               .messages = true, .disk = true, .bins = true};
