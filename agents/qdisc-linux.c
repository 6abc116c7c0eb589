/* The queueing discipline at an interface's root (tc(8)), by rtnetlink(7). A discipline that the kernel chose has no handle and returns
 * when another one is deleted. Any other discipline is changed only if writing its options back restores it. */
#include "card.h"

#include <linux/pkt_sched.h>
#include <net/if.h>

#include "netlink.h"
#include "text.h"

#define OWN_HANDLE 0x7267U /* handle of the disciplines that rigctl sets */

static const char *const restorable[] = {"pfifo", "bfifo", "pfifo_fast", "tbf", "mq", "noqueue"};

struct root {
    int interface;
    unsigned handle;
    bool has_parts; /* the discipline has other disciplines below it */
    char kind[16];
    size_t length; /* number of bytes in `options` */
    unsigned char options[SETTING_TEXT];
};

static void take_root(struct nlmsghdr *message, void *into)
{
    struct root *root = into;
    struct tcmsg *body = NLMSG_DATA(message);
    struct rtattr *kind = netlink_attribute(TCA_RTA(body), (int)TCA_PAYLOAD(message), TCA_KIND, 1);
    struct rtattr *options = netlink_attribute(TCA_RTA(body), (int)TCA_PAYLOAD(message), TCA_OPTIONS, 0);

    if (message->nlmsg_type != RTM_NEWQDISC || body->tcm_ifindex != root->interface || kind == NULL)
        return;
    if (body->tcm_parent != TC_H_ROOT) {
        root->has_parts = root->has_parts || (body->tcm_handle != 0 && TC_H_MAJ(body->tcm_parent) == root->handle << 16);
        return;
    }
    snprintf(root->kind, sizeof root->kind, "%.*s", (int)RTA_PAYLOAD(kind), (char *)RTA_DATA(kind));
    root->handle = body->tcm_handle >> 16;
    root->length = options != NULL ? RTA_PAYLOAD(options) : 0;
    memcpy(root->options, options != NULL ? RTA_DATA(options) : root->kind, root->length < SETTING_TEXT ? root->length : 0);
}

static bool is_restorable(const struct root *root)
{
    for (size_t i = 0; i < sizeof restorable / sizeof *restorable; i++)
        if (strcmp(root->kind, restorable[i]) == 0)
            return !root->has_parts;
    return false;
}

static int write_text(const struct root *root, char *text)
{
    size_t used = (size_t)snprintf(text, SETTING_TEXT, root->handle != 0 ? "%s:%x:" : "%s", root->kind, root->handle);

    if (root->handle != 0 && root->handle != OWN_HANDLE && !is_restorable(root)) {
        snprintf(setting_reason, sizeof setting_reason, "; %s %x: cannot be put back as it is: remove it first", root->kind, root->handle);
        return EOPNOTSUPP;
    }
    if (root->handle == 0)
        return 0;
    if (used + 2 * root->length >= SETTING_TEXT)
        return EMSGSIZE;
    for (size_t i = 0; i < root->length; i++)
        used += (size_t)snprintf(text + used, SETTING_TEXT - used, "%02x", root->options[i]);
    return 0;
}

static bool parse_root(const char *text, struct root *wanted)
{
    const char *at = strchr(text, ':');
    size_t kind = strcspn(text, ":");

    memset(wanted, 0, sizeof *wanted);
    if (kind == 0 || kind >= sizeof wanted->kind)
        return false;
    memcpy(wanted->kind, text, kind);
    if (at == NULL)
        return true;
    for (at++; text_hex_digit(*at) >= 0 && wanted->handle < 0x1000; at++)
        wanted->handle = wanted->handle * 16 + (unsigned)text_hex_digit(*at);
    if (wanted->handle == 0) /* a text without handle is a new discipline, not an old one to restore */
        wanted->handle = OWN_HANDLE;
    for (at += *at == ':'; text_hex(at) >= 0; at += 2)
        wanted->options[wanted->length++] = (unsigned char)text_hex(at);
    return *at == '\0';
}

/* Delete the present root discipline and put `wanted` in its place. */
static int replace_root(const struct root *present, const struct root *wanted, struct netlink_request *request)
{
    struct tcmsg *body = (void *)request->body;
    int error = 0;

    request->head.nlmsg_type = RTM_DELQDISC, request->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    body->tcm_parent = TC_H_ROOT;
    if (present->handle != 0)
        error = netlink_ask(NETLINK_ROUTE, request, take_root, &(struct root){0});
    if (error != 0 || wanted->handle == 0)
        return error;
    request->head.nlmsg_type = RTM_NEWQDISC, request->head.nlmsg_flags |= NLM_F_CREATE | NLM_F_REPLACE;
    body->tcm_handle = wanted->handle << 16;
    netlink_add(request, TCA_KIND, wanted->kind, strlen(wanted->kind) + 1);
    if (wanted->length > 0)
        netlink_add(request, TCA_OPTIONS, wanted->options, wanted->length);
    error = netlink_ask(NETLINK_ROUTE, request, take_root, &(struct root){0});
    if (error == ENOENT)
        snprintf(setting_reason, sizeof setting_reason, "; this kernel has no %s", wanted->kind);
    return error;
}

int card_qdisc(const struct setting *setting, const char *value, char *text)
{
    struct netlink_request request = {.head = {NLMSG_LENGTH(sizeof(struct tcmsg)), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 0, 0}};
    struct root root = {.interface = (int)if_nametoindex(setting->interface)}, wanted;
    int error = root.interface == 0 ? errno : 0;

    ((struct tcmsg *)request.body)->tcm_ifindex = root.interface;
    if (error == 0)
        error = netlink_ask(NETLINK_ROUTE, &request, take_root, &root);
    if (error != 0 || value == NULL)
        return error != 0 ? error : write_text(&root, text);
    return parse_root(value, &wanted) ? replace_root(&root, &wanted, &request) : EINVAL;
}
