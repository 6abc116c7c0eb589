/* What the keys of listen, connect and start say. Each gives what is wrong, or NULL; nothing is done. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "file.h"
#include "messages.h"
#include "orders.h"
#include "settings.h"

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

static bool parse_token(const char *text, unsigned char *token)
{
    if (text == NULL || strlen(text) != 2 * TOKEN_BYTES || strspn(text, "0123456789abcdefABCDEF") != 2 * TOKEN_BYTES)
        return false;
    for (int i = 0; i < TOKEN_BYTES; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};

        token[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return true;
}

/* A number that need not be there; -1 then. */
static bool parse_optional(struct order *order, const char *key, int64_t low, int64_t high, int64_t *number)
{
    *number = -1;
    return order_value(order, key) == NULL || order_number(order, key, low, high, number);
}

/* Of a file transfer: whether this side's data are on a disk, and where. */
static const char *parse_file(struct order *order, struct settings *settings)
{
    const char *folder = order_value(order, "folder");
    int64_t disk;

    if (!order_number(order, "size", 1, FILE_MOST, &settings->message_bytes))
        return "size: expected 1 to 1099511627776";
    if (!order_number(order, "disk", 0, 1, &disk))
        return "disk: expected 0 or 1";
    settings->disk = disk == 1;
    if (settings->disk && (folder == NULL || !percent_decode(folder, settings->folder, sizeof settings->folder)))
        return "folder: expected a folder, at most 255 bytes";
    return NULL;
}

static const char *parse_datagrams(struct order *order, struct settings *settings)
{
    bool stream = settings->work == STREAM;

    if (settings->work != STREAM && settings->work != PINGPONG)
        return "transport: such a test goes over tcp";
    if (!order_number(order, "size", stream ? DATAGRAM_HEADER : 1, DATAGRAM_MAX, &settings->message_bytes))
        return stream ? "size: expected 16 to 65507" : "size: expected 1 to 65507";
    return NULL;
}

/* What is done with the flows: a stream where the order does not say. */
static const char *parse_work(struct order *order, struct settings *settings)
{
    static const struct {
        const char *name;
        enum work work;
    } tests[] = {{"pingpong", PINGPONG}, {"blast", BLAST}, {"file", PUT}};
    const char *test = order_value(order, "test"), *transport = order_value(order, "transport");
    const char *wrong = NULL;
    int64_t busy;

    settings->work = STREAM;
    for (size_t i = 0; test != NULL && i < sizeof tests / sizeof *tests; i++)
        if (strcmp(test, tests[i].name) == 0)
            settings->work = tests[i].work;
    if (test != NULL && settings->work == STREAM)
        return "test: expected pingpong, blast or file";
    if (transport != NULL && strcmp(transport, "tcp") != 0 && strcmp(transport, "udp") != 0)
        return "transport: expected tcp or udp";
    settings->udp = transport != NULL && strcmp(transport, "udp") == 0;
    if (settings->udp)
        wrong = parse_datagrams(order, settings);
    else if (settings->work == PUT)
        wrong = parse_file(order, settings);
    else if (settings->work != STREAM && !order_number(order, "size", 1, MESSAGE_MAX, &settings->message_bytes))
        wrong = "size: expected 1 to 16777216";
    if (wrong == NULL && settings->work == PINGPONG && !parse_optional(order, "busy", 0, 1, &busy))
        wrong = "busy: expected 0 or 1";
    settings->busy = wrong == NULL && settings->work == PINGPONG && busy == 1;
    return wrong;
}

/* What listen and connect share. Returns the key that is wrong, or NULL. */
const char *parse_settings(struct order *order, struct settings *settings, int64_t *flows, int64_t *wait_ms)
{
    const char *congestion = order_value(order, "congestion"), *interface = order_value(order, "interface");
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
    if (!parse_optional(order, "window", 1, 1 << 30, &settings->window))
        return "window: expected 1 to 1073741824";
    if (!parse_optional(order, "mss", 88, 32767, &settings->mss))
        return "mss: expected 88 to 32767";
    if (!parse_optional(order, "nodelay", 0, 1, &settings->nodelay))
        return "nodelay: expected 0 or 1";
    if (congestion != NULL && (*congestion == '\0' || strlen(congestion) >= sizeof settings->congestion))
        return "congestion: expected a name of 1 to 15 characters";
    if (interface != NULL && (*interface == '\0' || strlen(interface) >= sizeof settings->interface))
        return "interface: expected a name of 1 to 15 characters";
    snprintf(settings->interface, sizeof settings->interface, "%s", interface != NULL ? interface : "");
    snprintf(settings->congestion, sizeof settings->congestion, "%s", congestion != NULL ? congestion : "");
    settings->interval_ns = interval_ms * MS;
    return NULL;
}

#define RATE_MAX INT64_C(1000000000000)
/* Between the first send of a flow and its next, where the order does not say. */
#define HOLD_US 1000

/* Returns what is wrong with the order, or NULL. */
const char *parse_start(struct order *order, struct start *start)
{
    int64_t hold_us, duration_ms, bin_us, capture;

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
    if (!parse_optional(order, "bin_us", 100, 1000000, &bin_us))
        return "bin_us: expected 100 to 1000000";
    if (!parse_optional(order, "capture", 4096, CAPTURE_MOST, &capture))
        return "capture: expected 4096 to 67108864";
    start->capture = capture < 0 ? 0 : capture;
    start->duration_ns = duration_ms * MS;
    start->hold_ns = (hold_us < 0 ? HOLD_US : hold_us) * US;
    start->bin_ns = bin_us < 0 ? 0 : bin_us * US;
    return NULL;
}
