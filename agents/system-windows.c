/* The functions of system.h on Windows (docs/reference/windows.md). */
#include "system.h"

#include "probe.h"

#define SCRATCH_BYTES (256 << 10)
#define PROBING 3 /* IP_PMTUDISC_PROBE: never fragment, whatever MTU is known for the path (Windows 10 1803) */

static int signal_fd = -1;

/* Report Ctrl-C or the end of the console to the main loop. Windows calls this in a thread of its own, and may end the process after it. */
static BOOL WINAPI pass_on(DWORD event)
{
    char byte = (char)event;

    write(signal_fd, &byte, 1);
    Sleep(event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT ? 0 : 1000);
    return TRUE;
}

int system_signals(const sigset_t *signals)
{
    (void)signals;
    signal_fd = eventfd(0, 0);
    return signal_fd < 0 || !SetConsoleCtrlHandler(pass_on, TRUE) ? -1 : signal_fd;
}

void system_wake_exactly(void)
{
}

void system_name(const char *name)
{
    (void)name;
}

/* Winsock cannot discard, so the bytes are copied to a buffer that nobody reads. */
ssize_t system_discard(int fd, size_t bytes)
{
    static _Thread_local char scratch[SCRATCH_BYTES];

    return recv(fd, scratch, bytes < sizeof scratch ? bytes : sizeof scratch, 0);
}

int system_pace(int fd, int64_t bits_per_s, int unsent)
{
    (void)fd, (void)bits_per_s, (void)unsent;
    return EOPNOTSUPP;
}

void system_clamp_window(int fd, int bytes)
{
    (void)fd, (void)bytes;
}

/* The name is a mutex that the main thread owns. Windows releases the mutex when the agent ends or is killed. */
int system_claim(const char *name)
{
    char path[192];
    wchar_t wide[192];
    HANDLE mutex;
    DWORD got;

    errno = EINVAL;
    if (strchr(name, ' ') != NULL) /* a name with a blank only shows the holder (lock.c); Windows has no list of names */
        return -1;
    snprintf(path, sizeof path, "Global\\%s", name);
    for (char *at = path + strlen("Global\\"); *at != '\0'; at++)
        if (*at == '\\')
            *at = '_';
    if (!posix_wide(path, wide, 192))
        return -1;
    mutex = CreateMutexW(NULL, FALSE, wide);
    got = mutex != NULL ? WaitForSingleObject(mutex, 0) : WAIT_FAILED;
    if (got == WAIT_OBJECT_0 || got == WAIT_ABANDONED)
        return (int)(intptr_t)mutex;
    posix_fail();
    if (got == WAIT_TIMEOUT || errno == EACCES) /* another user's mutex cannot be opened */
        errno = EADDRINUSE;
    if (mutex != NULL)
        CloseHandle(mutex);
    return -1;
}

int system_in_memory(const char *folder)
{
    wchar_t wide[MAX_PATH], volume[MAX_PATH];

    if (!posix_wide(folder, wide, MAX_PATH) || !GetVolumePathNameW(wide, volume, MAX_PATH))
        return posix_fail();
    return GetDriveTypeW(volume) == DRIVE_RAMDISK;
}

int probe_forbid_fragments(int fd, int family)
{
    int mode = PROBING, on = 1, level = family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;

    if (setsockopt(fd, level, IP_MTU_DISCOVER, &mode, sizeof mode) == 0) /* IPV6_MTU_DISCOVER has the same number */
        return 0;
    return setsockopt(fd, level, family == AF_INET6 ? IPV6_DONTFRAG : IP_DONTFRAGMENT, &on, sizeof on);
}

/* Windows does not report type, MTU and sender of ICMP errors to UDP sockets. */
bool probe_error_next(int fd, struct probe_error *found)
{
    (void)fd, (void)found;
    return false;
}
