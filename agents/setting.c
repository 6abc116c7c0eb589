/* The functions that several kinds of host settings need. */
#include "setting.h"

#include <net/if.h>
#include <sys/ioctl.h>

#include "text.h"

char setting_reason[256];

int setting_interface(const char *interface, unsigned long request, struct ifreq *ask)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = 0;

    if (fd < 0)
        return errno;
    snprintf(ask->ifr_name, sizeof ask->ifr_name, "%s", interface);
    if (ioctl(fd, request, ask) < 0) /* a positive result of ETHTOOL_SFEATURES is no error */
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

/* Collapse blanks, tabs and newlines between words to one blank, and remove them at the ends. */
static void squeeze(char *text)
{
    char *to = text, *rest = NULL;

    for (char *word = strtok_r(text, " \t\n", &rest); word != NULL; word = strtok_r(NULL, " \t\n", &rest)) {
        if (to > text)
            *to++ = ' ';
        while (*word != '\0')
            *to++ = *word++;
    }
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
        error = EMSGSIZE; /* the value is too long to be stored and restored */
    else if (value == NULL)
        text[done] = '\0', squeeze(text);
    close(fd);
    return error;
}
