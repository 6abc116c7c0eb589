/* What the keys of listen, connect and start say. Each gives what is wrong, or NULL; nothing is done. */
#include <stdio.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "clock.h"
#include "orders.h"
#include "settings.h"
#include "sockopts.h"
#include "text.h"

bool parse_address(const char *text, int64_t port, struct sockaddr_storage *address, socklen_t *length)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

    memset(address, 0, sizeof *address);
    if (text != NULL && inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        *length = sizeof *v4;
        return true;
    }
    if (text != NULL && inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        *length = sizeof *v6;
        return true;
    }
    return false;
}

bool parse_token(const char *text, unsigned char *token)
{
    if (text == NULL || strlen(text) != 2 * TOKEN_BYTES)
        return false;
    for (int i = 0; i < TOKEN_BYTES; i++) {
        int byte = text_hex(text + 2 * i);

        if (byte < 0)
            return false;
        token[i] = (unsigned char)byte;
    }
    return true;
}

/* A number that need not be there; then it keeps its value. */
static bool parse_optional(struct order *order, const char *key, int64_t low, int64_t high, int64_t *number)
{
    return order_value(order, key) == NULL || order_number(order, key, low, high, number);
}

/* Whether this side's data are on a disk, and where. */
static const char *parse_disk(struct order *order, struct settings *settings)
{
    const char *folder = order_value(order, "folder");
    int64_t disk;

    if (!order_number(order, "disk", 0, 1, &disk))
        return "disk: expected 0 or 1";
    settings->disk = disk == 1;
    if (settings->disk && (folder == NULL || !percent_decode(folder, settings->folder, sizeof settings->folder)))
        return "folder: expected a folder, at most 255 bytes";
    return NULL;
}

/* What is done with the flows: a stream where the order does not say. */
static const char *parse_work(struct order *order, struct settings *settings)
{
    static char size[64];
    const char *test = order_value(order, "test"), *transport = order_value(order, "transport");
    const struct work *work;
    int64_t busy = 0;

    if (transport == NULL)
        transport = "tcp";
    if (strcmp(transport, "tcp") != 0 && strcmp(transport, "udp") != 0)
        return "transport: expected tcp or udp";
    if (test != NULL && (*test == '\0' || (work_find(test, "tcp") == NULL && work_find(test, "udp") == NULL)))
        return "test: expected pingpong, blast, file or probe";
    settings->work = work = work_find(test == NULL ? "" : test, transport);
    if (work == NULL)
        return *transport == 't' ? "transport: such a test goes over udp" : "transport: such a test goes over tcp";
    if (work->size_high > 0 && !order_number(order, "size", work->size_low, work->size_high, &settings->size)) {
        snprintf(size, sizeof size, "size: expected %lld to %lld", (long long)work->size_low, (long long)work->size_high);
        return size;
    }
    if (work->busy && !parse_optional(order, "busy", 0, 1, &busy))
        return "busy: expected 0 or 1";
    settings->busy = busy == 1;
    return work->disk ? parse_disk(order, settings) : NULL;
}

/* The range that a receiver takes its port from. */
static const char *parse_ports(struct order *order, struct settings *settings)
{
    int64_t first = 0, last = 0;

    if (!parse_optional(order, "first_port", 1, 65535, &first))
        return "first_port: expected 1 to 65535";
    if (!parse_optional(order, "last_port", 1, 65535, &last))
        return "last_port: expected 1 to 65535";
    if ((first == 0) != (last == 0) || last < first)
        return "first_port: expected with a last_port that is not below it";
    settings->first_port = (int)first;
    settings->last_port = (int)last;
    return NULL;
}

/* What one end has of its own: whether a stream's bytes are copied, and a receiver's ports. */
const char *parse_end(struct order *order, struct settings *settings, bool sender)
{
    int64_t asked = 0;

    if (settings->work->copies && !parse_optional(order, sender ? "zerocopy" : "copy", 0, 1, &asked))
        return sender ? "zerocopy: expected 0 or 1" : "copy: expected 0 or 1";
    settings->zerocopy = sender && asked == 1;
    settings->copy = !sender && asked == 1;
    return sender ? NULL : parse_ports(order, settings);
}

/* What listen and connect share. Returns the key that is wrong, or NULL. */
const char *parse_settings(struct order *order, struct settings *settings, int64_t *flows, int64_t *wait_ms)
{
    const char *interface = order_value(order, "interface");
    int64_t interval_ms;
    const char *wrong = parse_work(order, settings);

    if (wrong != NULL)
        return wrong;
    if (!parse_token(order_value(order, "token"), settings->token))
        return "token: expected 32 hexadecimal digits";
    if (!order_number(order, "flows", 1, FLOWS_MAX, flows))
        return "flows: expected 1 to 128";
    if (!order_number(order, "interval_ms", 1, 60000, &interval_ms))
        return "interval_ms: expected 1 to 60000";
    if (!order_number(order, "wait_ms", 1, 600000, wait_ms))
        return "wait_ms: expected 1 to 600000";
    if ((wrong = sockopts_parse(order, &settings->sockopts)) != NULL)
        return wrong;
    if (interface != NULL && (*interface == '\0' || strlen(interface) >= sizeof settings->interface))
        return "interface: expected a name of 1 to 15 characters";
    snprintf(settings->interface, sizeof settings->interface, "%s", interface != NULL ? interface : "");
    settings->interval_ns = interval_ms * MS;
    return NULL;
}

#define RATE_MAX INT64_C(1000000000000)
#define BURST_MAX 1000000
/* Between the first send of a flow and its next, where the order does not say. */
#define HOLD_US 1000

/* Returns what is wrong with the order, or NULL. */
const char *parse_start(struct order *order, struct start *start)
{
    int64_t hold_us = HOLD_US, duration_ms, bin_us = 0;

    *start = (struct start){.iterations = INT64_MAX};
    if (!order_number(order, "at_ns", 1, INT64_MAX / 2, &start->at_ns))
        return "at_ns: expected nanoseconds of this node's clock";
    if (!order_number(order, "duration_ms", 1, 86400000, &duration_ms))
        return "duration_ms: expected 1 to 86400000";
    if (!parse_optional(order, "hold_us", 0, 1000000, &hold_us))
        return "hold_us: expected 0 to 1000000";
    if (!parse_optional(order, "iterations", 1, ITERATIONS_MAX, &start->iterations))
        return "iterations: expected 1 to 1000000000";
    if (!parse_optional(order, "rate", 1, RATE_MAX, &start->rate))
        return "rate: expected 1 to 1000000000000";
    if (!parse_optional(order, "burst", 1, BURST_MAX, &start->burst))
        return "burst: expected 1 to 1000000";
    if (!parse_optional(order, "bin_us", 100, 1000000, &bin_us))
        return "bin_us: expected 100 to 1000000";
    if (!parse_optional(order, "capture", 4096, CAPTURE_MOST, &start->capture))
        return "capture: expected 4096 to 67108864";
    start->duration_ns = duration_ms * MS;
    start->hold_ns = hold_us * US;
    start->bin_ns = bin_us * US;
    return NULL;
}
