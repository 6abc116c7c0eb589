/* On Windows the agent changes no host settings, so it has neither journal nor guard. A refusal names the command that changes a setting
 * (docs/decisions/0047-windows-cards-are-read.md). */
#include "settings.h"

#include "text.h"

#define ETHERNET_HEADER 14 /* *JumboPacket counts it, an MTU does not */

/* Settings of a card, each with the keyword of its driver (Microsoft, "Standardized INF Keywords for Network Devices"). */
static const struct keyword {
    const char *kind, *name; /* "": any name */
    const char *keyword;
    int added;      /* added to the requested number */
    bool is_switch; /* 0 or 1 instead of a number */
} keywords[] = {
    {"coalesce", "", "*InterruptModeration", 0, true},
    {"mtu", "", "*JumboPacket", ETHERNET_HEADER, false},
    {"channels", "", "*NumRssQueues", 0, false},
    {"rings", "rx", "*ReceiveBuffers", 0, false},
    {"rings", "tx", "*TransmitBuffers", 0, false},
};
#define KEYWORDS (sizeof keywords / sizeof *keywords)

static const struct keyword *find_keyword(const struct setting *setting)
{
    for (size_t i = 0; i < KEYWORDS; i++)
        if (strcmp(keywords[i].kind, setting->kind) == 0 &&
            (keywords[i].name[0] == '\0' || strcmp(keywords[i].name, setting->name) == 0))
            return &keywords[i];
    return NULL;
}

char setting_reason[256];

const struct setting_ways setting_ways_mtu = {.carry_out = NULL};
const struct setting_ways setting_ways_sysctl = {.carry_out = NULL};
const struct setting_ways setting_ways_offload = {.carry_out = NULL};
const struct setting_ways setting_ways_governor = {.carry_out = NULL};
const struct setting_ways setting_ways_card = {.carry_out = NULL};
const struct setting_ways setting_ways_eee = {.carry_out = NULL};
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
    const struct keyword *found = find_keyword(wanted);
    const char *end;
    int64_t number = text_number(value, &end);
    int used;

    (void)dry, (void)old, (void)now;
    used = snprintf(message, room, "%s%s%s: on Windows rigctl changes no settings", wanted->kind, wanted->name[0] != '\0' ? " " : "",
                    wanted->name);
    if (found == NULL)
        return EOPNOTSUPP;
    if (found->is_switch) /* a number of 0, or "off", lets the card interrupt at once */
        number = number != 0 && strcmp(value, "off") != 0;
    snprintf(message + used, room - (size_t)used,
             "; in PowerShell, as administrator: Set-NetAdapterAdvancedProperty -Name \"%s\" -RegistryKeyword \"%s\" -RegistryValue %lld",
             wanted->interface, found->keyword, (long long)number + found->added);
    return EOPNOTSUPP;
}
