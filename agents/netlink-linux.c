/* Sends requests by netlink(7), each over a new socket. */
#include "netlink.h"

#include <sys/time.h>

/* The buffer is larger than any message of a dump, and aligned for the message header. */
static char answer[32768] __attribute__((aligned(8)));

struct rtattr *netlink_attribute(struct rtattr *first, int length, int type, size_t size)
{
    for (struct rtattr *found = first; RTA_OK(found, length); found = RTA_NEXT(found, length))
        if ((found->rta_type & NLA_TYPE_MASK) == type && RTA_PAYLOAD(found) >= size)
            return found;
    return NULL;
}

void netlink_add(struct netlink_request *request, int type, const void *data, size_t size)
{
    size_t end = NLMSG_ALIGN(request->head.nlmsg_len);
    struct rtattr *added = (void *)((char *)request + end);

    if (end + RTA_SPACE(size) > sizeof *request)
        return; /* the kernel refuses a request that lacks an attribute */
    added->rta_type = (unsigned short)type;
    added->rta_len = (unsigned short)RTA_LENGTH(size);
    memcpy(RTA_DATA(added), data, size);
    request->head.nlmsg_len = (uint32_t)(end + RTA_SPACE(size));
}

struct rtattr *netlink_open_nest(struct netlink_request *request, int type)
{
    struct rtattr *nest = (void *)((char *)request + NLMSG_ALIGN(request->head.nlmsg_len));

    netlink_add(request, type | NLA_F_NESTED, "", 0);
    return nest;
}

void netlink_close_nest(struct netlink_request *request, struct rtattr *nest)
{
    nest->rta_len = (unsigned short)((char *)request + request->head.nlmsg_len - (char *)nest);
}

/* Pass the messages in `answer` to `take`. Returns false after the last message. */
static bool take_messages(size_t left, void (*take)(struct nlmsghdr *, void *), void *into, int *error)
{
    for (struct nlmsghdr *message = (void *)answer; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_type == NLMSG_ERROR)
            *error = -((struct nlmsgerr *)NLMSG_DATA(message))->error;
        else if (message->nlmsg_type != NLMSG_DONE)
            take(message, into);
        if ((message->nlmsg_flags & NLM_F_MULTI) == 0 || message->nlmsg_type == NLMSG_DONE)
            return false;
    }
    return true;
}

int netlink_ask(int protocol, struct netlink_request *request, void (*take)(struct nlmsghdr *message, void *into), void *into)
{
    struct timeval patience = {.tv_usec = 200000};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), error = 0;
    ssize_t got;

    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    got = send(fd, request, request->head.nlmsg_len, 0);
    do
        got = got < 0 ? got : recv(fd, answer, sizeof answer, 0);
    while (got > 0 && take_messages((size_t)got, take, into, &error));
    if (got < 0)
        error = errno;
    close(fd);
    return error;
}
