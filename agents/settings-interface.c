/* What interfaces are asked and told by ioctl(2) on every system: netdevice(7), netintro(4). */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <net/if.h>
#include <unistd.h>

#include "text.h"

int setting_interface(const char *interface, unsigned long request, struct ifreq *ask)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = 0;

    if (fd < 0)
        return errno;
    snprintf(ask->ifr_name, sizeof ask->ifr_name, "%s", interface);
    if (ioctl(fd, request, ask) < 0) /* above 0: ETHTOOL_SFEATURES has noted a wish */
        error = errno;
    close(fd);
    return error;
}

int setting_mtu(const struct setting *setting, const char *value, char *text)
{
    struct ifreq ask = {0};
    const char *end;
    int error;

    if (value != NULL) {
        ask.ifr_mtu = (int)text_number(value, &end);
        return setting_interface(setting->interface, SIOCSIFMTU, &ask);
    }
    error = setting_interface(setting->interface, SIOCGIFMTU, &ask);
    snprintf(text, SETTING_TEXT, "%d", ask.ifr_mtu);
    return error;
}
