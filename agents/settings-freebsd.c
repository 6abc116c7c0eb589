/* The kinds of host settings on FreeBSD: MTU and offloads by ioctl(2) (netintro(4)), sysctls below net by sysctl(3). */
#include "settings.h"

#include <sys/param.h>
#include <sys/ioctl.h>
#include <sys/sysctl.h>
#include <net/if.h>

#include "text.h"

static int carry_out_offload(const struct setting *setting, const char *value, char *text)
{
    static const struct {
        const char *name;
        int flags;
    } known[] = {{"tso", IFCAP_TSO}, {"gro", IFCAP_LRO}, {"lro", IFCAP_LRO}, {"rx", IFCAP_RXCSUM}, {"tx", IFCAP_TXCSUM}};
    struct ifreq ask = {0};
    size_t i = 0;
    int error;

    while (i < sizeof known / sizeof *known && strcmp(known[i].name, setting->name) != 0)
        i++;
    if (i == sizeof known / sizeof *known)
        return EOPNOTSUPP;
    error = setting_interface(setting->interface, SIOCGIFCAP, &ask);
    if (error != 0)
        return error;
    if (value == NULL) {
        snprintf(text, SETTING_TEXT, "%s", (ask.ifr_curcap & known[i].flags) != 0 ? "on" : "off");
        return 0;
    }
    ask.ifr_reqcap = strcmp(value, "on") == 0 ? ask.ifr_curcap | known[i].flags : ask.ifr_curcap & ~known[i].flags;
    return setting_interface(setting->interface, SIOCSIFCAP, &ask);
}

/* Return the type of a sysctl's value (a CTLTYPE), or -1 with errno. */
static int sysctl_type(const char *name)
{
    int ask[CTL_MAXNAME + 2] = {0, 4}; /* values of CTL_SYSCTL and CTL_SYSCTL_OIDFMT */
    size_t length = CTL_MAXNAME;
    struct {
        unsigned kind;
        char format[256];
    } said;
    size_t room = sizeof said;

    if (sysctlnametomib(name, ask + 2, &length) != 0 || sysctl(ask, (unsigned)length + 2, &said, &room, NULL, 0) != 0)
        return -1;
    return (int)(said.kind & CTLTYPE);
}

static bool is_number(int kind, size_t *bytes)
{
    *bytes = kind == CTLTYPE_INT || kind == CTLTYPE_UINT     ? sizeof(int)
             : kind == CTLTYPE_LONG || kind == CTLTYPE_ULONG ? sizeof(long)
             : kind == CTLTYPE_S64 || kind == CTLTYPE_U64    ? 8
                                                             : 0;
    return *bytes > 0;
}

static int read_sysctl(const char *name, int kind, char *text)
{
    union {
        int number;
        int64_t large;
    } held = {.large = 0};
    size_t bytes, length = SETTING_TEXT - 1;

    if (kind == CTLTYPE_STRING) {
        if (sysctlbyname(name, text, &length, NULL, 0) != 0)
            return errno;
        text[length] = '\0';
        return 0;
    }
    if (!is_number(kind, &bytes))
        return EOPNOTSUPP;
    length = bytes;
    if (sysctlbyname(name, &held, &length, NULL, 0) != 0)
        return errno;
    snprintf(text, SETTING_TEXT, "%lld", (long long)(bytes == sizeof held.number ? held.number : held.large));
    return 0;
}

static int write_sysctl(const char *name, int kind, const char *value)
{
    union {
        int number;
        int64_t large;
    } wanted = {.large = 0};
    const char *end;
    int64_t number = text_number(*value == '-' ? value + 1 : value, &end);
    size_t bytes;

    if (kind == CTLTYPE_STRING)
        return sysctlbyname(name, NULL, NULL, value, strlen(value)) == 0 ? 0 : errno;
    if (!is_number(kind, &bytes))
        return EOPNOTSUPP;
    if (number < 0 || *end != '\0')
        return EINVAL;
    number = *value == '-' ? -number : number;
    if (bytes == sizeof wanted.number)
        wanted.number = (int)number;
    else
        wanted.large = number;
    return sysctlbyname(name, NULL, NULL, &wanted, bytes) == 0 ? 0 : errno;
}

static int carry_out_sysctl(const struct setting *setting, const char *value, char *text)
{
    int kind;

    /* Refuse sysctls outside net: a journal that somebody else wrote could change them if this agent runs as root. */
    if (strncmp(setting->name, "net.", 4) != 0)
        return EPERM;
    kind = sysctl_type(setting->name);
    if (kind < 0)
        return errno;
    return value == NULL ? read_sysctl(setting->name, kind, text) : write_sysctl(setting->name, kind, value);
}

/* SIOCSIFCAP changes all flags of an offload at once, so that an offload has no parts. */
const struct setting_ways setting_ways_mtu = {.carry_out = setting_mtu};
const struct setting_ways setting_ways_sysctl = {.carry_out = carry_out_sysctl};
const struct setting_ways setting_ways_offload = {.carry_out = carry_out_offload};
const struct setting_ways setting_ways_governor = {.carry_out = NULL};
const struct setting_ways setting_ways_card = {.carry_out = NULL};
const struct setting_ways setting_ways_eee = {.carry_out = NULL};
const struct setting_ways setting_ways_qdisc = {.carry_out = NULL};
const struct setting_ways setting_ways_rps = {.carry_out = NULL};
