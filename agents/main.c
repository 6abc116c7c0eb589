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
#include "lock.h"
#include "orders.h"
#include "settings.h"
#include "system.h"
#include "text.h"

#ifndef AGENT_VERSION
#error "AGENT_VERSION comes from the Makefile"
#endif
#define PROTOCOL 4
#define WATCHDOG_S 15
#define PROGRESS_NS (250 * MS) /* two counts, and so the first rate, within half a second */
#define LOCK_NS (200 * MS) /* between looks whether the queue has moved */
#define BUSY 3

#define POLLS_MAX 4096
enum { POLL_STDIN, POLL_STDOUT, POLL_SIGNAL, POLL_WAKE, POLL_FIXED };

static struct pollfd polls[POLLS_MAX];
static int64_t heard_ns, next_progress_ns = INT64_MAX;
static bool begun; /* the node is ours, and the hello is sent */

static const char *machine(void)
{
    static struct utsname name;

    return uname(&name) == 0 ? name.machine : "unknown";
}

static void write_hello(void)
{
    event_begin("hello");
    line_add_count("protocol", PROTOCOL);
    line_add_text("agent", AGENT_VERSION);
    line_add_text("machine", machine());
    line_add_count("pid", getpid());
    line_add_count("cpus", sample_cpus());
    line_add_count("clock_ns", clock_now());
    line_add_count("restored", settings_restored());
    line_add_text("unrestored", settings_unrestored());
    line_end();
}

static bool receiving(const struct endpoint *endpoint)
{
    return endpoint != NULL && !endpoint->sender && endpoint->state == RUNNING;
}

/* Write the bytes that all receivers have so far: one line for all of them. */
static void write_progress(int64_t now)
{
    const char *gap = "";

    event_begin("progress");
    line_add_count("clock_ns", now);
    line_add(",\"bytes\":{");
    for (int i = 0; i < ENDPOINTS_MAX; i++) {
        if (!receiving(endpoints[i]))
            continue;
        line_add("%s\"%d\":%lld", gap, endpoints[i]->number, (long long)endpoint_bytes(endpoints[i]));
        gap = ",";
    }
    line_add("}");
    line_end();
}

/* Report progress every PROGRESS_NS, while there are receivers and the peer has read the last line. */
static void serve_progress(int64_t now)
{
    bool any = false;

    for (int i = 0; i < ENDPOINTS_MAX && !any; i++)
        any = receiving(endpoints[i]);
    if (!any) {
        next_progress_ns = INT64_MAX;
    } else if (next_progress_ns == INT64_MAX) {
        next_progress_ns = now + PROGRESS_NS;
    } else if (now >= next_progress_ns) {
        if (control_pending() == 0)
            write_progress(now);
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

static int wait_for_news(int64_t deadline)
{
    int64_t left = deadline - clock_now();
    struct timespec wait = clock_spec(left);
    int used = POLL_FIXED;

    polls[POLL_STDIN].events = POLLIN;
    polls[POLL_STDOUT] = (struct pollfd){.fd = control_pending() > 0 ? STDOUT_FILENO : -1, .events = POLLOUT};
    for (int i = 0; i < ENDPOINTS_MAX; i++) {
        if (endpoints[i] == NULL)
            continue;
        opening_poll(endpoints[i], polls + used, POLLS_MAX - used);
        used += endpoints[i]->openings.polled;
    }
    return ppoll(polls, (nfds_t)used, &wait, NULL);
}

static void serve_endpoints(bool news)
{
    int used = POLL_FIXED;
    int64_t now = clock_now();

    for (int i = 0; i < ENDPOINTS_MAX; i++) {
        if (endpoints[i] == NULL)
            continue;
        opening_serve(endpoints[i], news ? polls + used : NULL, now);
        used += endpoints[i]->openings.polled;
        life_serve(endpoints[i], now);
        report_serve(endpoints[i]);
    }
}

/* Send the hello once the lock is ours; until then, our place in the queue. Returns 0, or the exit code. */
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
        write_hello();
        return 0;
    }
    if (lock == LOCK_MOVED || !lock_waits()) {
        event_begin("busy");
        line_add_count("place", lock_place());
        line_end();
    }
    return lock_waits() ? 0 : BUSY;
}

/* Serve until the controller is gone or says `quit`. Returns the exit code. */
static int loop(int64_t watchdog_ns)
{
    uint64_t ignored;

    heard_ns = clock_now();
    while (!orders_quit) {
        int news, code = begun ? 0 : begin();

        if (!control_flush() || code != 0)
            return code != 0 ? code : 1;
        news = wait_for_news(earliest_deadline(watchdog_ns));
        if (news < 0 && errno != EINTR)
            return 1;
        if (news > 0 && polls[POLL_SIGNAL].revents != 0)
            return 0;
        if (news > 0 && polls[POLL_WAKE].revents != 0 && read(polls[POLL_WAKE].fd, &ignored, sizeof ignored) < 0)
            ignored = 0;
        serve_endpoints(news > 0);
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
