/* Requests to a card: by SIOCETHTOOL (linux/ethtool.h), and by ethtool netlink, which newer requests need (since Linux 5.6;
 * Documentation/networking/ethtool-netlink.rst of the kernel). */
#pragma once

#include "netlink.h"

/* Send a request by SIOCETHTOOL: a struct that begins with its command. Returns 0 or an errno value. */
int ethtool_call(const char *interface, void *request);

/* Begin the request `command` (ETHTOOL_MSG_…) to `interface`. `header` is the type of its header attribute, `flags` are those of the
 * header (ETHTOOL_FLAG_…). Returns 0, or an errno value: EOPNOTSUPP if the kernel lacks ethtool netlink. */
int ethtool_begin(struct netlink_request *request, int command, int header, const char *interface, uint32_t flags);
/* Send a request and call `take` with the attributes of the answer. Returns 0 or an errno value. */
int ethtool_ask(struct netlink_request *request, void (*take)(struct rtattr *first, int length, void *into), void *into);
/* Send a request that changes something. Returns 0 or an errno value. */
int ethtool_order(struct netlink_request *request);
