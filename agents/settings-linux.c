/* The kinds of host settings on Linux: netdevice(7), /proc/sys, SIOCETHTOOL (linux/ethtool.h), cpufreq in /sys; of a card: card-linux.c. */
#include "card.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FEATURES_MAX 256 /* bits; Linux 6.18 has 64 */
#define WORDS_MAX (FEATURES_MAX / 32)

static const struct {
    const char *name;
    unsigned get, set;
    unsigned flag;     /* of ETHTOOL_GFLAGS; 0: the command is the feature's own */
    const char *parts; /* how the names of the features begin that it switches; NULL: it is one */
} offloads[] = {
    {"tso", ETHTOOL_GTSO, ETHTOOL_STSO, 0, "tx-tcp"},
    {"gso", ETHTOOL_GGSO, ETHTOOL_SGSO, 0, NULL},
    {"gro", ETHTOOL_GGRO, ETHTOOL_SGRO, 0, NULL},
    {"rx", ETHTOOL_GRXCSUM, ETHTOOL_SRXCSUM, 0, NULL},
    {"tx", ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM, 0, "tx-checksum-"},
    {"sg", ETHTOOL_GSG, ETHTOOL_SSG, 0, "tx-scatter-gather"},
    {"lro", ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_LRO, NULL},
};
/* The features of the interface asked last, by bit: names of `ethtool -k`, and what is possible, wanted and so. */
static char names_room[sizeof(struct ethtool_gstrings) + FEATURES_MAX * ETH_GSTRING_LEN] __attribute__((aligned(8)));
static char features_room[sizeof(struct ethtool_gfeatures) + WORDS_MAX * sizeof(struct ethtool_get_features_block)]
    __attribute__((aligned(8)));
static struct ethtool_gstrings *const names = (void *)names_room;
static struct ethtool_gfeatures *const features = (void *)features_room;

int setting_ethtool(const char *interface, void *asked)
{
    struct ifreq ask = {.ifr_data = asked};

    return setting_interface(interface, SIOCETHTOOL, &ask);
}

static int ethtool(const char *interface, unsigned command, unsigned *data)
{
    struct ethtool_value asked = {.cmd = command, .data = *data};
    int error = setting_ethtool(interface, &asked);

    *data = asked.data;
    return error;
}

/* Fill `names` and `features`. 0 or an errno value. */
static int ask_features(const char *interface)
{
    char room[sizeof(struct ethtool_sset_info) + sizeof(unsigned)] __attribute__((aligned(8))) = {0};
    struct ethtool_sset_info *known = (void *)room;
    int error;

    known->cmd = ETHTOOL_GSSET_INFO, known->sset_mask = 1ULL << ETH_SS_FEATURES;
    error = setting_ethtool(interface, known);
    if (error != 0)
        return error;
    if (known->sset_mask == 0 || known->data[0] > FEATURES_MAX)
        return EOPNOTSUPP;
    names->cmd = ETHTOOL_GSTRINGS, names->string_set = ETH_SS_FEATURES, names->len = known->data[0];
    error = setting_ethtool(interface, names);
    if (error != 0)
        return error;
    features->cmd = ETHTOOL_GFEATURES, features->size = (known->data[0] + 31) / 32;
    return setting_ethtool(interface, features);
}

static bool possible(unsigned bit)
{
    return (features->features[bit / 32].available & ~features->features[bit / 32].never_changed) >> bit % 32 & 1;
}

static const char *wanted(unsigned bit)
{
    return (features->features[bit / 32].requested >> bit % 32 & 1) != 0 ? "on" : "off";
}

static const char *name_of(unsigned bit)
{
    return (const char *)names->data + bit * ETH_GSTRING_LEN;
}

/* A single feature by its own name, as it is wanted: another may keep it off. */
static int feature(const struct setting *setting, const char *value, char *text)
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
        snprintf(text, SETTING_TEXT, "%s", wanted(bit));
        return 0;
    }
    change->cmd = ETHTOOL_SFEATURES, change->size = features->size;
    change->features[bit / 32].valid = 1U << bit % 32;
    change->features[bit / 32].requested = strcmp(value, "on") == 0 ? 1U << bit % 32 : 0;
    return setting_ethtool(setting->interface, change);
}

static size_t offload_named(const char *name)
{
    size_t i = 0;

    while (i < sizeof offloads / sizeof *offloads && strcmp(offloads[i].name, name) != 0)
        i++;
    return i;
}

int setting_parts(const struct setting *setting, const char *old, struct setting *parts, int most)
{
    size_t i = offload_named(setting->name);
    int count = 0;

    if (strcmp(setting->kind, "offload") != 0)
        return card_parts(setting, old, parts, most);
    if (i == sizeof offloads / sizeof *offloads || offloads[i].parts == NULL || ask_features(setting->interface) != 0)
        return 0;
    for (unsigned bit = 0; bit < names->len && count < most; bit++) {
        if (strncmp(name_of(bit), offloads[i].parts, strlen(offloads[i].parts)) != 0 || !possible(bit) ||
            strcmp(wanted(bit), old) == 0)
            continue;
        parts[count] = *setting;
        snprintf(parts[count].name, sizeof parts[count].name, "%.31s", name_of(bit));
        snprintf(parts[count++].old, sizeof parts->old, "%s", wanted(bit));
    }
    return count;
}

static int offload(const struct setting *setting, const char *value, char *text)
{
    size_t i = offload_named(setting->name);
    unsigned data = 0;
    int error;

    if (i == sizeof offloads / sizeof *offloads)
        return feature(setting, value, text);
    error = ethtool(setting->interface, offloads[i].get, &data);
    if (error != 0 || value == NULL) {
        snprintf(text != NULL ? text : (char[SETTING_TEXT]){0}, SETTING_TEXT, "%s",
                 (offloads[i].flag != 0 ? data & offloads[i].flag : data) != 0 ? "on" : "off");
        return error;
    }
    if (offloads[i].flag == 0)
        data = strcmp(value, "on") == 0;
    else
        data = strcmp(value, "on") == 0 ? data | offloads[i].flag : data & ~offloads[i].flag;
    return ethtool(setting->interface, offloads[i].set, &data);
}

/* Runs of blanks, tabs and newlines become one blank; none at the end. */
static void squeeze(char *text)
{
    char *to = text;

    for (char *from = text; *from != '\0'; from++) {
        bool blank = *from == ' ' || *from == '\t' || *from == '\n';

        if (!blank)
            *to++ = *from;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    }
    if (to > text && to[-1] == ' ')
        to--;
    *to = '\0';
}

int setting_file(const char *path, const char *value, char *text)
{
    int fd = open(path, (value != NULL ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
    ssize_t done;
    int error = 0;

    if (fd < 0)
        return errno;
    done = value != NULL ? write(fd, value, strlen(value)) : read(fd, text, SETTING_TEXT - 1);
    if (done < 0)
        error = errno;
    else if (value == NULL && done == SETTING_TEXT - 1)
        error = EMSGSIZE; /* longer than can be kept and put back */
    else if (value == NULL)
        text[done] = '\0', squeeze(text);
    close(fd);
    return error;
}

static int sysctl_path(const char *name, char *path, size_t room)
{
    bool dotted = strchr(name, '/') == NULL;
    size_t used = (size_t)snprintf(path, room, "/proc/sys/");

    /* Others are no settings of a network test, and the journal that restores them may be run as root. */
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

static int sysctl(const struct setting *setting, const char *value, char *text)
{
    char path[SETTING_TEXT + 64];
    int error = sysctl_path(setting->name, path, sizeof path);

    return error != 0 ? error : setting_file(path, value, text);
}

static int governor(const struct setting *setting, const char *value, char *text)
{
    char path[96];

    snprintf(path, sizeof path, "/sys/devices/system/cpu/%.16s/cpufreq/scaling_governor", setting->name);
    return strncmp(setting->name, "cpu", 3) == 0 && strchr(setting->name, '/') == NULL ? setting_file(path, value, text) : EINVAL;
}

static const struct {
    const char *kind;
    int (*carry_out)(const struct setting *setting, const char *value, char *text);
    int (*check)(const struct setting *setting, const char *value);
} kinds[] = {
    {"mtu", setting_mtu, NULL},
    {"offload", offload, NULL},
    {"sysctl", sysctl, NULL},
    {"governor", governor, NULL},
    {"rings", card_number, card_number_check},
    {"coalesce", card_number, card_number_check},
    {"channels", card_number, card_number_check},
    {"pause", card_number, card_number_check},
    {"qdisc", card_qdisc, NULL},
    {"rps", card_rps, NULL},
};

static size_t kind_of(const struct setting *setting)
{
    size_t i = 0;

    while (i < sizeof kinds / sizeof *kinds && strcmp(kinds[i].kind, setting->kind) != 0)
        i++;
    return i;
}

int setting_carry_out(const struct setting *setting, const char *value, char *text)
{
    size_t i = kind_of(setting);

    return i < sizeof kinds / sizeof *kinds ? kinds[i].carry_out(setting, value, text) : EINVAL;
}

int setting_check(const struct setting *setting, const char *value)
{
    size_t i = kind_of(setting);

    return i < sizeof kinds / sizeof *kinds && kinds[i].check != NULL ? kinds[i].check(setting, value) : 0;
}

bool setting_fits(const struct setting *setting, const char *value, const char *old, const char *now)
{
    size_t kind = strcspn(value, ":");

    if (strcmp(setting->kind, "qdisc") == 0) /* with options that were not asked for */
        return strncmp(now, value, kind) == 0 && (now[kind] == ':' || now[kind] == '\0');
    if (strcmp(setting->kind, "rps") == 0) /* as many zeros as the kernel has processors */
        return true;
    if (strcmp(now, value) == 0 || kinds[kind_of(setting)].carry_out != card_number)
        return strcmp(now, value) == 0;
    return *now >= '0' && *now <= '9' && strcmp(now, old) != 0; /* a driver rounds; what it left as it was it has not taken */
}
