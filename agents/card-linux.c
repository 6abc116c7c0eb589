/* Card settings that SIOCETHTOOL sets (linux/ethtool.h), and the processors that handle received packets (RPS, /sys). */
#include "card.h"

#include <linux/ethtool.h>
#include <net/if.h>

#include "ethtool.h"
#include "text.h"

#define RING(field, most) ETHTOOL_GRINGPARAM, ETHTOOL_SRINGPARAM, offsetof(struct ethtool_ringparam, field), \
                          offsetof(struct ethtool_ringparam, most), false, NULL
#define CHANNEL(field, most) ETHTOOL_GCHANNELS, ETHTOOL_SCHANNELS, offsetof(struct ethtool_channels, field), \
                             offsetof(struct ethtool_channels, most), false, NULL
#define COALESCE(field) ETHTOOL_GCOALESCE, ETHTOOL_SCOALESCE, offsetof(struct ethtool_coalesce, field), 0
#define PAUSE(field) ETHTOOL_GPAUSEPARAM, ETHTOOL_SPAUSEPARAM, offsetof(struct ethtool_pauseparam, field), 0, true

static const struct number {
    const char *kind, *name;
    unsigned get, set;
    size_t at, most;   /* byte offsets of the value and its maximum (0: none) in the command's struct of 32-bit numbers */
    bool flag;         /* the value is on or off, not a number */
    const char *under; /* setting of the same kind that, if on, lets the driver choose this value; NULL: none */
} numbers[] = {
    {"rings", "rx", RING(rx_pending, rx_max_pending)},
    {"rings", "tx", RING(tx_pending, tx_max_pending)},
    {"channels", "rx", CHANNEL(rx_count, max_rx)},
    {"channels", "tx", CHANNEL(tx_count, max_tx)},
    {"channels", "combined", CHANNEL(combined_count, max_combined)},
    {"coalesce", "adaptive_rx", COALESCE(use_adaptive_rx_coalesce), true, NULL},
    {"coalesce", "adaptive_tx", COALESCE(use_adaptive_tx_coalesce), true, NULL},
    {"coalesce", "rx_usecs", COALESCE(rx_coalesce_usecs), false, "adaptive_rx"},
    {"coalesce", "rx_frames", COALESCE(rx_max_coalesced_frames), false, "adaptive_rx"},
    {"coalesce", "tx_usecs", COALESCE(tx_coalesce_usecs), false, "adaptive_tx"},
    {"coalesce", "tx_frames", COALESCE(tx_max_coalesced_frames), false, "adaptive_tx"},
    {"pause", "autoneg", PAUSE(autoneg), NULL},
    {"pause", "rx", PAUSE(rx_pause), "autoneg"},
    {"pause", "tx", PAUSE(tx_pause), "autoneg"},
};
#define NUMBERS (sizeof numbers / sizeof *numbers)

/* An ethtool struct as an array of numbers; struct ethtool_coalesce is the largest one in the table. */
typedef unsigned held_numbers[sizeof(struct ethtool_coalesce) / sizeof(unsigned)];

static const struct number *find_number(const struct setting *setting)
{
    for (size_t i = 0; i < NUMBERS; i++)
        if (strcmp(numbers[i].kind, setting->kind) == 0 && strcmp(numbers[i].name, setting->name) == 0)
            return &numbers[i];
    return NULL;
}

static int read_numbers(const char *interface, const struct number *number, held_numbers held)
{
    memset(held, 0, sizeof(held_numbers));
    held[0] = number->get;
    return ethtool_call(interface, held);
}

static bool parse_value(const struct number *number, const char *value, unsigned *parsed)
{
    const char *end;
    int64_t found = text_number(value, &end);

    if (number->flag)
        found = strcmp(value, "on") == 0 ? 1 : strcmp(value, "off") == 0 ? 0 : -1;
    else if (*end != '\0')
        found = -1;
    *parsed = (unsigned)found;
    return found >= 0 && found <= UINT32_MAX;
}

int card_number(const struct setting *setting, const char *value, char *text)
{
    const struct number *number = find_number(setting);
    held_numbers held;
    int error = number == NULL ? EINVAL : read_numbers(setting->interface, number, held);
    unsigned *at;

    if (error != 0)
        return error;
    at = &held[number->at / sizeof *held];
    if (value == NULL) {
        if (number->flag)
            snprintf(text, SETTING_TEXT, "%s", *at != 0 ? "on" : "off");
        else
            snprintf(text, SETTING_TEXT, "%u", *at);
        return 0;
    }
    held[0] = number->set;
    return parse_value(number, value, at) ? ethtool_call(setting->interface, held) : EINVAL;
}

int card_number_check(const struct setting *setting, const char *value)
{
    const struct number *wanted = find_number(setting);
    size_t used = (size_t)snprintf(setting_reason, sizeof setting_reason, "; %.32s was asked for", value);
    const char *between = ", the card takes";
    held_numbers held;
    unsigned asked;
    int error;

    if (wanted == NULL || !parse_value(wanted, value, &asked))
        return EINVAL;
    error = read_numbers(setting->interface, wanted, held);
    if (error == EOPNOTSUPP)
        snprintf(setting_reason + used, sizeof setting_reason - used, ", the card has no %s", setting->kind);
    for (size_t i = 0; i < NUMBERS && error == 0 && wanted->most != 0; i++) {
        if (numbers[i].set != wanted->set)
            continue;
        used += (size_t)snprintf(setting_reason + used, sizeof setting_reason - used, "%s %s up to %u", between, numbers[i].name,
                                 held[numbers[i].most / sizeof *held]);
        between = ",";
    }
    return error == 0 && wanted->most != 0 && asked > held[wanted->most / sizeof *held] ? EINVAL : error;
}

int card_parts(const struct setting *setting, const char *old, struct setting *parts, int most)
{
    struct setting part = *setting;
    int count = 0;

    if (strcmp(setting->kind, "channels") == 0 && most > 0) { /* removing a queue deletes its RPS mask */
        snprintf(part.kind, sizeof part.kind, "rps");
        part.name[0] = '\0';
        if (card_rps(&part, NULL, part.old) == 0 && strspn(part.old, "0,") != strlen(part.old))
            parts[count++] = part;
        return count;
    }
    for (size_t i = 0; i < NUMBERS && count < most && strcmp(old, "off") == 0; i++) {
        if (strcmp(numbers[i].kind, setting->kind) != 0 || numbers[i].under == NULL || strcmp(numbers[i].under, setting->name) != 0)
            continue;
        snprintf(part.name, sizeof part.name, "%s", numbers[i].name);
        if (card_number(&part, NULL, part.old) == 0)
            parts[count++] = part;
    }
    return count;
}

int card_rps(const struct setting *setting, const char *value, char *text)
{
    char path[96], mask[SETTING_TEXT];
    bool alike = true;
    int error = if_nametoindex(setting->interface) == 0 ? errno : 0, queue = 0;
    size_t used = 0, first = 0;

    for (; error == 0; queue++) {
        size_t length = value != NULL ? strcspn(value, ";") : 0;

        snprintf(path, sizeof path, "/sys/class/net/%s/queues/rx-%d/rps_cpus", setting->interface, queue);
        snprintf(mask, sizeof mask, "%.*s", (int)length, value != NULL ? value : "");
        error = setting_file(path, value != NULL ? mask : NULL, mask);
        if (error != 0 || value != NULL) {
            value += value != NULL && value[length] == ';' ? length + 1 : 0;
            continue;
        }
        first = queue == 0 ? strlen(mask) : first;
        alike = queue == 0 || (alike && strlen(mask) == first && strncmp(text, mask, first) == 0);
        used += (size_t)snprintf(text + used, SETTING_TEXT - used, "%s%s", queue > 0 ? ";" : "", mask);
        if (used >= SETTING_TEXT)
            error = EMSGSIZE;
    }
    if (error == ENOENT && queue > 1 && value == NULL && alike)
        text[first] = '\0';
    return error == ENOENT && queue > 1 ? 0 : error;
}
