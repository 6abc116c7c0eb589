/* The kinds of host settings on Linux: netdevice(7), /proc/sys, SIOCETHTOOL (linux/ethtool.h), cpufreq in /sys; cards: card-linux.c. */
#include "settings.h"

#include <linux/ethtool.h>

#include "card.h"
#include "ethtool.h"

#define FEATURES_MAX 256 /* most features of a card; Linux 6.18 has 64 */
#define WORDS_MAX (FEATURES_MAX / 32)

static const struct offload {
    const char *name;
    unsigned get, set;
    unsigned flag;     /* bit of this offload in the data of the get and set commands */
    const char *parts; /* prefix of the names of the features that this offload switches; NULL: a single feature */
} offloads[] = {
    {"tso", ETHTOOL_GTSO, ETHTOOL_STSO, 1, "tx-tcp"},
    {"gso", ETHTOOL_GGSO, ETHTOOL_SGSO, 1, NULL},
    {"gro", ETHTOOL_GGRO, ETHTOOL_SGRO, 1, NULL},
    {"rx", ETHTOOL_GRXCSUM, ETHTOOL_SRXCSUM, 1, NULL},
    {"tx", ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM, 1, "tx-checksum-"},
    {"sg", ETHTOOL_GSG, ETHTOOL_SSG, 1, "tx-scatter-gather"},
    {"lro", ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_LRO, NULL},
};
/* Features of the interface that was queried last: their names as in `ethtool -k`, and which are available, wanted and active. */
static char names_room[sizeof(struct ethtool_gstrings) + FEATURES_MAX * ETH_GSTRING_LEN] __attribute__((aligned(8)));
static char features_room[sizeof(struct ethtool_gfeatures) + WORDS_MAX * sizeof(struct ethtool_get_features_block)]
    __attribute__((aligned(8)));
static struct ethtool_gstrings *const names = (void *)names_room;
static struct ethtool_gfeatures *const features = (void *)features_room;

/* Read `names` and `features` of an interface. Returns 0 or an errno value. */
static int ask_features(const char *interface)
{
    char room[sizeof(struct ethtool_sset_info) + sizeof(unsigned)] __attribute__((aligned(8))) = {0};
    struct ethtool_sset_info *known = (void *)room;
    int error;

    known->cmd = ETHTOOL_GSSET_INFO, known->sset_mask = 1ULL << ETH_SS_FEATURES;
    error = ethtool_call(interface, known);
    if (error != 0)
        return error;
    if (known->sset_mask == 0 || known->data[0] > FEATURES_MAX)
        return EOPNOTSUPP;
    names->cmd = ETHTOOL_GSTRINGS, names->string_set = ETH_SS_FEATURES, names->len = known->data[0];
    error = ethtool_call(interface, names);
    if (error != 0)
        return error;
    features->cmd = ETHTOOL_GFEATURES, features->size = (known->data[0] + 31) / 32;
    return ethtool_call(interface, features);
}

static bool can_change(unsigned bit)
{
    return (features->features[bit / 32].available & ~features->features[bit / 32].never_changed) >> bit % 32 & 1;
}

static const char *read_wanted(unsigned bit)
{
    return (features->features[bit / 32].requested >> bit % 32 & 1) != 0 ? "on" : "off";
}

static const char *name_of(unsigned bit)
{
    return (const char *)names->data + bit * ETH_GSTRING_LEN;
}

/* Read or write whether a feature is wanted. Another feature may still keep it off. */
static int carry_out_feature(const struct setting *setting, const char *value, char *text)
{
    char room[sizeof(struct ethtool_sfeatures) + WORDS_MAX * sizeof(struct ethtool_set_features_block)]
        __attribute__((aligned(8))) = {0};
    struct ethtool_sfeatures *change = (void *)room;
    int error = ask_features(setting->interface);
    unsigned bit = 0;

    if (error != 0)
        return error;
    while (bit < names->len && strncmp(name_of(bit), setting->name, ETH_GSTRING_LEN) != 0)
        bit++;
    if (bit == names->len)
        return EINVAL;
    if (value == NULL) {
        snprintf(text, SETTING_TEXT, "%s", read_wanted(bit));
        return 0;
    }
    change->cmd = ETHTOOL_SFEATURES, change->size = features->size;
    change->features[bit / 32].valid = 1U << bit % 32;
    change->features[bit / 32].requested = strcmp(value, "on") == 0 ? 1U << bit % 32 : 0;
    return ethtool_call(setting->interface, change);
}

static const struct offload *find_offload(const char *name)
{
    for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++)
        if (strcmp(offloads[i].name, name) == 0)
            return &offloads[i];
    return NULL;
}

static int offload_parts(const struct setting *setting, const char *old, struct setting *parts, int most)
{
    const struct offload *offload = find_offload(setting->name);
    int count = 0;

    if (offload == NULL || offload->parts == NULL || ask_features(setting->interface) != 0)
        return 0;
    for (unsigned bit = 0; bit < names->len && count < most; bit++) {
        if (strncmp(name_of(bit), offload->parts, strlen(offload->parts)) != 0 || !can_change(bit) ||
            strcmp(read_wanted(bit), old) == 0)
            continue;
        parts[count] = *setting;
        snprintf(parts[count].name, sizeof parts[count].name, "%.31s", name_of(bit));
        snprintf(parts[count++].old, sizeof parts->old, "%s", read_wanted(bit));
    }
    return count;
}

static int carry_out_offload(const struct setting *setting, const char *value, char *text)
{
    const struct offload *offload = find_offload(setting->name);
    struct ethtool_value state = {.cmd = offload != NULL ? offload->get : 0};
    int error;

    if (offload == NULL)
        return carry_out_feature(setting, value, text);
    error = ethtool_call(setting->interface, &state);
    if (value == NULL)
        snprintf(text, SETTING_TEXT, "%s", (state.data & offload->flag) != 0 ? "on" : "off");
    if (error != 0 || value == NULL)
        return error;
    state.cmd = offload->set;
    state.data = strcmp(value, "on") == 0 ? state.data | offload->flag : state.data & ~offload->flag;
    return ethtool_call(setting->interface, &state);
}

static int sysctl_path(const char *name, char *path, size_t room)
{
    bool dotted = strchr(name, '/') == NULL;
    size_t used = (size_t)snprintf(path, room, "/proc/sys/");

    /* Refuse sysctls outside net: a journal that somebody else wrote could change them if this agent runs as root. */
    if (strncmp(name, "net.", 4) != 0 && strncmp(name, "net/", 4) != 0)
        return EPERM;
    if (strstr(name, "..") != NULL ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:") != strlen(name))
        return EINVAL;
    snprintf(path + used, room - used, "%s", name);
    for (char *at = path + used; dotted && *at != '\0'; at++)
        if (*at == '.')
            *at = '/';
    return 0;
}

static int carry_out_sysctl(const struct setting *setting, const char *value, char *text)
{
    char path[SETTING_TEXT + 64];
    int error = sysctl_path(setting->name, path, sizeof path);

    return error != 0 ? error : setting_file(path, value, text);
}

static int carry_out_governor(const struct setting *setting, const char *value, char *text)
{
    char path[96];

    snprintf(path, sizeof path, "/sys/devices/system/cpu/%.16s/cpufreq/scaling_governor", setting->name);
    return strncmp(setting->name, "cpu", 3) == 0 && strchr(setting->name, '/') == NULL ? setting_file(path, value, text) : EINVAL;
}

/* The kernel adds options to those that were written. */
static bool qdisc_fits(const char *value, const char *old, const char *now)
{
    size_t kind = strcspn(value, ":");

    (void)old;
    return strncmp(now, value, kind) == 0 && (now[kind] == ':' || now[kind] == '\0');
}

/* The kernel pads the written mask with zeros. */
static bool rps_fits(const char *value, const char *old, const char *now)
{
    (void)value, (void)old, (void)now;
    return true;
}

/* A driver may round a number, or refuse it and keep `old`. */
static bool card_fits(const char *value, const char *old, const char *now)
{
    (void)value;
    return *now >= '0' && *now <= '9' && strcmp(now, old) != 0;
}

const struct setting_ways setting_ways_mtu = {.carry_out = setting_mtu};
const struct setting_ways setting_ways_sysctl = {.carry_out = carry_out_sysctl};
const struct setting_ways setting_ways_offload = {.carry_out = carry_out_offload, .parts = offload_parts};
const struct setting_ways setting_ways_governor = {.carry_out = carry_out_governor};
const struct setting_ways setting_ways_card = {card_number, card_number_check, card_fits, card_parts};
const struct setting_ways setting_ways_eee = {.carry_out = card_eee};
const struct setting_ways setting_ways_qdisc = {.carry_out = card_qdisc, .fits = qdisc_fits};
const struct setting_ways setting_ways_rps = {.carry_out = card_rps, .fits = rps_fits};
