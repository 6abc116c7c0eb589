/* The orders of the protocol: a table of verbs. An order is checked whole before anything is done. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "endpoint.h"
#include "messages.h"
#include "orders.h"
#include "settings.h"

bool orders_quit;

static bool parse_address(const char *text, int64_t port, struct sockaddr_storage *address, socklen_t *length)
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

/* What is done with the flows: a stream where the order does not say. */
static const char *parse_messages(struct order *order, struct settings *settings)
{
    const char *test = order_value(order, "test"), *transport = order_value(order, "transport");
    int64_t busy;

    if (transport != NULL && strcmp(transport, "tcp") != 0 && strcmp(transport, "udp") != 0)
        return "transport: expected tcp or udp";
    settings->udp = transport != NULL && strcmp(transport, "udp") == 0;
    if (test != NULL && strcmp(test, "pingpong") != 0 && strcmp(test, "blast") != 0)
        return "test: expected pingpong or blast";
    settings->work = test == NULL ? STREAM : strcmp(test, "pingpong") == 0 ? PINGPONG : BLAST;
    if (settings->udp && settings->work == BLAST)
        return "transport: a blast goes over tcp";
    if (settings->udp && !order_number(order, "size", test == NULL ? DATAGRAM_HEADER : 1, DATAGRAM_MAX, &settings->message_bytes))
        return test == NULL ? "size: expected 16 to 65507" : "size: expected 1 to 65507";
    if (!settings->udp && test != NULL && !order_number(order, "size", 1, MESSAGE_MAX, &settings->message_bytes))
        return "size: expected 1 to 16777216";
    if (settings->work == PINGPONG && !parse_optional(order, "busy", 0, 1, &busy))
        return "busy: expected 0 or 1";
    settings->busy = settings->work == PINGPONG && busy == 1;
    return NULL;
}

/* What listen and connect share. Returns the key that is wrong, or NULL. */
static const char *parse_settings(struct order *order, struct settings *settings, int64_t *flows, int64_t *wait_ms)
{
    const char *congestion = order_value(order, "congestion"), *interface = order_value(order, "interface");
    int64_t interval_ms;
    const char *wrong = parse_messages(order, settings);

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

static struct endpoint *make(struct order *order, bool sender, int64_t *wait_ms)
{
    struct settings settings = {0};
    struct endpoint *endpoint;
    int64_t number, port = 0, flows;
    const char *wrong = NULL, *unused;

    if (!order_number(order, "endpoint", 1, 65535, &number))
        wrong = "endpoint: expected 1 to 65535";
    else if (sender && !order_number(order, "port", 1, 65535, &port))
        wrong = "port: expected 1 to 65535";
    else if (!parse_address(order_value(order, "address"), port, &settings.address, &settings.address_length))
        wrong = "address: expected an IPv4 or IPv6 address";
    else if (sender && !parse_address(order_value(order, "bind"), 0, &settings.bind, &settings.address_length))
        wrong = "bind: expected an IPv4 or IPv6 address";
    else if (sender && settings.bind.ss_family != settings.address.ss_family)
        wrong = "bind: expected an address of the same family";
    else
        wrong = parse_settings(order, &settings, &flows, wait_ms);
    if (wrong != NULL || (unused = order_unused(order)) != NULL) {
        answer_refused(order->id, "%s%s", wrong != NULL ? wrong : unused, wrong != NULL ? "" : ": unknown key");
        return NULL;
    }
    if (endpoint_find(number) != NULL) {
        answer_error(order->id, EEXIST, "endpoint %lld is in use", (long long)number);
        return NULL;
    }
    endpoint = endpoint_new(number, sender, flows);
    if (endpoint == NULL) {
        answer_error(order->id, errno, "no room for another endpoint: %s", strerror(errno));
        return NULL;
    }
    endpoint->settings = settings;
    endpoint->wait_until_ns = clock_now() + *wait_ms * MS;
    return endpoint;
}

static void do_listen(struct order *order)
{
    int64_t wait_ms;
    int port;
    struct endpoint *endpoint = make(order, false, &wait_ms);

    if (endpoint == NULL)
        return;
    if (tcp_listen(endpoint, &port) != 0) {
        answer_error(order->id, endpoint->error, "%s", endpoint->message);
        endpoint_free(endpoint);
        return;
    }
    line_begin();
    line_add("{\"id\":%lld,\"ok\":true,\"port\":%d}", (long long)order->id, port);
    line_end();
}

static void do_connect(struct order *order)
{
    int64_t wait_ms;
    int flow;
    struct endpoint *endpoint = make(order, true, &wait_ms);

    if (endpoint == NULL)
        return;
    if (tcp_connect(endpoint, &flow) != 0 || flow_prepare_data() != 0) {
        int error = endpoint->error != 0 ? endpoint->error : errno;

        answer_error(order->id, error, "%s", endpoint->error != 0 ? endpoint->message : "no memory for the data to send");
        endpoint_free(endpoint);
        return;
    }
    for (int i = 0; i < endpoint->flow_count; i++)
        endpoint->openings[endpoint->opening_count++] = (struct opening){.fd = endpoint->flows[i].fd, .number = i};
    endpoint->waiting_id = order->id;
}

/* The endpoint an order names; refuses the order where there is none, or where a key is left over. */
static struct endpoint *named(struct order *order)
{
    int64_t number;
    struct endpoint *endpoint = NULL;

    if (!order_number(order, "endpoint", 1, 65535, &number))
        answer_refused(order->id, "endpoint: expected 1 to 65535");
    else if (order_unused(order) != NULL)
        answer_refused(order->id, "%s: unknown key", order_unused(order));
    else if ((endpoint = endpoint_find(number)) == NULL)
        answer_error(order->id, ENOENT, "there is no endpoint %lld", (long long)number);
    return endpoint;
}

static void do_ready(struct order *order)
{
    struct endpoint *endpoint = named(order);

    if (endpoint == NULL)
        return;
    if (endpoint->sender || endpoint->waiting_id != 0 || endpoint->state == RUNNING)
        answer_error(order->id, EINVAL, "endpoint %d is not waiting for its flows", endpoint->number);
    else if (endpoint->state == ENDED)
        answer_error(order->id, endpoint->error, "%s", endpoint->message);
    else if (endpoint->state == READY)
        answer_ok(order->id);
    else
        endpoint->waiting_id = order->id;
}

#define RATE_MAX INT64_C(1000000000000)
/* Between the first send of a flow and its next, where the order does not say. */
#define HOLD_US 1000

/* Returns what is wrong with the order, or NULL. */
static const char *parse_start(struct order *order, struct start *start)
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

/* Returns why this endpoint cannot start so, or NULL. */
static const char *refuse_start(const struct endpoint *endpoint, const struct start *start)
{
    const struct settings *settings = &endpoint->settings;

    if (endpoint->state != READY)
        return "the endpoint is not ready to start";
    if (start->at_ns > clock_now() + 3600 * SECOND)
        return "at_ns is more than an hour ahead";
    if (start->duration_ns / settings->interval_ns > SAMPLES_MAX)
        return "more than 36000 samples per flow: ask for a longer interval_ms";
    if (start->bin_ns > 0 && start->duration_ns / start->bin_ns > BINS_MAX)
        return "more than 4000000 bins per flow: ask for a longer bin_us";
    if (start->iterations > 0 && settings->work == STREAM)
        return "iterations: a stream has none";
    if (start->rate > 0 && (!settings->udp || settings->work != STREAM))
        return "rate: for streams of datagrams only";
    if (start->capture > 0 && settings->interface[0] == '\0')
        return "capture: the endpoint has no interface";
    return NULL;
}

static void do_start(struct order *order)
{
    struct endpoint *endpoint;
    struct start start;
    const char *wrong = parse_start(order, &start);
    int error;

    if (wrong != NULL) {
        answer_refused(order->id, "%s", wrong);
        return;
    }
    endpoint = named(order);
    if (endpoint == NULL)
        return;
    wrong = refuse_start(endpoint, &start);
    if (wrong != NULL) {
        answer_error(order->id, EINVAL, "%s", wrong);
        return;
    }
    if (start.iterations < 0)
        start.iterations = INT64_MAX;
    if (start.rate < 0)
        start.rate = 0;
    sample_nic(endpoint->settings.interface, &endpoint->nic_before);
    error = tcp_start(endpoint, &start);
    if (error != 0) {
        answer_error(order->id, error, "start%s: %s", start.capture > 0 && endpoint->capture == NULL ? ": capture" : "",
                     strerror(error));
        endpoint_free(endpoint);
    } else {
        answer_ok(order->id);
    }
}

static void do_stop(struct order *order)
{
    struct endpoint *endpoint = named(order);

    if (endpoint == NULL)
        return;
    endpoint_stop(endpoint);
    answer_ok(order->id);
}

static void do_report(struct order *order)
{
    struct endpoint *endpoint = named(order);

    if (endpoint == NULL)
        return;
    if (endpoint->state != ENDED || endpoint->report_id != 0) {
        answer_error(order->id, EBUSY, "endpoint %d has not ended", endpoint->number);
        return;
    }
    endpoint->report_id = order->id;
    endpoint->report_flow = 0;
    endpoint->report_row = -1;
    endpoint->report_bucket = 0;
    endpoint->report_bin = 0;
    endpoint->report_captured = 0;
}

static void do_close(struct order *order)
{
    struct endpoint *endpoint = named(order);

    if (endpoint == NULL)
        return;
    if (endpoint->waiting_id != 0)
        answer_error(endpoint->waiting_id, ECONNABORTED, "endpoint %d was closed", endpoint->number);
    if (endpoint->report_id != 0)
        answer_error(endpoint->report_id, ECONNABORTED, "endpoint %d was closed", endpoint->number);
    endpoint_free(endpoint);
    answer_ok(order->id);
}

static void do_clock(struct order *order)
{
    line_begin();
    line_add("{\"id\":%lld,\"ok\":true,\"clock_ns\":%lld}", (long long)order->id, (long long)clock_now());
    line_end();
}

static void do_ping(struct order *order)
{
    answer_ok(order->id);
}

static void do_quit(struct order *order)
{
    answer_ok(order->id);
    orders_quit = true;
}

static const struct {
    const char *verb;
    bool bare; /* takes no keys */
    void (*act)(struct order *order);
} verbs[] = {
    {"clock", true, do_clock},   {"listen", false, do_listen}, {"connect", false, do_connect}, {"ready", false, do_ready},
    {"start", false, do_start},  {"stop", false, do_stop},     {"report", false, do_report},   {"close", false, do_close},
    {"ping", true, do_ping},     {"quit", true, do_quit},      {"set", false, orders_set},     {"restore", true, orders_restore},
};

void orders_take(char *line, bool whole)
{
    struct order order;
    const char *wrong = order_parse(line, &order);

    if (!whole)
        wrong = "an order of more than 1024 bytes";
    if (wrong != NULL) {
        answer_refused(order.id, "%s", wrong);
        return;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].verb, order.verb) != 0)
            continue;
        if (verbs[i].bare && order.count > 0)
            answer_refused(order.id, "%s: unknown key", order.keys[0]);
        else
            verbs[i].act(&order);
        return;
    }
    answer_refused(order.id, "%.40s: unknown verb", order.verb);
}
