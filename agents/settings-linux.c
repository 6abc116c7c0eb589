/* The four kinds of host settings on Linux: netdevice(7), /proc/sys, SIOCETHTOOL (linux/ethtool.h), cpufreq in /sys. */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "text.h"

static const struct {
    const char *name;
    unsigned get, set;
    unsigned flag; /* of ETHTOOL_GFLAGS; 0: the command is the feature's own */
} offloads[] = {
    {"tso", ETHTOOL_GTSO, ETHTOOL_STSO, 0},       {"gso", ETHTOOL_GGSO, ETHTOOL_SGSO, 0},
    {"gro", ETHTOOL_GGRO, ETHTOOL_SGRO, 0},       {"rx", ETHTOOL_GRXCSUM, ETHTOOL_SRXCSUM, 0},
    {"tx", ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM, 0},  {"sg", ETHTOOL_GSG, ETHTOOL_SSG, 0},
    {"lro", ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_LRO},
};

static int ethtool(const char *interface, unsigned command, unsigned *data)
{
    struct ethtool_value asked = {.cmd = command, .data = *data};
    struct ifreq ask = {0};
    int error;

    ask.ifr_data = (void *)&asked;
    error = setting_interface(interface, SIOCETHTOOL, &ask);
    *data = asked.data;
    return error;
}

static int offload(const struct setting *setting, const char *value, char *text)
{
    unsigned data = 0;
    size_t i = 0;
    int error;

    while (i < sizeof offloads / sizeof *offloads && strcmp(offloads[i].name, setting->name) != 0)
        i++;
    if (i == sizeof offloads / sizeof *offloads)
        return EINVAL;
    error = ethtool(setting->interface, offloads[i].get, &data);
    if (error != 0 || value == NULL) {
        text_format(text != NULL ? text : (char[SETTING_TEXT]){0}, SETTING_TEXT, "%s",
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

static int file(const char *path, const char *value, char *text)
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
    size_t used = (size_t)text_format(path, room, "/proc/sys/");

    /* Others are no settings of a network test, and the journal that restores them may be run as root. */
    if (strncmp(name, "net.", 4) != 0 && strncmp(name, "net/", 4) != 0)
        return EPERM;
    if (strstr(name, "..") != NULL ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:") != strlen(name))
        return EINVAL;
    text_format(path + used, room - used, "%s", name);
    for (char *at = path + used; dotted && *at != '\0'; at++)
        if (*at == '.')
            *at = '/';
    return 0;
}

static int carry_out(const struct setting *setting, const char *value, char *text)
{
    char path[SETTING_TEXT + 64];
    int error;

    if (strcmp(setting->kind, "mtu") == 0)
        return setting_mtu(setting, value, text);
    if (strcmp(setting->kind, "offload") == 0)
        return offload(setting, value, text);
    if (strcmp(setting->kind, "governor") == 0) {
        text_format(path, sizeof path, "/sys/devices/system/cpu/%.16s/cpufreq/scaling_governor", setting->name);
        return strncmp(setting->name, "cpu", 3) == 0 && strchr(setting->name, '/') == NULL ? file(path, value, text) : EINVAL;
    }
    if (strcmp(setting->kind, "sysctl") != 0)
        return EINVAL;
    error = sysctl_path(setting->name, path, sizeof path);
    return error != 0 ? error : file(path, value, text);
}

int setting_read(const struct setting *setting, char text[SETTING_TEXT])
{
    return carry_out(setting, NULL, text);
}

int setting_write(const struct setting *setting, const char *value)
{
    return carry_out(setting, value, NULL);
}
