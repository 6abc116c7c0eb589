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

/* Whether this side's data are on a disk, and where. */
static const char *parse_disk(struct order *order, struct settings *settings)
{
    const char *folder = order_value(order, "folder");
    int64_t disk;
    const char *wrong = order_number(order, "disk", 0, 1, &disk);

    if (wrong != NULL)
        return wrong;
    settings->disk = disk == 1;
    if (settings->disk && (folder == NULL || !percent_decode(folder, settings->folder, sizeof settings->folder)))
        return "folder: expected a folder, at most 255 bytes";
    return NULL;
}

/* What is done with the flows: a stream where the order does not say. */
static const char *parse_work(struct order *order, struct settings *settings)
{
    const char *test = order_value(order, "test"), *transport = order_value(order, "transport");
    const char *wrong = NULL;
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
    if (work->size_high > 0)
        wrong = order_number(order, "size", work->size_low, work->size_high, &settings->size);
    if (wrong == NULL && work->busy)
        wrong = order_numbers(order, &(struct order_key){"busy", 0, 1, &busy, true}, 1);
    settings->busy = busy == 1;
    return wrong == NULL && work->disk ? parse_disk(order, settings) : wrong;
}

/* The range that a receiver takes its port from. */
static const char *parse_ports(struct order *order, struct settings *settings)
{
    int64_t first = 0, last = 0;
    const struct order_key keys[] = {{"first_port", 1, 65535, &first, true}, {"last_port", 1, 65535, &last, true}};
    const char *wrong = order_numbers(order, keys, 2);

    if (wrong != NULL)
        return wrong;
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

    const struct order_key copying = {sender ? "zerocopy" : "copy", 0, 1, &asked, true};
    const char *wrong = settings->work->copies ? order_numbers(order, &copying, 1) : NULL;

    if (wrong != NULL)
        return wrong;
    settings->zerocopy = sender && asked == 1;
    settings->copy = !sender && asked == 1;
    return sender ? NULL : parse_ports(order, settings);
}

/* What listen and connect share. Returns the key that is wrong, or NULL. */
const char *parse_settings(struct order *order, struct settings *settings, int64_t *flows, int64_t *wait_ms)
{
    const char *interface = order_value(order, "interface");
    int64_t interval_ms, mptcp = 0;
    const struct order_key keys[] = {
        {"mptcp", 0, 1, &mptcp, true},
        {"flows", 1, FLOWS_MAX, flows, false},
        {"interval_ms", 1, 60000, &interval_ms, false},
        {"wait_ms", 1, 600000, wait_ms, false},
    };
    const char *wrong = parse_work(order, settings);

    if (wrong != NULL)
        return wrong;
    if (!parse_token(order_value(order, "token"), settings->token))
        return "token: expected 32 hexadecimal digits";
    if ((wrong = order_numbers(order, keys, sizeof keys / sizeof *keys)) != NULL)
        return wrong;
    if ((wrong = sockopts_parse(order, &settings->sockopts)) != NULL)
        return wrong;
    if (interface != NULL && (*interface == '\0' || strlen(interface) >= sizeof settings->interface))
        return "interface: expected a name of 1 to 15 characters";
    snprintf(settings->interface, sizeof settings->interface, "%s", interface != NULL ? interface : "");
    settings->interval_ns = interval_ms * MS;
    settings->mptcp = mptcp == 1;
    if (settings->mptcp && strcmp(settings->work->transport, "tcp") != 0)
        return "mptcp: for tests over tcp only";
    return NULL;
}

#define RATE_MAX INT64_C(1000000000000)
#define BURST_MAX 1000000
/* Between the first send of a flow and its next, where the order does not say. */
#define HOLD_US 1000

/* Returns what is wrong with the order, or NULL. */
const char *parse_start(struct order *order, struct start *start)
{
    int64_t hold_us = HOLD_US, duration_ms = 0, bin_us = 0;
    const struct order_key keys[] = {
        {"at_ns", 1, INT64_MAX / 2, &start->at_ns, false},
        {"duration_ms", 1, 86400000, &duration_ms, false},
        {"hold_us", 0, 1000000, &hold_us, true},
        {"iterations", 1, ITERATIONS_MAX, &start->iterations, true},
        {"rate", 1, RATE_MAX, &start->rate, true},
        {"burst", 1, BURST_MAX, &start->burst, true},
        {"bin_us", 100, 1000000, &bin_us, true},
        {"capture", 4096, CAPTURE_MOST, &start->capture, true},
    };
    const char *wrong;

    *start = (struct start){.iterations = INT64_MAX};
    wrong = order_numbers(order, keys, sizeof keys / sizeof *keys);
    start->duration_ns = duration_ms * MS;
    start->hold_ns = hold_us * US;
    start->bin_ns = bin_us * US;
    return wrong;
}
