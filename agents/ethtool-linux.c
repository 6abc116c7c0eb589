/* Sends requests to a card: by SIOCETHTOOL, and by ethtool netlink, a family of generic netlink (linux/ethtool_netlink.h). */
#include "ethtool.h"

#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/sockios.h>
#include <net/if.h>

#include "setting.h"

#define NAME ETHTOOL_GENL_NAME

int ethtool_call(const char *interface, void *request)
{
    struct ifreq ask = {.ifr_data = request};

    return setting_interface(interface, SIOCETHTOOL, &ask);
}

struct taker {
    void (*take)(struct rtattr *first, int length, void *into);
    void *into;
};

static void begin(struct netlink_request *request, int family, int command)
{
    struct genlmsghdr head = {.cmd = (uint8_t)command, .version = 1};

    memset(request, 0, sizeof *request);
    request->head.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
    request->head.nlmsg_type = (uint16_t)family;
    request->head.nlmsg_flags = NLM_F_REQUEST;
    memcpy(request->body, &head, sizeof head);
}

static void take_attributes(struct nlmsghdr *message, void *into)
{
    struct taker *taker = into;
    char *first = (char *)NLMSG_DATA(message) + GENL_HDRLEN;

    if (message->nlmsg_len >= NLMSG_LENGTH(GENL_HDRLEN))
        taker->take((void *)first, (int)(message->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN)), taker->into);
}

static void take_family(struct rtattr *first, int length, void *into)
{
    uint16_t number;
    struct rtattr *found = netlink_attribute(first, length, CTRL_ATTR_FAMILY_ID, sizeof number);

    if (found == NULL)
        return;
    memcpy(&number, RTA_DATA(found), sizeof number);
    *(int *)into = number;
}

/* Return the number that the kernel gave to the family of ethtool, or 0 if it has none. */
static int find_family(void)
{
    static int family;
    struct netlink_request request;

    if (family != 0)
        return family;
    begin(&request, GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
    netlink_add(&request, CTRL_ATTR_FAMILY_NAME, NAME, sizeof NAME);
    ethtool_ask(&request, take_family, &family);
    return family;
}

int ethtool_begin(struct netlink_request *request, int command, int header, const char *interface, uint32_t flags)
{
    int family = find_family();
    struct rtattr *nest;

    if (family == 0)
        return EOPNOTSUPP;
    begin(request, family, command);
    nest = netlink_open_nest(request, header);
    netlink_add(request, ETHTOOL_A_HEADER_DEV_NAME, interface, strlen(interface) + 1);
    netlink_add(request, ETHTOOL_A_HEADER_FLAGS, &flags, sizeof flags);
    netlink_close_nest(request, nest);
    return 0;
}

int ethtool_ask(struct netlink_request *request, void (*take)(struct rtattr *first, int length, void *into), void *into)
{
    return netlink_ask(NETLINK_GENERIC, request, take_attributes, &(struct taker){take, into});
}

static void ignore(struct rtattr *first, int length, void *into)
{
    (void)first, (void)length, (void)into;
}

int ethtool_order(struct netlink_request *request)
{
    request->head.nlmsg_flags |= NLM_F_ACK;
    return ethtool_ask(request, ignore, NULL);
}
