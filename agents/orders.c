/* The orders of the protocol: a table of verbs. An order is checked whole before anything is done. */
#include <errno.h>
#include <string.h>

#include "clock.h"
#include "control.h"
#include "data.h"
#include "endpoint.h"
#include "files.h"
#include "opening.h"
#include "orders.h"
#include "probe.h"
#include "report.h"
#include "start.h"
#include "system.h"
#include "tcp.h"

bool orders_quit;

static struct endpoint *make(struct order *order, bool sender)
{
    struct settings settings = {0};
    struct endpoint *endpoint;
    int64_t number, port = 0, flows, wait_ms;
    const struct order_key keys[] = {{"endpoint", 1, 65535, &number, false}, {"port", 1, 65535, &port, false}};
    const char *wrong, *placement = order_value(order, "placement");

    wrong = order_numbers(order, keys, sender ? 2 : 1);
    if (wrong != NULL)
        ; /* told below */
    else if (!parse_address(order_value(order, "address"), port, &settings.address, &settings.address_length))
        wrong = "address: expected an IPv4 or IPv6 address";
    else if (sender && !parse_address(order_value(order, "bind"), 0, &settings.bind, &settings.address_length))
        wrong = "bind: expected an IPv4 or IPv6 address";
    else if (sender && settings.bind.ss_family != settings.address.ss_family)
        wrong = "bind: expected an address of the same family";
    else
        wrong = parse_settings(order, &settings, &flows, &wait_ms);
    if (wrong == NULL)
        wrong = parse_end(order, &settings, sender);
    if (wrong != NULL || (wrong = order_unused(order)) != NULL) {
        answer_refused(order->id, "%s", wrong);
        return NULL;
    }
    if ((wrong = placement_parse(placement, settings.interface, &settings.placement)) != NULL) {
        answer_error(order->id, EINVAL, "%s", wrong);
        return NULL;
    }
    if (endpoint_find(number) != NULL) {
        answer_error(order->id, EEXIST, "endpoint %lld is in use", (long long)number);
        return NULL;
    }
    endpoint = endpoint_new(number, sender, flows, &settings);
    if (endpoint == NULL) {
        answer_error(order->id, errno, "no room for another endpoint: %s", strerror(errno));
        return NULL;
    }
    endpoint->openings.until_ns = clock_now() + wait_ms * MS;
    return endpoint;
}

static bool begin_files(struct order *order, struct endpoint *endpoint)
{
    int error = files_begin(endpoint);

    if (error == 0)
        return true;
    answer_error(order->id, error, "folder %s: %s", endpoint->settings.folder,
                 error == EINVAL ? "it is in memory, not on a disk" : strerror(error));
    endpoint_free(endpoint);
    return false;
}

static void do_listen(struct order *order)
{
    struct endpoint *endpoint = make(order, false);

    if (endpoint == NULL)
        return;
    if (tcp_listen(endpoint) != 0) {
        answer_error(order->id, endpoint->failure.error, "%s", endpoint->failure.message);
        endpoint_free(endpoint);
        return;
    }
    if (!begin_files(order, endpoint))
        return;
    line_begin();
    line_add("{\"id\":%lld,\"ok\":true,\"port\":%d}", (long long)order->id, endpoint->port);
    line_end();
}

static void do_connect(struct order *order)
{
    struct endpoint *endpoint = make(order, true);

    if (endpoint == NULL)
        return;
    if (tcp_connect(endpoint) != 0 || data_make() != 0) {
        endpoint_note(endpoint, errno, "no memory for the data to send");
        answer_error(order->id, endpoint->failure.error, "%s", endpoint->failure.message);
        endpoint_free(endpoint);
        return;
    }
    if (!begin_files(order, endpoint))
        return;
    opening_begin(endpoint);
    endpoint->openings.waiting_id = order->id;
}

/* The endpoint an order names; refuses the order where there is none, or where a key is left over. */
static struct endpoint *named(struct order *order)
{
    int64_t number;
    struct endpoint *endpoint = NULL;
    const char *wrong = order_number(order, "endpoint", 1, 65535, &number);

    if (wrong != NULL || (wrong = order_unused(order)) != NULL)
        answer_refused(order->id, "%s", wrong);
    else if ((endpoint = endpoint_find(number)) == NULL)
        answer_error(order->id, ENOENT, "there is no endpoint %lld", (long long)number);
    return endpoint;
}

static void do_ready(struct order *order)
{
    struct endpoint *endpoint = named(order);

    if (endpoint == NULL)
        return;
    if (endpoint->sender || endpoint->openings.waiting_id != 0 || endpoint->state == RUNNING)
        answer_error(order->id, EINVAL, "endpoint %d is not waiting for its flows", endpoint->number);
    else if (endpoint->state == ENDED)
        answer_error(order->id, endpoint->failure.error, "%s", endpoint->failure.message);
    else if (endpoint->state == READY)
        answer_ok(order->id);
    else
        endpoint->openings.waiting_id = order->id;
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
    if (start->iterations < INT64_MAX && !settings->work->messages)
        return "iterations: a stream has none";
    if (start->rate > 0 && !settings->work->rate)
        return "rate: for streams only";
    if (start->rate > 0 && !settings->work->bursts && !SYSTEM_PACES)
        return "rate: this system does not pace TCP";
    if (start->burst > 0 && (start->rate == 0 || !settings->work->bursts))
        return "burst: for streams of datagrams with a rate only";
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
    error = start_flows(endpoint, &start);
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
    if (endpoint->state != ENDED || endpoint->report.id != 0) {
        answer_error(order->id, EBUSY, "endpoint %d has not ended", endpoint->number);
        return;
    }
    report_begin(endpoint, order->id);
}

static void do_close(struct order *order)
{
    struct endpoint *endpoint = named(order);

    if (endpoint == NULL)
        return;
    if (endpoint->openings.waiting_id != 0)
        answer_error(endpoint->openings.waiting_id, ECONNABORTED, "endpoint %d was closed", endpoint->number);
    if (endpoint->report.id != 0)
        answer_error(endpoint->report.id, ECONNABORTED, "endpoint %d was closed", endpoint->number);
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
    {"probe", false, orders_probe}, {"probed", false, orders_probed},
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
