/* Names that one process at a time can claim, as files in /tmp with a lock (flock(2)): FreeBSD has no abstract names of sockets.
 *
 * /tmp is open to all users, so anybody may put something under such a name before. The file is opened without following a link and
 * without waiting, as for a FIFO, and nothing is read from it or written to it. Whose file it is does not matter to flock(2), so that users
 * of one node share its lock. Tests compile this file on Linux too. */
#include "system.h"

#include <sys/file.h>
#include <sys/stat.h>

#define TRIES 8 /* times that a file may be removed between open(2) and flock(2) */

static bool is_still(int fd, const char *path)
{
    struct stat held, found;

    return fstat(fd, &held) == 0 && lstat(path, &found) == 0 && held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

int system_claim_file(const char *path)
{
    for (int i = 0; i < TRIES; i++) {
        int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
        struct stat held;

        if (fd < 0)
            return -1;
        if (fstat(fd, &held) != 0)
            return system_close_failed(fd);
        errno = EPERM;
        if (!S_ISREG(held.st_mode) || held.st_nlink > 1) /* a FIFO, a device, or another file under a second name */
            return system_close_failed(fd);
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            errno = errno == EWOULDBLOCK ? EADDRINUSE : errno;
            return system_close_failed(fd);
        }
        if (is_still(fd, path))
            return fd;
        close(fd); /* somebody has removed the file meanwhile: another process may lock its successor */
    }
    errno = EAGAIN;
    return -1;
}
