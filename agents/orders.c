/* The orders of the protocol, as a table of verbs. An order is checked completely before it has any effect. */
#include "orders.h"
#include "clock.h"
#include "endpoint.h"
#include "settings.h"
#include "system.h"

#define ITERATIONS_MAX 1000000000
#define RATE_MAX INT64_C(1000000000000)
#define PER_SECOND_MAX 1000000
#define BURST_MAX 1000000
#define HOLD_US 1000 /* default time between the first and the second send of a flow */

bool orders_quit;

/* Read the kind of test; by default a TCP stream. Returns NULL, or what is wrong with the order. */
static const char *parse_work(struct order *order, const struct work **work)
{
    const char *test = order_value(order, "test"), *transport = order_value(order, "transport");

    if (transport == NULL)
        transport = "tcp";
    if (strcmp(transport, "tcp") != 0 && strcmp(transport, "udp") != 0)
        return "transport: expected tcp or udp";
    if (test != NULL && (*test == '\0' || (work_find(test, "tcp") == NULL && work_find(test, "udp") == NULL)))
        return "test: expected pingpong, blast, file, connect, requests, burst, multicast or probe";
    *work = work_find(test == NULL ? "" : test, transport);
    if (*work == NULL)
        return *transport == 't' ? "transport: such a test goes over udp" : "transport: such a test goes over tcp";
    return NULL;
}

/* Read who closes the connections that a test opens. Returns NULL, or what is wrong. */
static const char *parse_closing(struct order *order, const struct work *work, enum closing *closing)
{
    static const char *const names[] = {[CLOSE_RESET] = "reset", [CLOSE_SENDER] = "sender", [CLOSE_RECEIVER] = "receiver"};
    const char *value;

    if (!work->connects)
        return NULL;
    value = order_value(order, "close");
    for (size_t i = 0; i < sizeof names / sizeof *names && value != NULL; i++)
        if (strcmp(names[i], value) == 0) {
            *closing = (enum closing)i;
            return NULL;
        }
    return "close: expected reset, sender or receiver";
}

/* Read the keys of `listen` and `connect`. Returns NULL, or what is wrong with the order. */
static const char *parse_endpoint(struct order *order, bool sender, struct request *request, int64_t *number, int64_t *flows,
                                  int64_t *wait_ms)
{
    const char *interface = order_value(order, "interface"), *folder = order_value(order, "folder"), *wrong;
    const struct work *work = NULL;
    int64_t port = 0, interval_ms = 0;

    if ((wrong = parse_work(order, &work)) != NULL)
        return wrong;
    const struct order_key keys[] = {
        {"endpoint", 1, 65535, number, false},
        {"flows", 1, work->multicast ? 1 : FLOWS_MAX, flows, false},
        {"interval_ms", 1, 60000, &interval_ms, false},
        {"wait_ms", 1, 600000, wait_ms, false},
        {sender ? "port" : NULL, 1, 65535, &port, false},
        {sender ? NULL : "first_port", 1, 65535, &request->first_port, true},
        {sender ? NULL : "last_port", 1, 65535, &request->last_port, true},
        {work->size_high > 0 ? "size" : NULL, work->size_low, work->size_high, &request->size, false},
        {work->scheduled ? "reply" : NULL, work->size_low, work->size_high, &request->reply, false},
        {work->by_burst ? "length" : NULL, 1, BURST_MAX, &request->length, false},
        {work->trips && !work->connects && !work->scheduled ? "busy" : NULL, 0, 1, &request->busy, true},
        {work->disk ? "disk" : NULL, 0, 1, &request->disk, false},
        {work->copies && sender ? "zerocopy" : NULL, 0, 1, &request->zerocopy, true},
        {work->copies && !sender ? "copy" : NULL, 0, 1, &request->copy, true},
        {"mptcp", 0, 1, &request->mptcp, true},
    };

    if ((wrong = order_numbers(order, keys, sizeof keys / sizeof *keys)) != NULL ||
        (wrong = endpoint_parse_path(order, port, sender, request)) != NULL ||
        (wrong = parse_closing(order, work, &request->closing)) != NULL ||
        (work->multicast && (wrong = multicast_parse(order, sender, request)) != NULL) ||
        (wrong = sockopts_parse(order, &request->sockopts)) != NULL)
        return wrong;
    if ((request->first_port == 0) != (request->last_port == 0) || request->last_port < request->first_port)
        return "first_port: expected with a last_port that is not below it";
    if (request->disk && (folder == NULL || !percent_decode(folder, request->folder, sizeof request->folder)))
        return "folder: expected a folder, at most 255 bytes";
    if (request->disk && !SYSTEM_IS_ABSOLUTE(request->folder))
        return "folder: expected an absolute path of this system";
    if (interface != NULL && (*interface == '\0' || !percent_decode(interface, request->interface, INTERFACE_ROOM)))
        return "interface: expected a name of 1 to " INTERFACE_MOST;
    if (request->mptcp && strcmp(work->transport, "tcp") != 0)
        return "mptcp: for tests over tcp only";
    request->interval_ns = interval_ms * MS;
    request->work = work;
    return NULL;
}

/* Return the first key of the order that requests a feature which this system lacks; NULL if there is none. */
static const char *find_lacking(struct order *order)
{
    static const char *const lacking[] = {SYSTEM_LACKS NULL};

    for (const char *const *key = lacking; *key != NULL; key++) {
        const char *value = order_value(order, *key);

        if (value != NULL && strcmp(value, "0") != 0)
            return *key;
    }
    return NULL;
}

/* Make the endpoint that an order describes. Returns NULL if the order was refused. */
static struct endpoint *make_endpoint(struct order *order, bool sender)
{
    struct request request = {0};
    struct endpoint *endpoint;
    int64_t number = 0, flows = 0, wait_ms = 0;
    const char *placement = order_value(order, "placement");
    const char *wrong = parse_endpoint(order, sender, &request, &number, &flows, &wait_ms);

    if (order_refuse(order, wrong))
        return NULL;
    if ((wrong = find_lacking(order)) != NULL) {
        answer_error(order->id, EOPNOTSUPP, "%s: this system has no such setting", wrong);
        return NULL;
    }
    if ((wrong = placement_parse(placement, request.interface, &request.placement)) != NULL) {
        answer_error(order->id, EINVAL, "%s", wrong);
        return NULL;
    }
    if (endpoint_find(number) != NULL) {
        answer_error(order->id, EEXIST, "endpoint %lld is in use", (long long)number);
        return NULL;
    }
    endpoint = endpoint_new(number, sender, flows, &request);
    if (endpoint == NULL) {
        answer_error(order->id, errno, "no room for another endpoint: %s", strerror(errno));
        return NULL;
    }
    endpoint->openings.until_ns = clock_now() + wait_ms * MS;
    return endpoint;
}

static bool begin_files(struct order *order, struct endpoint *endpoint)
{
    int error = opening_begin_files(endpoint);

    if (error == 0)
        return true;
    answer_error(order->id, error, "folder %s: %s", endpoint->request.folder,
                 error == EINVAL ? "it is in memory, not on a disk" : strerror(error));
    endpoint_free(endpoint);
    return false;
}

/* Answer with the reason why an endpoint failed, and free the endpoint. */
static void refuse_failed(struct order *order, struct endpoint *endpoint)
{
    answer_error(order->id, endpoint->failure.error, "%s", endpoint->failure.message);
    endpoint_free(endpoint);
}

static void do_listen(struct order *order)
{
    struct endpoint *endpoint = make_endpoint(order, false);

    if (endpoint == NULL)
        return;
    if (tcp_listen(endpoint) != 0) {
        refuse_failed(order, endpoint);
    } else if (begin_files(order, endpoint)) {
        answer_begin_ok(order->id);
        line_add_count("port", endpoint->port);
        line_end();
    }
}

static void do_connect(struct order *order)
{
    struct endpoint *endpoint = make_endpoint(order, true);

    if (endpoint == NULL)
        return;
    data_fill();
    if (tcp_connect(endpoint) != 0) {
        refuse_failed(order, endpoint);
    } else if (begin_files(order, endpoint)) {
        opening_begin(endpoint);
        endpoint->openings.waiting_id = order->id;
    }
}

/* Return the endpoint that an order names. If `wrong` is not NULL or there is no such endpoint, refuse the order and return NULL. */
static struct endpoint *find_endpoint(struct order *order, const char *wrong)
{
    int64_t number = 0;
    struct endpoint *endpoint = NULL;

    if (wrong == NULL)
        wrong = order_number(order, "endpoint", 1, 65535, &number);
    if (order_refuse(order, wrong))
        return NULL;
    endpoint = endpoint_find(number);
    if (endpoint == NULL)
        answer_error(order->id, ENOENT, "there is no endpoint %lld", (long long)number);
    return endpoint;
}

static void do_ready(struct order *order, struct endpoint *endpoint)
{
    if (endpoint->sender || endpoint->openings.waiting_id != 0 || endpoint->state == RUNNING)
        answer_error(order->id, EINVAL, "endpoint %d is not waiting for its flows", endpoint->number);
    else if (endpoint->state == ENDED)
        answer_error(order->id, endpoint->failure.error, "%s", endpoint->failure.message);
    else if (endpoint->state == READY)
        answer_ok(order->id);
    else
        endpoint->openings.waiting_id = order->id;
}

static const char *parse_start(struct order *order, struct start *start, int64_t *per_second)
{
    int64_t hold_us = HOLD_US, duration_ms = 0, bin_us = 0;
    const struct order_key keys[] = {
        {"at_ns", 1, INT64_MAX / 2, &start->at_ns, false},
        {"duration_ms", 1, 86400000, &duration_ms, false},
        {"hold_us", 0, 1000000, &hold_us, true},
        {"iterations", 1, ITERATIONS_MAX, &start->iterations, true},
        {"rate", 1, RATE_MAX, &start->rate, true},
        {"burst", 1, BURST_MAX, &start->burst, true},
        {"per_second", 1, PER_SECOND_MAX, per_second, true},
        {"bin_us", 100, 1000000, &bin_us, true},
        {"capture", 4096, CAPTURE_MOST, &start->capture, true},
    };
    const char *wrong;

    *start = (struct start){.iterations = INT64_MAX};
    wrong = order_numbers(order, keys, sizeof keys / sizeof *keys);
    start->end_ns = start->at_ns + duration_ms * MS;
    start->bulk_ns = start->at_ns + hold_us * US;
    start->bin_ns = bin_us * US;
    return wrong;
}

/* Return why this endpoint cannot start as ordered, or NULL if it can. */
static const char *refuse_start(const struct endpoint *endpoint, const struct start *start)
{
    const struct request *request = &endpoint->request;
    int64_t duration_ns = start->end_ns - start->at_ns;

    if (endpoint->state != READY)
        return "the endpoint is not ready to start";
    if (start->at_ns > clock_now() + 3600 * SECOND)
        return "at_ns is more than an hour ahead";
    if (duration_ns / request->interval_ns > SAMPLES_MAX)
        return "more than 36000 samples per flow: ask for a longer interval_ms";
    if (start->bin_ns > 0 && duration_ns / start->bin_ns > BINS_MAX)
        return "more than 4000000 bins per flow: ask for a longer bin_us";
    if (start->iterations < INT64_MAX && !request->work->messages)
        return "iterations: a stream has none";
    if (start->rate > 0 && !request->work->rate)
        return "rate: for streams only";
    if (start->rate > 0 && !request->work->bursts && !SYSTEM_PACES)
        return "rate: this system does not pace TCP";
    if (start->burst > 0 && (start->rate == 0 || !request->work->bursts))
        return "burst: for streams of datagrams with a rate only";
    if (start->every_ns > 0 && !request->work->connects && !request->work->scheduled)
        return "per_second: for connections and requests only";
    if (start->every_ns == 0 && request->work->scheduled && endpoint->sender)
        return "per_second: needed by a sender of requests";
    if (start->capture > 0 && request->interface[0] == '\0')
        return "capture: the endpoint has no interface";
    return NULL;
}

static void do_start(struct order *order)
{
    struct start start;
    int64_t per_second = 0;
    struct endpoint *endpoint = find_endpoint(order, parse_start(order, &start, &per_second));
    const char *wrong;
    int error;

    if (endpoint == NULL)
        return;
    if (per_second > 0) {
        start.stagger_ns = SECOND / per_second;
        start.every_ns = endpoint->flow_count * SECOND / per_second;
    }
    wrong = refuse_start(endpoint, &start);
    if (wrong != NULL) {
        answer_error(order->id, EINVAL, "%s", wrong);
        return;
    }
    endpoint->start = start;
    error = life_start(endpoint);
    if (error != 0) {
        answer_error(order->id, error, "start%s: %s", start.capture > 0 && endpoint->capture == NULL ? ": capture" : "",
                     strerror(error));
        endpoint_free(endpoint);
    } else {
        answer_ok(order->id);
    }
}

static void do_stop(struct order *order, struct endpoint *endpoint)
{
    endpoint_stop(endpoint);
    answer_ok(order->id);
}

static void do_report(struct order *order, struct endpoint *endpoint)
{
    if (endpoint->state != ENDED || endpoint->report.id != 0)
        answer_error(order->id, EBUSY, "endpoint %d has not ended", endpoint->number);
    else
        report_begin(endpoint, order->id);
}

static void do_close(struct order *order, struct endpoint *endpoint)
{
    const int64_t unanswered[] = {endpoint->openings.waiting_id, endpoint->report.id};

    for (size_t i = 0; i < sizeof unanswered / sizeof *unanswered; i++)
        if (unanswered[i] != 0)
            answer_error(unanswered[i], ECONNABORTED, "endpoint %d was closed", endpoint->number);
    endpoint_free(endpoint);
    answer_ok(order->id);
}

static void do_clock(struct order *order)
{
    answer_begin_ok(order->id);
    line_add_count("clock_ns", clock_now());
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

/* Each verb has one of three functions: `bare` takes no keys, `act` reads its own keys, `at` takes only the key `endpoint`. */
static const struct verb {
    const char *name;
    void (*bare)(struct order *order);
    void (*act)(struct order *order);
    void (*at)(struct order *order, struct endpoint *endpoint);
} verbs[] = {
    {"clock", .bare = do_clock}, {"ping", .bare = do_ping}, {"quit", .bare = do_quit}, {"restore", .bare = orders_restore},
    {"listen", .act = do_listen}, {"connect", .act = do_connect}, {"start", .act = do_start}, {"set", .act = orders_set},
    {"probe", .act = orders_probe}, {"probed", .act = orders_probed},
#if defined(_WIN32)
    {"facts", .bare = orders_facts},
#endif
    {"ready", .at = do_ready}, {"stop", .at = do_stop}, {"report", .at = do_report}, {"close", .at = do_close},
};

static void carry_out(const struct verb *verb, struct order *order)
{
    struct endpoint *endpoint;

    if (verb->act != NULL)
        verb->act(order);
    else if (verb->bare != NULL && !order_refuse(order, NULL))
        verb->bare(order);
    else if (verb->at != NULL && (endpoint = find_endpoint(order, NULL)) != NULL)
        verb->at(order, endpoint);
}

void orders_take(char *line, bool whole)
{
    struct order order;
    const char *wrong = order_parse(line, &order);

    if (!whole)
        wrong = "an order of more than 4096 bytes";
    if (wrong != NULL) {
        answer_refusal(order.id, "%s", wrong);
        return;
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, order.verb) == 0) {
            carry_out(&verbs[i], &order);
            return;
        }
    answer_refusal(order.id, "%.40s: unknown verb", order.verb);
}
