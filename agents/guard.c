/* The guard: a child process that restores the agent's host settings if the agent ends without dismissing it. */
#include "settings.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "system.h"

#define DESCRIPTORS_MAX 65536
#define SETTINGS_MAX 64

static pid_t guard = -1;
static int lifeline = -1;

/* Close all descriptors except `one` and `other`: an SSH channel ends only when all processes have closed its descriptors. */
static void close_all_but(int one, int other)
{
    struct rlimit most;
    bool small = getrlimit(RLIMIT_NOFILE, &most) == 0 && most.rlim_cur < DESCRIPTORS_MAX;

    for (int fd = 0; fd < (small ? (int)most.rlim_cur : DESCRIPTORS_MAX); fd++)
        if (fd != one && fd != other)
            close(fd);
}

static _Noreturn void watch(int end, int journal)
{
    static struct setting settings[SETTINGS_MAX];
    char word, now[SETTING_TEXT];
    ssize_t got;
    int count;
    bool whole = true;

    system_name("rigctl-guard");
    setsid();
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    close_all_but(end, journal);
    do
        got = read(end, &word, 1);
    while (got < 0 && errno == EINTR);
    if (got > 0)
        _exit(0); /* the agent dismissed the guard: it has restored everything */
    count = journal_read(journal, settings, SETTINGS_MAX);
    for (int i = count - 1; i >= 0; i--)
        if (setting_carry_out(&settings[i], NULL, now) != 0 || strcmp(now, settings[i].old) != 0) /* see change(), settings.c */
            whole = setting_carry_out(&settings[i], settings[i].old, NULL) == 0 && whole;
    if (count >= 0 && whole)
        journal_remove();
    _exit(0);
}

int guard_start(void)
{
    int ends[2];

    if (guard > 0 && waitpid(guard, NULL, WNOHANG) == 0)
        return 0;
    guard_dismiss(); /* forget a guard whose process was killed */
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    guard = fork();
    if (guard == 0) {
        close(ends[1]);
        watch(ends[0], journal_fd());
    }
    close(ends[0]);
    if (guard < 0) {
        close(ends[1]);
        return errno;
    }
    lifeline = ends[1];
    return 0;
}

void guard_dismiss(void)
{
    ssize_t told = 0;

    if (lifeline >= 0) {
        told = write(lifeline, "q", 1);
        system_close(&lifeline);
    }
    if (guard > 0 && told >= 0)
        while (waitpid(guard, NULL, 0) < 0 && errno == EINTR)
            ;
    else if (guard > 0)
        waitpid(guard, NULL, WNOHANG);
    guard = -1;
}
