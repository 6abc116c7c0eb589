/* Requests of rtnetlink(7): one message and its attributes to the kernel, each answer to a function. */
#pragma once

#include <linux/rtnetlink.h>
#include <stddef.h>

struct netlink_request {
    struct nlmsghdr head;
    char body[512] __attribute__((aligned(8)));
};

/* The attribute of this type among `length` bytes from `first`, with at least `size` bytes in it; or NULL. */
struct rtattr *netlink_attribute(struct rtattr *first, int length, int type, size_t size);
/* Send it, give each message of the answer to `take`. 0 or an errno value. */
int netlink_ask(struct netlink_request *request, void (*take)(struct nlmsghdr *message, void *into), void *into);
