/* On Windows the agent changes no host settings, so it has neither journal nor guard. */
#include "settings.h"

char setting_reason[256];

const struct setting_ways setting_ways_mtu = {.carry_out = NULL};
const struct setting_ways setting_ways_sysctl = {.carry_out = NULL};
const struct setting_ways setting_ways_offload = {.carry_out = NULL};
const struct setting_ways setting_ways_governor = {.carry_out = NULL};
const struct setting_ways setting_ways_card = {.carry_out = NULL};
const struct setting_ways setting_ways_qdisc = {.carry_out = NULL};
const struct setting_ways setting_ways_rps = {.carry_out = NULL};

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
