/* Files on Windows, which deletes them once they are closed. A sender reads from the disk, not from memory (FILE_FLAG_NO_BUFFERING). */
#include "flow.h"
#include "system.h"

#define SECTOR_BYTES 4096 /* unbuffered reads and writes need sizes and addresses that are multiples of a sector */

int file_open(const char *folder, bool sender)
{
    static LONG count;
    char name[320];
    wchar_t wide[MAX_PATH];
    HANDLE file;
    int memory = system_in_memory(folder);

    if (memory > 0)
        errno = EINVAL;
    if (memory != 0)
        return -1;
    snprintf(name, sizeof name, "%s/.rigctl-%d-%ld.tmp", folder, getpid(), (long)InterlockedIncrement(&count));
    if (!posix_wide(name, wide, MAX_PATH))
        return -1;
    file = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE, 0, NULL, CREATE_NEW,
                       FILE_FLAG_DELETE_ON_CLOSE | FILE_FLAG_SEQUENTIAL_SCAN | (sender ? FILE_FLAG_NO_BUFFERING : 0), NULL);
    return file != INVALID_HANDLE_VALUE ? (int)(intptr_t)file : posix_fail();
}

int file_fill(int fd, int64_t size, const _Atomic bool *stop)
{
    LARGE_INTEGER begin = {0};

    for (int64_t left = size; left > 0 && !atomic_load(stop);) {
        int64_t whole = (left + SECTOR_BYTES - 1) / SECTOR_BYTES * SECTOR_BYTES; /* the last write may exceed `size` */
        ssize_t put = write(fd, data_bytes, (size_t)(whole < DATA_BYTES ? whole : DATA_BYTES));

        if (put <= 0)
            return put < 0 ? errno : ENOSPC;
        left -= put;
    }
    if (!atomic_load(stop) && fdatasync(fd) != 0)
        return errno;
    return SetFilePointerEx(posix_handle(fd), begin, NULL, FILE_BEGIN) ? 0 : EIO;
}
