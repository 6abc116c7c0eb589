/* The journal: a text file beside the agent's binary that holds old values while settings are changed.
 *
 *     rigctl-settings 1 BOOT-ID
 *     set KIND NAME INTERFACE OLD
 */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "system.h"
#include "text.h"

#define HEADER "rigctl-settings 1 "
#define WAIT_NS (2 * SECOND) /* a guard at work needs milliseconds */
#define LINE_MAX_BYTES (4 * 3 * SETTING_TEXT)

static int journal = -1;

static bool unreserved(char byte)
{
    return byte > ' ' && byte < 0x7f && byte != '%' && byte != '-';
}

void percent_encode(const char *text, char *encoded, size_t room)
{
    size_t used = 0;

    for (; *text != '\0' && used + 4 < room; text++)
        used += (size_t)snprintf(encoded + used, room - used, unreserved(*text) ? "%c" : "%%%02X", (unsigned char)*text);
    /* A single - stands for nothing. */
    snprintf(encoded + used, room - used, "%s", used == 0 ? "-" : "");
}

bool percent_decode(const char *text, char *decoded, size_t room)
{
    size_t used = 0;

    for (; *text != '\0'; text++) {
        int byte = (unsigned char)*text;

        if (*text == '%') {
            byte = text_hex(text + 1);
            text += 2;
        }
        if (byte < ' ' || used + 1 >= room)
            return false;
        decoded[used++] = (char)byte;
    }
    decoded[used] = '\0';
    return true;
}

static bool folder(char path[PATH_MAX])
{
    ssize_t got = system_program(path, PATH_MAX - 64);

    if (got <= 0)
        return false;
    path[got] = '\0';
    dirname(path); /* GNU, musl and FreeBSD cut it in place */
    return true;
}

static int file_path(char path[PATH_MAX])
{
    unsigned long long network;
    size_t used;

    if (!folder(path) || !system_network(&network))
        return errno != 0 ? errno : ENOENT;
    used = strlen(path);
    snprintf(path + used, PATH_MAX - used, "/settings-%llu", network);
    return 0;
}

static void sync_folder(void)
{
    char path[PATH_MAX];
    int fd = folder(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* Take the lock; waits for who is restoring. */
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

/* Open and lock it. Who held it until now may have removed it: what has no name any more would be read by nobody. */
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
        close(journal);
        journal = -1;
    }
    return error;
}

static int put(const char *text)
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
    int error = file_path(path);

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
        error = ftruncate(journal, 0) != 0 ? errno : put(header);
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
    char line[LINE_MAX_BYTES], name[3 * SETTING_TEXT + 8], interface[64], old[3 * SETTING_TEXT + 8];
    struct stat before;
    int error;

    if (fstat(journal, &before) != 0)
        return errno;
    percent_encode(setting->name, name, sizeof name);
    percent_encode(setting->interface, interface, sizeof interface);
    percent_encode(setting->old, old, sizeof old);
    snprintf(line, sizeof line, "set %s %s %s %s\n", setting->kind, name, interface, old);
    errno = 0;
    error = put(line);
    if (error == 0 && fsync(journal) != 0)
        error = errno;
    if (error != 0 && ftruncate(journal, before.st_size) != 0)
        return errno; /* half a line at the end stands for nothing, until another follows it */
    return error;
}

void journal_remove(void)
{
    char path[PATH_MAX];

    if (journal < 0)
        return;
    if (file_path(path) == 0)
        unlink(path);
    close(journal);
    journal = -1;
}

static bool field(char **rest, char *decoded, size_t room)
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
    return strcmp(verb, "set") == 0 && field(&rest, setting->kind, sizeof setting->kind) &&
           field(&rest, setting->name, sizeof setting->name) && field(&rest, setting->interface, sizeof setting->interface) &&
           field(&rest, setting->old, sizeof setting->old) && rest == NULL;
}

int journal_read(int fd, struct setting *settings, int most)
{
    static char text[64 * LINE_MAX_BYTES];
    char boot[64], *rest = text, *line;
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    int count = 0;

    if (got < 0)
        return -1;
    text[got] = '\0';
    line = strsep(&rest, "\n");
    if (got == 0)
        return 0; /* made, and killed before its first line: nothing was changed yet */
    if (strncmp(line, HEADER, strlen(HEADER)) != 0)
        return rest == NULL ? 0 : -1; /* half a first line is as good as none */
    if (system_boot_id(boot) && strcmp(line + strlen(HEADER), boot) != 0)
        return 0; /* of another boot: its changes are gone */
    while (rest != NULL && (line = strsep(&rest, "\n")) != NULL && rest != NULL) {
        /* What is cut off at the end, without a newline, was never acted upon. */
        if (count == most || !parse(line, &settings[count]))
            return -1;
        count++;
    }
    return count;
}

int journal_leftover(struct setting *settings, int most)
{
    char path[PATH_MAX], aside[PATH_MAX + 16];
    struct stat held;
    int count;

    if (file_path(path) != 0)
        return 0;
    journal = open(path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (journal < 0)
        return 0;
    if (lock(journal) != 0) {
        close(journal);
        journal = -1;
        return -2;
    }
    if (fstat(journal, &held) != 0 || held.st_uid != geteuid() || (held.st_mode & 022) != 0)
        count = -1; /* others could have written it */
    else
        count = held.st_nlink == 0 ? 0 : journal_read(journal, settings, most);
    if (count < 0) {
        snprintf(aside, sizeof aside, "%s.damaged", path);
        rename(path, aside);
    }
    if (count <= 0) {
        if (count == 0 && held.st_nlink > 0)
            unlink(path);
        close(journal);
        journal = -1;
    }
    return count;
}
