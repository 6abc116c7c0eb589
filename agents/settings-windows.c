/* On Windows the agent changes no host settings, so it has neither journal nor guard. */
#include "settings.h"

const struct setting_ways setting_ways_mtu, setting_ways_sysctl, setting_ways_offload, setting_ways_governor, setting_ways_card,
    setting_ways_qdisc, setting_ways_rps;

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
