/* Changes a host setting (store the old value on disk, start the guard, write the new value, read it back), and restores it. */
#include "settings.h"

#define SETTINGS_MAX 64

static struct setting held[SETTINGS_MAX]; /* currently changed settings, with their old values */
static int held_count;

static void describe(const struct setting *setting, char *text, size_t room)
{
    snprintf(text, room, "%s%s%s%s%s", setting->kind, setting->name[0] != '\0' ? " " : "", setting->name,
             setting->interface[0] != '\0' ? " of " : "", setting->interface);
}

/* Write `value` and read it back. Unless `old` is NULL, the driver may round the value (setting_fits). A value that is already in effect is
 * not written: the driver refuses for a fixed offload, and `off` written to tso while tx is off would keep tso off when tx is on again. */
static int change(const struct setting *setting, const char *value, const char *old, char now[SETTING_TEXT], char *message, size_t room)
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
        failed = change(&held[i], held[i].old, NULL, now, said, sizeof said);
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
    /* The guard process, which would restore the settings, ends before the journal is removed: if the agent dies in between, everything is
     * restored already. If a value could not be restored, the journal keeps all its entries, so a later restore may write values again. */
    if (left == 0) {
        guard_dismiss();
        journal_remove();
    }
    return *error == 0 ? done : -1;
}

int settings_start(char *message, size_t room)
{
    int error, count = journal_take_over(held, SETTINGS_MAX);

    message[0] = '\0';
    if (count == JOURNAL_DAMAGED)
        snprintf(message, room, "the journal of an earlier agent was damaged; it is kept as settings-….damaged");
    if (count == JOURNAL_HELD)
        snprintf(message, room, "another agent holds this node's settings");
    if (count <= 0)
        return 0;
    held_count = count;
    settings_restore(&error, message, room);
    return count - held_count;
}

/* Return the setting as it was before its first change, or NULL if it is unchanged. */
static const struct setting *find_held(const struct setting *wanted)
{
    for (int i = 0; i < held_count; i++)
        if (strcmp(held[i].kind, wanted->kind) == 0 && strcmp(held[i].name, wanted->name) == 0 &&
            strcmp(held[i].interface, wanted->interface) == 0)
            return &held[i];
    return NULL;
}

/* Store the old value of a setting. The settings that change with it are stored first, so that they are restored last. */
static int keep_old_values(const struct setting *wanted, const char *old)
{
    struct setting all[SETTINGS_MAX];
    int count = setting_parts(wanted, old, all, SETTINGS_MAX - 1);
    int error = journal_open();

    all[count] = *wanted;
    snprintf(all[count].old, sizeof all[count].old, "%s", old);
    for (int i = 0; i <= count && error == 0; i++) {
        if (find_held(&all[i]) != NULL)
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
    if (error == 0 && find_held(wanted) == NULL && held_count == SETTINGS_MAX)
        error = ENOSPC;
    if (error != 0) {
        snprintf(message, room, "%s: %s%s", what, strerror(error), setting_reason);
        return error;
    }
    if (dry) {
        /* The system tells whether a sysctl can be written, as in a container, when its present value is written back. */
        error = strcmp(wanted->kind, "sysctl") == 0 ? setting_carry_out(wanted, old, NULL) : 0;
        if (error != 0)
            snprintf(message, room, "%s: %s%s", what, strerror(error), setting_reason);
        memcpy(now, old, SETTING_TEXT);
        return error;
    }
    if (find_held(wanted) == NULL)
        error = keep_old_values(wanted, old);
    if (error == 0)
        error = guard_start();
    if (error != 0) {
        snprintf(message, room, "%s: its old value could not be kept safe: %s", what, strerror(error));
        return error;
    }
    error = change(wanted, value, find_held(wanted)->old, now, message, room);
    if (error != 0) {
        char ignored[512];

        change(wanted, old, NULL, now, ignored, sizeof ignored);
    }
    return error;
}
