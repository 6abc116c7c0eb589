/* The journal: a text file beside the agent's binary with the old value of each changed setting. The first line is
 * `rigctl-settings 1 BOOT-ID`; each other line is `set KIND NAME INTERFACE OLD`. */
#include "settings.h"

#include <libgen.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "clock.h"
#include "system.h"
#include "text.h"

#define HEADER "rigctl-settings 1 "
#define WAIT_NS (2 * SECOND) /* longest wait for a guard that is restoring settings, which takes milliseconds */
#define LINE_MAX_BYTES (4 * 3 * SETTING_TEXT)

static int journal = -1;

static bool find_folder(char path[PATH_MAX])
{
    ssize_t got = system_program(path, PATH_MAX - 64);

    if (got <= 0)
        return false;
    path[got] = '\0';
    dirname(path); /* in GNU, musl and FreeBSD dirname(3) shortens this string itself */
    return true;
}

static int find_path(char path[PATH_MAX])
{
    unsigned long long network;
    size_t used;

    if (!find_folder(path) || !system_network(&network))
        return errno != 0 ? errno : ENOENT;
    used = strlen(path);
    snprintf(path + used, PATH_MAX - used, "/settings-%llu", network);
    return 0;
}

static void sync_folder(void)
{
    char path[PATH_MAX];
    int fd = find_folder(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* Lock the journal. A guard that is restoring settings may hold the lock for up to WAIT_NS. */
static int lock(int fd)
{
    int64_t until = clock_now() + WAIT_NS;

    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK || clock_now() > until)
            return errno == EWOULDBLOCK ? EBUSY : errno;
        clock_sleep_until(clock_now() + 10 * MS);
    }
    return 0;
}

/* Open and lock the journal. If its last owner has removed the file meanwhile, make a new file, because nobody would find the old one. */
static int open_locked(const char *path)
{
    struct stat held;
    int error = 0;

    while (error == 0) {
        journal = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (journal < 0)
            return errno;
        error = lock(journal);
        if (error == 0 && fstat(journal, &held) != 0)
            error = errno;
        if (error == 0 && held.st_nlink > 0)
            return 0;
        system_close(&journal);
    }
    return error;
}

static int append(const char *text)
{
    size_t length = strlen(text);

    return write(journal, text, length) == (ssize_t)length ? 0 : errno != 0 ? errno : ENOSPC;
}

int journal_fd(void)
{
    return journal;
}

int journal_open(void)
{
    char path[PATH_MAX], boot[64], header[128];
    int error = find_path(path);

    if (journal >= 0 || error != 0)
        return error;
    error = open_locked(path);
    if (error != 0)
        return error;
    if (!system_boot_id(boot))
        error = EIO;
    if (error == 0) {
        snprintf(header, sizeof header, HEADER "%s\n", boot);
        errno = 0;
        error = ftruncate(journal, 0) != 0 ? errno : append(header);
    }
    if (error == 0 && fsync(journal) != 0)
        error = errno;
    if (error != 0)
        journal_remove();
    else
        sync_folder();
    return error;
}

int journal_add(const struct setting *setting)
{
    char line[LINE_MAX_BYTES], name[3 * SETTING_TEXT + 8], interface[3 * INTERFACE_ROOM], old[3 * SETTING_TEXT + 8];
    struct stat before;
    int error;

    if (fstat(journal, &before) != 0)
        return errno;
    percent_encode(setting->name, name, sizeof name);
    percent_encode(setting->interface, interface, sizeof interface);
    percent_encode(setting->old, old, sizeof old);
    snprintf(line, sizeof line, "set %s %s %s %s\n", setting->kind, name, interface, old);
    errno = 0;
    error = append(line);
    if (error == 0 && fsync(journal) != 0)
        error = errno;
    if (error != 0 && ftruncate(journal, before.st_size) != 0)
        return errno; /* a partial last line is skipped on reading, but would spoil the next line */
    return error;
}

void journal_remove(void)
{
    char path[PATH_MAX];

    if (journal < 0)
        return;
    if (find_path(path) == 0)
        unlink(path);
    system_close(&journal);
}

static bool parse_field(char **rest, char *decoded, size_t room)
{
    char *word = strsep(rest, " ");

    if (word == NULL || *word == '\0')
        return false;
    return percent_decode(strcmp(word, "-") == 0 ? "" : word, decoded, room);
}

static bool parse(char *line, struct setting *setting)
{
    char *rest = line, *verb = strsep(&rest, " ");

    memset(setting, 0, sizeof *setting);
    return strcmp(verb, "set") == 0 && parse_field(&rest, setting->kind, sizeof setting->kind) &&
           parse_field(&rest, setting->name, sizeof setting->name) && parse_field(&rest, setting->interface, sizeof setting->interface) &&
           parse_field(&rest, setting->old, sizeof setting->old) && rest == NULL;
}

int journal_read(int fd, struct setting *settings, int most)
{
    static char text[64 * LINE_MAX_BYTES];
    char boot[64], *rest = text, *line;
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    int count = 0;

    if (got < 0)
        return JOURNAL_DAMAGED;
    text[got] = '\0';
    line = strsep(&rest, "\n");
    if (got == 0)
        return 0; /* the earlier agent was killed before it wrote the first line, so it changed nothing */
    if (strncmp(line, HEADER, strlen(HEADER)) != 0)
        return rest == NULL ? 0 : JOURNAL_DAMAGED; /* the earlier agent may have been killed while it wrote the first line */
    if (system_boot_id(boot) && strcmp(line + strlen(HEADER), boot) != 0)
        return 0; /* the host was rebooted since, so none of its settings is changed any more */
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL && rest != NULL) {
        /* A last line without newline is skipped, because its setting was not changed yet. */
        if (count == most || !parse(line, &settings[count]))
            return JOURNAL_DAMAGED;
        count++;
    }
    return count;
}

int journal_take_over(struct setting *settings, int most)
{
    char path[PATH_MAX], aside[PATH_MAX + 16];
    struct stat held;
    int count;

    if (find_path(path) != 0)
        return 0;
    journal = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (journal < 0)
        return 0;
    if (lock(journal) != 0) {
        system_close(&journal);
        return JOURNAL_HELD;
    }
    if (fstat(journal, &held) != 0 || held.st_uid != geteuid() || (held.st_mode & 022) != 0)
        count = JOURNAL_DAMAGED; /* another user may have written the journal */
    else
        count = held.st_nlink == 0 ? 0 : journal_read(journal, settings, most);
    if (count < 0) {
        snprintf(aside, sizeof aside, "%s.damaged", path);
        rename(path, aside);
    }
    if (count <= 0) {
        if (count == 0 && held.st_nlink > 0)
            unlink(path);
        system_close(&journal);
    }
    return count;
}
