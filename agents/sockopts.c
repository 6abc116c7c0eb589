/* The table of socket settings; a new setting is a new row. */
#include "sockopts.h"

#include <assert.h>
#if !defined(_WIN32)
#include <netinet/tcp.h>
#endif

#include "control.h"

static const struct sockopt {
    const char *key;      /* key of the setting in orders */
    int64_t low, high;    /* bounds of the number; 0 and 0: the value is a name */
    int level, option;    /* level and option for setsockopt(2) */
    const char *shown;    /* name of the setting in messages */
    const char *reported; /* key of the value read back, in a flow's totals; NULL: not reported */
    int family;           /* address family of the sockets with this setting; 0: all */
    int shift;            /* the option's value is the number shifted left by this many bits */
} table[] = {
    {"window", 1, 1 << 30, SOL_SOCKET, SO_SNDBUF, "SO_SNDBUF", .reported = "sndbuf"},
    {"window", 1, 1 << 30, SOL_SOCKET, SO_RCVBUF, "SO_RCVBUF", .reported = "rcvbuf"},
    {"mss", 88, 32767, IPPROTO_TCP, TCP_MAXSEG, "TCP_MAXSEG", .reported = NULL},
    {"nodelay", 0, 1, IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY", .reported = "nodelay"},
    {"dscp", 0, 63, IPPROTO_IP, IP_TOS, "IP_TOS", .family = AF_INET, .shift = 2},
    {"dscp", 0, 63, IPPROTO_IPV6, IPV6_TCLASS, "IPV6_TCLASS", .family = AF_INET6, .shift = 2},
    {"congestion", 0, 0, IPPROTO_TCP, TCP_CONGESTION, "TCP_CONGESTION", .reported = "congestion"},
};

#define ROWS (sizeof table / sizeof *table)
static_assert(ROWS <= SOCKOPTS_MAX, "SOCKOPTS_MAX is too small");

static bool is_name(const struct sockopt *row)
{
    return row->high == 0;
}

static bool is_flag(const struct sockopt *row)
{
    return row->high == 1;
}

void sockopts_clear(struct sockopts *values)
{
    memset(values, 0, sizeof *values);
    for (size_t i = 0; i < SOCKOPTS_MAX; i++)
        values->values[i].number = -1;
}

const char *sockopts_parse(struct order *order, struct sockopts *asked)
{
    static char wrong[80];

    sockopts_clear(asked);
    for (size_t i = 0; i < ROWS; i++) {
        const struct sockopt *row = &table[i];
        const char *text = order_value(order, row->key);
        size_t length = text == NULL ? 0 : strlen(text);

        if (text == NULL)
            continue;
        if (is_name(row) && length > 0 && length < SOCKOPT_NAME) {
            memcpy(asked->values[i].name, text, length);
        } else if (is_name(row)) {
            snprintf(wrong, sizeof wrong, "%s: expected a name of 1 to %d characters", row->key, SOCKOPT_NAME - 1);
            return wrong;
        } else {
            const char *refused = order_number(order, row->key, row->low, row->high, &asked->values[i].number);

            if (refused != NULL)
                return refused;
        }
    }
    return NULL;
}

int64_t sockopts_number(const struct sockopts *asked, const char *key)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(table[i].key, key) == 0)
            return asked->values[i].number;
    return -1;
}

void sockopts_forget(struct sockopts *values, const char *key)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(table[i].key, key) == 0)
            values->values[i].number = -1;
}

int sockopts_set_buffer(int fd, int option, int bytes, int least)
{
    while (setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes) != 0) {
        if ((errno != ENOBUFS && errno != ENOMEM) || bytes / 2 < least)
            return -1;
        bytes /= 2;
    }
    return 0;
}

void sockopts_enlarge_buffer(int fd, int option, int bytes)
{
    int has = 0;
    socklen_t length = sizeof has;

    if (getsockopt(fd, SOL_SOCKET, option, &has, &length) == 0 && has < bytes)
        sockopts_set_buffer(fd, option, bytes, has + 1);
}

static bool is_buffer(const struct sockopt *row)
{
    return row->level == SOL_SOCKET && (row->option == SO_SNDBUF || row->option == SO_RCVBUF);
}

static int set_number(int fd, const struct sockopt *row, int number)
{
    if (is_buffer(row))
        return sockopts_set_buffer(fd, row->option, number, 1);
    number <<= row->shift;
    return setsockopt(fd, row->level, row->option, &number, sizeof number);
}

const char *sockopts_apply(int fd, int family, bool tcp, const struct sockopts *asked)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct sockopt *row = &table[i];
        const char *name = asked->values[i].name;
        int number = (int)asked->values[i].number;

        if ((row->level == IPPROTO_TCP && !tcp) || (row->family != 0 && row->family != family))
            continue;
        if (name[0] != '\0' && setsockopt(fd, row->level, row->option, name, (socklen_t)strlen(name)) != 0)
            return row->shown;
        if (number >= 0 && set_number(fd, row, number) != 0)
            return row->shown;
    }
    return NULL;
}

void sockopts_read(int fd, struct sockopts *effective, bool tcp)
{
    sockopts_clear(effective);
    for (size_t i = 0; i < ROWS; i++) {
        const struct sockopt *row = &table[i];
        char *name = effective->values[i].name;
        socklen_t length = SOCKOPT_NAME - 1;
        int number;

        if (row->reported == NULL || (row->level == IPPROTO_TCP && !tcp))
            continue;
        if (is_name(row) && getsockopt(fd, row->level, row->option, name, &length) != 0)
            name[0] = '\0';
        length = sizeof number;
        /* FreeBSD returns the bit of the option, not 1, for a flag that is on. */
        if (!is_name(row) && getsockopt(fd, row->level, row->option, &number, &length) == 0)
            effective->values[i].number = is_flag(row) ? number != 0 : number;
    }
}

void sockopts_report(const struct sockopts *effective)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct sockopt *row = &table[i];
        const char *name = effective->values[i].name;

        if (row->reported == NULL)
            continue;
        if (is_flag(row)) {
            line_add_flag(row->reported, effective->values[i].number);
        } else if (name[0] != '\0') {
            line_add(",\"%s\":", row->reported);
            line_add_string(name);
        } else {
            line_add_count(row->reported, effective->values[i].number);
        }
    }
}
