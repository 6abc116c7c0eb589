/* On Windows the agent changes no host settings, so it has neither journal nor guard. */
#include "settings.h"

int setting_carry_out(const struct setting *setting, const char *value, char *text)
{
    (void)setting, (void)value, (void)text;
    return EOPNOTSUPP;
}

int settings_start(char *message, size_t room)
{
    snprintf(message, room, "%s", "");
    return 0;
}

int settings_restore(int *error, char *message, size_t room)
{
    snprintf(message, room, "%s", "");
    *error = 0;
    return 0;
}

int settings_set(const struct setting *wanted, const char *value, bool dry, char old[SETTING_TEXT], char now[SETTING_TEXT],
                 char *message, size_t room)
{
    (void)value, (void)dry, (void)old, (void)now;
    snprintf(message, room, "%s: on Windows rigctl changes no settings; Set-NetAdapterAdvancedProperty does", wanted->kind);
    return EOPNOTSUPP;
}
