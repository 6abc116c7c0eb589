/* Claims a file as the agent for FreeBSD does: `claim PATH [REMOVE]` prints "claimed" or the error, and holds the claim until its input ends.
 * With REMOVE, another process removes the file each time before the claim is complete (flock(2) is replaced). */
#include "../../agents/claim-freebsd.c"

#include <sys/syscall.h>

static const char *removed;

int flock(int fd, int how)
{
    if (removed != NULL)
        unlink(removed);
    return (int)syscall(SYS_flock, fd, how);
}

int main(int argc, char **argv)
{
    char byte;
    int fd;

    removed = argc > 2 ? argv[1] : NULL;
    fd = system_claim_file(argv[1]);
    puts(fd >= 0 ? "claimed" : errno == EADDRINUSE ? "taken" : strerror(errno));
    fflush(stdout);
    return fd >= 0 && read(0, &byte, 1) >= 0 ? 0 : 1;
}
