/* Requests to the kernel by netlink(7). A request is one message with attributes. */
#pragma once

#include "agent.h"

#include <linux/rtnetlink.h>

struct netlink_request {
    struct nlmsghdr head;
    char body[512] __attribute__((aligned(8)));
};

/* Return the attribute of this type with at least `size` bytes, among `length` bytes from `first` on, or NULL. */
struct rtattr *netlink_attribute(struct rtattr *first, int length, int type, size_t size);
/* Append an attribute with `size` bytes. */
void netlink_add(struct netlink_request *request, int type, const void *data, size_t size);
/* Append an attribute that contains all those added until netlink_close_nest(). */
struct rtattr *netlink_open_nest(struct netlink_request *request, int type);
void netlink_close_nest(struct netlink_request *request, struct rtattr *nest);
/* Send a request of a protocol, such as NETLINK_ROUTE, and call `take` with each message of the answer. Returns 0 or an errno value. */
int netlink_ask(int protocol, struct netlink_request *request, void (*take)(struct nlmsghdr *message, void *into), void *into);
