/* Energy-Efficient Ethernet in place of v0's, by generic netlink, for an agent that is started with this library (LD_PRELOAD). The state
 * is kept in the file FAKE_EEE, so that it outlives the agent as a card does: whether it is on, and the link modes for which it is offered.
 * FAKE_MODES is the size of the kernel's set of link modes. As phylib did before Linux 6.8, a card that is switched off offers no mode. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAMILY 34
#define FDS 1024

static const char family[] = ETHTOOL_GENL_NAME;

struct state {
    uint32_t enabled, modes[4], sets;
};

static bool generic[FDS];
static char reply[1024] __attribute__((aligned(8)));
static size_t reply_length;

static struct state *state(void)
{
    int fd = open(getenv("FAKE_EEE"), O_RDWR | O_CLOEXEC);
    struct state *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd < 0 || at == MAP_FAILED)
        abort();
    close(fd);
    return at;
}

static struct nlattr *add(int type, const void *data, size_t size)
{
    struct nlattr *added = (void *)(reply + reply_length);

    added->nla_type = (uint16_t)type;
    added->nla_len = (uint16_t)(NLA_HDRLEN + size);
    memcpy((char *)added + NLA_HDRLEN, data, size);
    reply_length += NLA_ALIGN(added->nla_len);
    return added;
}

static void begin_reply(int type, uint8_t command)
{
    struct nlmsghdr *head = (void *)reply;
    struct genlmsghdr *own = NLMSG_DATA(head);

    memset(reply, 0, sizeof reply);
    head->nlmsg_type = (uint16_t)type;
    own->cmd = command;
    reply_length = NLMSG_LENGTH(GENL_HDRLEN);
}

static void end_reply(void)
{
    ((struct nlmsghdr *)(void *)reply)->nlmsg_len = (uint32_t)reply_length;
}

static void reply_error(int error)
{
    struct nlmsghdr *head = (void *)reply;

    memset(reply, 0, sizeof reply);
    head->nlmsg_type = NLMSG_ERROR;
    *(int *)NLMSG_DATA(head) = -error;
    reply_length = NLMSG_LENGTH(sizeof(struct nlmsgerr));
    end_reply();
}

/* Return the attribute `type` among `length` bytes, or NULL. */
static const struct nlattr *find(const void *first, size_t length, int type)
{
    const char *at = first;

    while (length >= NLA_HDRLEN) {
        const struct nlattr *each = (const void *)at;
        size_t step = NLA_ALIGN(each->nla_len);

        if (each->nla_len < NLA_HDRLEN || each->nla_len > length)
            return NULL;
        if ((each->nla_type & NLA_TYPE_MASK) == type)
            return each;
        if (step >= length)
            return NULL;
        at += step;
        length -= step;
    }
    return NULL;
}

static const void *value_of(const struct nlattr *attribute)
{
    return (const char *)attribute + NLA_HDRLEN;
}

static void reply_state(const struct state *at)
{
    uint32_t size = (uint32_t)atoi(getenv("FAKE_MODES")), bytes = (size + 31) / 32 * 4;
    uint8_t enabled = at->enabled != 0, no = 0;
    struct nlattr *modes;

    begin_reply(FAMILY, ETHTOOL_MSG_EEE_GET_REPLY);
    modes = add(ETHTOOL_A_EEE_MODES_OURS | NLA_F_NESTED, "", 0);
    add(ETHTOOL_A_BITSET_SIZE, &size, sizeof size);
    add(ETHTOOL_A_BITSET_VALUE, at->modes, bytes);
    add(ETHTOOL_A_BITSET_MASK, at->modes, bytes);
    modes->nla_len = (uint16_t)(reply + reply_length - (char *)modes);
    add(ETHTOOL_A_EEE_ACTIVE, &no, sizeof no);
    add(ETHTOOL_A_EEE_ENABLED, &enabled, sizeof enabled);
    end_reply();
}

static int change(struct state *at, const void *first, size_t length)
{
    const struct nlattr *enabled = find(first, length, ETHTOOL_A_EEE_ENABLED), *modes = find(first, length, ETHTOOL_A_EEE_MODES_OURS);
    const struct nlattr *size, *value;

    if (modes != NULL) {
        size = find(value_of(modes), modes->nla_len - NLA_HDRLEN, ETHTOOL_A_BITSET_SIZE);
        value = find(value_of(modes), modes->nla_len - NLA_HDRLEN, ETHTOOL_A_BITSET_VALUE);
        if (size == NULL || value == NULL || find(value_of(modes), modes->nla_len - NLA_HDRLEN, ETHTOOL_A_BITSET_NOMASK) == NULL ||
            (size_t)(*(const uint32_t *)value_of(size) + 31) / 32 * 4 != value->nla_len - (size_t)NLA_HDRLEN)
            return EINVAL;
        memcpy(at->modes, value_of(value), value->nla_len - NLA_HDRLEN);
    }
    at->sets++;
    at->enabled = enabled != NULL ? *(const uint8_t *)value_of(enabled) : at->enabled;
    if (at->enabled == 0)
        memset(at->modes, 0, sizeof at->modes);
    return 0;
}

static void carry_out(const struct nlmsghdr *message)
{
    const struct genlmsghdr *own = NLMSG_DATA(message);
    const char *first = (const char *)own + GENL_HDRLEN;
    size_t length = message->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN);
    const struct nlattr *header, *name;
    uint16_t number = FAMILY;
    struct state *at;

    if (message->nlmsg_type == GENL_ID_CTRL) {
        begin_reply(GENL_ID_CTRL, CTRL_CMD_NEWFAMILY);
        add(CTRL_ATTR_FAMILY_ID, &number, sizeof number);
        add(CTRL_ATTR_FAMILY_NAME, family, sizeof family);
        end_reply();
        return;
    }
    header = find(first, length, ETHTOOL_A_EEE_HEADER);
    name = header == NULL ? NULL : find(value_of(header), header->nla_len - NLA_HDRLEN, ETHTOOL_A_HEADER_DEV_NAME);
    if (message->nlmsg_type != FAMILY || name == NULL || strcmp(value_of(name), "v0") != 0) {
        reply_error(EINVAL);
        return;
    }
    at = state();
    if (own->cmd == ETHTOOL_MSG_EEE_GET)
        reply_state(at);
    else
        reply_error(own->cmd == ETHTOOL_MSG_EEE_SET ? change(at, first, length) : EOPNOTSUPP);
    munmap(at, sizeof *at);
}

int socket(int domain, int type, int protocol)
{
    int (*real)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
    int fd = real(domain, type, protocol);

    if (fd >= 0 && fd < FDS)
        generic[fd] = domain == AF_NETLINK && protocol == NETLINK_GENERIC;
    return fd;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    ssize_t (*real)(int, const void *, size_t, int) = (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");

    if (fd < 0 || fd >= FDS || !generic[fd])
        return real(fd, bytes, count, flags);
    carry_out(bytes);
    return (ssize_t)count;
}

ssize_t recv(int fd, void *bytes, size_t count, int flags)
{
    ssize_t (*real)(int, void *, size_t, int) = (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");

    if (fd < 0 || fd >= FDS || !generic[fd])
        return real(fd, bytes, count, flags);
    memcpy(bytes, reply, reply_length < count ? reply_length : count);
    return (ssize_t)reply_length;
}
