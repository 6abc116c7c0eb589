/* Host settings, one after the other: old value to disk, guard, new value, read back. And all the way back. */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <net/if.h>
#include <unistd.h>

#include "text.h"

#define SETTINGS_MAX 64

static struct setting held[SETTINGS_MAX];
static int held_count, restored;
static char unrestored[512];
char setting_reason[256];

static void describe(const struct setting *setting, char *text, size_t room)
{
    if (setting->interface[0] == '\0')
        snprintf(text, room, "%s%s%s", setting->kind, setting->name[0] != '\0' ? " " : "", setting->name);
    else
        snprintf(text, room, "%s%s%s of %s", setting->kind, setting->name[0] != '\0' ? " " : "", setting->name, setting->interface);
}

static bool same(const struct setting *one, const struct setting *other)
{
    return strcmp(one->kind, other->kind) == 0 && strcmp(one->name, other->name) == 0 &&
           strcmp(one->interface, other->interface) == 0;
}

/* Write and read back. What is so already is not written: a fixed offload refuses even that, and one that another
   switched off with itself (tso without tx) comes back with that one only while the kernel knows it as wanted.
   `old`: what is rounded has to differ from it; NULL: it has to be `value` to the letter. */
static int put(const struct setting *setting, const char *value, const char *old, char now[SETTING_TEXT], char *message, size_t room)
{
    char what[320];
    int error;

    if (setting_carry_out(setting, NULL, now) == 0 && strcmp(now, value) == 0)
        return 0;
    error = setting_carry_out(setting, value, NULL);
    describe(setting, what, sizeof what);
    if (error == 0)
        error = setting_carry_out(setting, NULL, now);
    if (error != 0) {
        snprintf(message, room, "%s: %s%s", what, strerror(error), setting_reason);
    } else if (old != NULL ? !setting_fits(setting, value, old, now) : strcmp(now, value) != 0) {
        snprintf(message, room, "%s: %.100s was set, %.100s is read back", what, value, now);
        error = EINVAL;
    }
    return error;
}

int settings_restore(int *error, char *message, size_t room)
{
    char now[SETTING_TEXT], said[512];
    int left = 0, done = 0;

    *error = 0;
    for (int i = held_count - 1; i >= 0; i--) {
        int failed;

        setting_reason[0] = '\0';
        failed = put(&held[i], held[i].old, NULL, now, said, sizeof said);
        done += failed == 0;
        if (failed == 0) {
            held[i].kind[0] = '\0';
        } else if (*error == 0) {
            *error = failed;
            snprintf(message, room, "%s", said);
        }
    }
    for (int i = 0; i < held_count; i++)
        if (held[i].kind[0] != '\0')
            held[left++] = held[i];
    held_count = left;
    /* First the word to the guard, then the journal: between the two everything is back already.
       What could not be put back stays in the journal, with the rest: an old value can be written twice. */
    if (left == 0) {
        guard_dismiss();
        journal_remove();
    }
    return *error == 0 ? done : -1;
}

void settings_start(void)
{
    int error, count = journal_leftover(held, SETTINGS_MAX);

    if (count == -1)
        snprintf(unrestored, sizeof unrestored, "the journal of an earlier agent was damaged; it is kept as settings-….damaged");
    if (count == -2)
        snprintf(unrestored, sizeof unrestored, "another agent holds this node's settings");
    if (count <= 0)
        return;
    held_count = count;
    settings_restore(&error, unrestored, sizeof unrestored);
    restored = count - held_count;
}

int settings_restored(void)
{
    return restored;
}

const char *settings_unrestored(void)
{
    return unrestored[0] != '\0' ? unrestored : NULL;
}

/* As it was before it was changed for the first time; NULL: it is as it was. */
static const struct setting *held_as(const struct setting *wanted)
{
    for (int i = 0; i < held_count; i++)
        if (same(&held[i], wanted))
            return &held[i];
    return NULL;
}

/* Keep the old value of one, and before it, so that they are put back after it, those of its parts. */
static int keep(const struct setting *wanted, const char *old)
{
    struct setting all[SETTINGS_MAX];
    int count = setting_parts(wanted, old, all, SETTINGS_MAX - 1);
    int error = journal_open();

    all[count] = *wanted;
    snprintf(all[count].old, sizeof all[count].old, "%s", old);
    for (int i = 0; i <= count && error == 0; i++) {
        if (held_as(&all[i]) != NULL)
            continue;
        error = held_count == SETTINGS_MAX ? ENOSPC : journal_add(&all[i]);
        if (error == 0)
            held[held_count++] = all[i];
    }
    return error;
}

int settings_set(const struct setting *wanted, const char *value, bool dry, char old[SETTING_TEXT], char now[SETTING_TEXT],
                 char *message, size_t room)
{
    char what[320];
    int error;

    setting_reason[0] = '\0';
    error = setting_check(wanted, value);
    if (error == 0)
        error = setting_carry_out(wanted, NULL, old);
    describe(wanted, what, sizeof what);
    if (error == 0 && held_as(wanted) == NULL && held_count == SETTINGS_MAX)
        error = ENOSPC;
    if (error != 0) {
        snprintf(message, room, "%s: %s%s", what, strerror(error), setting_reason);
        return error;
    }
    if (dry) {
        memcpy(now, old, SETTING_TEXT);
        return 0;
    }
    if (held_as(wanted) == NULL)
        error = keep(wanted, old);
    if (error == 0)
        error = guard_start();
    if (error != 0) {
        snprintf(message, room, "%s: its old value could not be kept safe: %s", what, strerror(error));
        return error;
    }
    error = put(wanted, value, held_as(wanted)->old, now, message, room);
    if (error != 0) {
        char ignored[512];

        put(wanted, old, NULL, now, ignored, sizeof ignored);
    }
    return error;
}

int setting_interface(const char *interface, unsigned long request, struct ifreq *ask)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = 0;

    if (fd < 0)
        return errno;
    snprintf(ask->ifr_name, sizeof ask->ifr_name, "%s", interface);
    if (ioctl(fd, request, ask) < 0) /* above 0: ETHTOOL_SFEATURES has noted a wish */
        error = errno;
    close(fd);
    return error;
}

int setting_mtu(const struct setting *setting, const char *value, char *text)
{
    struct ifreq ask = {0};
    const char *end;
    int error;

    if (value != NULL) {
        ask.ifr_mtu = (int)text_number(value, &end);
        return setting_interface(setting->interface, SIOCSIFMTU, &ask);
    }
    error = setting_interface(setting->interface, SIOCGIFMTU, &ask);
    snprintf(text, SETTING_TEXT, "%d", ask.ifr_mtu);
    return error;
}
