/* Energy-Efficient Ethernet (IEEE 802.3, 78): switched off, and on again with the link modes for which it was offered. Ethtool netlink is
 * used because SIOCETHTOOL has 32 link modes, none of them 2.5 or 5 Gbit/s, and because some drivers take nothing else. */
#include "card.h"

#include <linux/ethtool_netlink.h>

#include "ethtool.h"
#include "text.h"

#define WORDS_MAX 16   /* most words of a set of link modes; Linux 6.18 has 4 */
#define OLD_MODES 32   /* link modes that a kernel with the old struct ethtool_eee knows */
#define UNKNOWN "; the driver does not tell whether it uses Energy-Efficient Ethernet, turn it off at the other end of the cable"

struct eee {
    bool known, enabled;
    uint32_t size, words; /* of the set of link modes: bits, and 32-bit words */
    uint32_t modes[WORDS_MAX];
};

static void take_eee(struct rtattr *first, int length, void *into)
{
    struct eee *eee = into;
    struct rtattr *enabled = netlink_attribute(first, length, ETHTOOL_A_EEE_ENABLED, 1);
    struct rtattr *modes = netlink_attribute(first, length, ETHTOOL_A_EEE_MODES_OURS, 0), *size, *value;

    if (enabled == NULL || modes == NULL)
        return;
    size = netlink_attribute(RTA_DATA(modes), (int)RTA_PAYLOAD(modes), ETHTOOL_A_BITSET_SIZE, sizeof eee->size);
    value = netlink_attribute(RTA_DATA(modes), (int)RTA_PAYLOAD(modes), ETHTOOL_A_BITSET_VALUE, sizeof *eee->modes);
    if (size == NULL || value == NULL || RTA_PAYLOAD(value) > sizeof eee->modes)
        return;
    memcpy(&eee->size, RTA_DATA(size), sizeof eee->size);
    memcpy(eee->modes, RTA_DATA(value), RTA_PAYLOAD(value));
    eee->words = (uint32_t)(RTA_PAYLOAD(value) / sizeof *eee->modes);
    eee->enabled = *(unsigned char *)RTA_DATA(enabled) != 0;
    eee->known = true;
}

/* Tell whether the kernel's set of link modes lacks that of the present link, so that it could not put back what was offered. */
static bool lacks_mode_of_link(const char *interface, const struct eee *eee)
{
    char path[96], text[16];
    const char *end;
    int64_t speed;

    snprintf(path, sizeof path, "/sys/class/net/%s/speed", interface);
    text_read(path, text, sizeof text);
    speed = text_number(text, &end);
    return eee->size <= OLD_MODES && (speed == 2500 || speed == 5000);
}

static int read_eee(const char *interface, struct eee *eee)
{
    struct netlink_request request;
    int error = ethtool_begin(&request, ETHTOOL_MSG_EEE_GET, ETHTOOL_A_EEE_HEADER, interface, ETHTOOL_FLAG_COMPACT_BITSETS);

    memset(eee, 0, sizeof *eee);
    if (error == 0)
        error = ethtool_ask(&request, take_eee, eee);
    if (error == 0 && !eee->known)
        error = EOPNOTSUPP;
    if (error == EOPNOTSUPP || error == EPROTONOSUPPORT) {
        snprintf(setting_reason, sizeof setting_reason, UNKNOWN);
    } else if (error == 0 && lacks_mode_of_link(interface, eee)) {
        error = EOPNOTSUPP;
        snprintf(setting_reason, sizeof setting_reason, "; this kernel does not tell it for 2.5 and 5 Gbit/s, turn it off at the other end");
    }
    return error;
}

/* Read `on:` and the words of link modes in hexadecimal, separated by commas, the highest first. */
static bool parse_modes(const char *text, struct eee *eee)
{
    if (strncmp(text, "on:", 3) != 0)
        return false;
    for (text += 2; *text != '\0' && eee->words < WORDS_MAX; eee->words++) {
        memmove(eee->modes + 1, eee->modes, (WORDS_MAX - 1) * sizeof *eee->modes);
        eee->modes[0] = 0;
        for (text++; text_hex_digit(*text) >= 0; text++)
            eee->modes[0] = eee->modes[0] << 4 | (uint32_t)text_hex_digit(*text);
        if (*text != ',' && *text != '\0')
            return false;
    }
    return *text == '\0';
}

static int write_eee(const char *interface, const struct eee *wanted)
{
    struct netlink_request request;
    uint8_t enabled = wanted->enabled;
    uint32_t size = wanted->words * 32;
    int error = ethtool_begin(&request, ETHTOOL_MSG_EEE_SET, ETHTOOL_A_EEE_HEADER, interface, 0);
    struct rtattr *modes;

    if (error != 0)
        return error;
    netlink_add(&request, ETHTOOL_A_EEE_ENABLED, &enabled, sizeof enabled);
    if (wanted->words > 0) {
        modes = netlink_open_nest(&request, ETHTOOL_A_EEE_MODES_OURS);
        netlink_add(&request, ETHTOOL_A_BITSET_NOMASK, "", 0);
        netlink_add(&request, ETHTOOL_A_BITSET_SIZE, &size, sizeof size);
        netlink_add(&request, ETHTOOL_A_BITSET_VALUE, wanted->modes, wanted->words * sizeof *wanted->modes);
        netlink_close_nest(&request, modes);
    }
    return ethtool_order(&request);
}

int card_eee(const struct setting *setting, const char *value, char *text)
{
    struct eee eee = {.enabled = true};
    size_t used;
    int error;

    if (value != NULL) {
        eee.enabled = strcmp(value, "off") != 0;
        return eee.enabled && !parse_modes(value, &eee) ? EINVAL : write_eee(setting->interface, &eee);
    }
    error = read_eee(setting->interface, &eee);
    if (error != 0)
        return error;
    used = (size_t)snprintf(text, SETTING_TEXT, eee.enabled ? "on" : "off");
    for (uint32_t i = eee.words; i > 0 && eee.enabled; i--)
        used += (size_t)snprintf(text + used, SETTING_TEXT - used, "%c%x", i == eee.words ? ':' : ',', (unsigned)eee.modes[i - 1]);
    return 0;
}
