/* rigctl-agent: makes and measures traffic on a node, by orders on its standard input (docs/reference/agent-protocol.md).
 *
 * One poll loop serves orders, openings, samples and ends; one thread per flow moves the bytes. It ends by itself whenever
 * nobody is left to tell it what to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock.h"
#include "control.h"
#include "endpoint.h"
#include "files.h"
#include "life.h"
#include "lock.h"
#include "opening.h"
#include "orders.h"
#include "report.h"
#include "sample.h"
#include "settings.h"
#include "system.h"
#include "text.h"

#ifndef AGENT_VERSION
#error "AGENT_VERSION comes from the Makefile"
#endif
#define PROTOCOL 4
#define WATCHDOG_S 15
#define PROGRESS_NS SECOND
#define LOCK_NS (200 * MS) /* between looks whether the queue has moved */
#define BUSY 3

#define POLLS_MAX 4096
enum { POLL_STDIN, POLL_STDOUT, POLL_SIGNAL, POLL_WAKE, POLL_FIXED };

static struct pollfd polls[POLLS_MAX];
static int64_t heard_ns, next_progress_ns = INT64_MAX;
static bool begun; /* the node is ours, and the hello is said */

static const char *machine(void)
{
    static struct utsname name;

    return uname(&name) == 0 ? name.machine : "unknown";
}

static void say_hello(void)
{
    line_begin();
    line_add("{\"event\":\"hello\",\"protocol\":%d,\"agent\":\"%s\",\"machine\":\"%s\",\"pid\":%d,\"cpus\":%d,\"clock_ns\":%lld",
             PROTOCOL, AGENT_VERSION, machine(), (int)getpid(), sample_cpus(), (long long)clock_now());
    line_add_count("restored", settings_restored());
    if (settings_unrestored() != NULL) {
        line_add(",\"unrestored\":");
        line_add_string(settings_unrestored());
    } else {
        line_add(",\"unrestored\":null");
    }
    line_add("}");
    line_end();
}

static bool receiving(const struct endpoint *endpoint)
{
    return endpoint != NULL && !endpoint->sender && endpoint->state == RUNNING;
}

/* One line a second for all receivers together; none where the peer has not read the last one. */
static void say_progress(int64_t now)
{
    bool any = false;

    for (int i = 0; i < ENDPOINTS_MAX; i++) {
        if (!receiving(endpoints[i]))
            continue;
        if (!any) {
            line_begin();
            line_add("{\"event\":\"progress\",\"clock_ns\":%lld,\"bytes\":{", (long long)now);
        }
        line_add("%s\"%d\":%lld", any ? "," : "", endpoints[i]->number,
                 (long long)endpoint_bytes(endpoints[i]));
        any = true;
    }
    if (any) {
        line_add("}}");
        line_end();
    }
}

static void serve_progress(int64_t now)
{
    bool any = false;

    for (int i = 0; i < ENDPOINTS_MAX && !any; i++)
        any = receiving(endpoints[i]);
    if (!any)
        next_progress_ns = INT64_MAX;
    else if (next_progress_ns == INT64_MAX)
        next_progress_ns = now + PROGRESS_NS;
    else if (now >= next_progress_ns) {
        if (control_pending() == 0)
            say_progress(now);
        next_progress_ns += PROGRESS_NS;
    }
}

static int64_t earliest_deadline(int64_t watchdog_ns)
{
    int64_t first = heard_ns + watchdog_ns, now = clock_now();

    if (!begun)
        return now + LOCK_NS < first ? now + LOCK_NS : first;
    if (next_progress_ns < first)
        first = next_progress_ns;
    for (int i = 0; i < ENDPOINTS_MAX; i++) {
        int64_t opening, life;

        if (endpoints[i] == NULL)
            continue;
        if (endpoints[i]->report.id != 0 && control_roomy())
            return 0;
        opening = opening_deadline(endpoints[i], now);
        life = life_deadline(endpoints[i]);
        if (opening < first)
            first = opening;
        if (life < first)
            first = life;
    }
    return first;
}

static int wait_for_news(int64_t deadline, int counts[ENDPOINTS_MAX])
{
    int64_t left = deadline - clock_now();
    struct timespec wait = clock_spec(left);
    int used = POLL_FIXED;

    polls[POLL_STDIN].events = POLLIN;
    polls[POLL_STDOUT] = (struct pollfd){.fd = control_pending() > 0 ? STDOUT_FILENO : -1, .events = POLLOUT};
    for (int i = 0; i < ENDPOINTS_MAX; i++) {
        counts[i] = endpoints[i] == NULL ? 0 : opening_polls(endpoints[i], polls + used, POLLS_MAX - used);
        used += counts[i];
    }
    return ppoll(polls, (nfds_t)used, &wait, NULL);
}

static void serve_endpoints(const int counts[ENDPOINTS_MAX])
{
    int used = POLL_FIXED;
    int64_t now = clock_now();

    for (int i = 0; i < ENDPOINTS_MAX; i++) {
        if (endpoints[i] == NULL)
            continue;
        opening_serve(endpoints[i], polls + used, counts[i]);
        used += counts[i];
        opening_expire(endpoints[i], now);
        files_serve(endpoints[i]);
        life_serve(endpoints[i], now);
        report_serve(endpoints[i]);
    }
}

/* Say hello once the node is ours; until then, where we stand. Returns 0, or the exit code. */
static int begin(void)
{
    enum lock lock = lock_advance();

    if (lock == LOCK_FAILED) {
        dprintf(STDERR_FILENO, "rigctl-agent: cannot lock the node: %s\n", strerror(errno));
        return 1;
    }
    if (lock == LOCK_HELD) {
        begun = true;
        settings_start();
        say_hello();
        return 0;
    }
    if (lock == LOCK_MOVED || !lock_waits()) {
        line_begin();
        line_add("{\"event\":\"busy\",\"place\":%d}", lock_place());
        line_end();
    }
    return lock_waits() ? 0 : BUSY;
}

/* Until there is nobody to work for. Returns the exit code. */
static int loop(int64_t watchdog_ns)
{
    int counts[ENDPOINTS_MAX];
    uint64_t ignored;

    heard_ns = clock_now();
    while (!orders_quit) {
        int news, code = begun ? 0 : begin();

        if (!control_flush() || code != 0)
            return code != 0 ? code : 1;
        news = wait_for_news(earliest_deadline(watchdog_ns), counts);

        if (news < 0 && errno != EINTR)
            return 1;
        if (news > 0 && polls[POLL_SIGNAL].revents != 0)
            return 0;
        if (news > 0 && polls[POLL_WAKE].revents != 0 && read(polls[POLL_WAKE].fd, &ignored, sizeof ignored) < 0)
            ignored = 0;
        if (news > 0)
            serve_endpoints(counts);
        else
            serve_endpoints((const int[ENDPOINTS_MAX]){0});
        serve_progress(clock_now());
        if (news > 0 && polls[POLL_STDIN].revents != 0) {
            heard_ns = clock_now();
            /* What came before the hello is a sign of life only. */
            if (!control_read(begun ? orders_take : NULL))
                return 0;
        }
        if (!control_flush() || control_lost() || clock_now() - heard_ns >= watchdog_ns)
            return 1;
    }
    return 0;
}

static int prepare(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return -1;
    polls[POLL_STDIN].fd = STDIN_FILENO;
    polls[POLL_SIGNAL] = (struct pollfd){.fd = system_signals(&signals), .events = POLLIN};
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    polls[POLL_WAKE] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
    if (polls[POLL_SIGNAL].fd < 0 || wake_fd < 0)
        return -1;
    if (fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) != 0 || fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK) != 0)
        return -1;
    return 0;
}

static int usage(void)
{
    dprintf(STDERR_FILENO, "usage: rigctl-agent [--watchdog SECONDS] [--lock NAME HOLDER now|wait|first] | --version\n"
                    "It is started by rigctl and takes orders on its standard input; SECONDS: 1 to 3600.\n");
    return 2;
}

static bool parse_arguments(int argc, char **argv, int64_t *watchdog_s)
{
    const char *end;
    int i = 1;

    if (i + 1 < argc && strcmp(argv[i], "--watchdog") == 0) {
        *watchdog_s = text_number(argv[i + 1], &end);
        if (*end != '\0' || *watchdog_s < 1 || *watchdog_s > 3600)
            return false;
        i += 2;
    }
    if (i + 3 < argc && strcmp(argv[i], "--lock") == 0 && lock_ask(argv[i + 1], argv[i + 2], argv[i + 3]))
        i += 4;
    return i == argc;
}

int main(int argc, char **argv)
{
    int64_t watchdog_s = WATCHDOG_S;
    int code, error = 0;
    char message[512];

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        dprintf(STDOUT_FILENO, "rigctl-agent %s protocol %d %s\n", AGENT_VERSION, PROTOCOL, machine());
        return 0;
    }
    if (!parse_arguments(argc, argv, &watchdog_s))
        return usage();
    if (prepare() != 0) {
        dprintf(STDERR_FILENO, "rigctl-agent: cannot start: %s\n", strerror(errno));
        return 1;
    }
    code = loop(watchdog_s * SECOND);
    if (begun)
        settings_restore(&error, message, sizeof message);
    control_flush();
    /* The kernel closes what is open and ends the threads: nothing here can hang. */
    _exit(code);
}
