/* rigctl-agent: makes and measures traffic on a node, following orders on its standard input (docs/reference/agent-protocol.md). One
 * poll loop serves orders, openings, samples and ends of flows; one thread per flow moves bytes. The agent exits when its input ends or
 * when the controller is silent for too long. */
#if !defined(_WIN32)
#include <sys/eventfd.h>
#endif

#include "clock.h"
#include "control.h"
#include "endpoint.h"
#include "lock.h"
#include "orders.h"
#include "settings.h"
#include "system.h"
#include "text.h"

#define PROTOCOL 6
#define WATCHDOG_S 15
#define PROGRESS_NS (250 * MS) /* interval of progress lines; the controller can show a first rate after half a second */
#define LOCK_NS (200 * MS)     /* interval at which the queue for the lock is checked */
#define EXIT_BUSY 3            /* exit code if another run uses the node */

#define POLLS_MAX 4096
enum { POLL_STDIN, POLL_STDOUT, POLL_SIGNAL, POLL_WAKE, POLL_FIXED /* endpoints' sockets follow */ };

static struct pollfd polls[POLLS_MAX];
static int64_t heard_ns; /* time at which the controller last wrote */
static int64_t next_progress_ns = INT64_MAX;
static bool has_node; /* the agent has the node's lock and has sent the hello */

static const char *machine_name(void)
{
    static struct utsname name;

    return uname(&name) == 0 ? name.machine : "unknown";
}

/* Restore the settings that an earlier agent left changed, and report this in the hello. */
static void write_hello(void)
{
    char unrestored[512];
    int restored = settings_start(unrestored, sizeof unrestored);

    event_begin("hello");
    line_add_count("protocol", PROTOCOL);
    line_add_text("agent", AGENT_VERSION);
    line_add_text("machine", machine_name());
    line_add_count("pid", getpid());
    line_add_count("cpus", sample_cpus());
    line_add_count("clock_ns", clock_now());
    line_add_count("restored", restored);
    line_add_text("unrestored", unrestored[0] != '\0' ? unrestored : NULL);
    line_end();
}

static bool is_receiving(const struct endpoint *endpoint)
{
    return !endpoint->sender && endpoint->state == RUNNING;
}

/* Write one line with the bytes that each receiver has so far. */
static void write_progress(int64_t now)
{
    const char *gap = "";

    event_begin("progress");
    line_add_count("clock_ns", now);
    line_add(",\"bytes\":{");
    for (const struct endpoint *endpoint = endpoints; endpoint != NULL; endpoint = endpoint->next) {
        if (!is_receiving(endpoint))
            continue;
        line_add("%s\"%d\":%lld", gap, endpoint->number, (long long)endpoint_bytes(endpoint));
        gap = ",";
    }
    line_add("}");
    line_end();
}

/* Write progress every PROGRESS_NS while there are receivers, unless the controller has not read the last line yet. */
static void serve_progress(int64_t now)
{
    bool any = false;

    for (const struct endpoint *endpoint = endpoints; endpoint != NULL && !any; endpoint = endpoint->next)
        any = is_receiving(endpoint);
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

/* Return when the loop must wake even if nothing arrives. */
static int64_t find_deadline(int64_t watchdog_ns)
{
    int64_t first = heard_ns + watchdog_ns, now = clock_now();

    if (!has_node)
        return clock_sooner(first, now + LOCK_NS);
    first = clock_sooner(first, next_progress_ns);
    for (const struct endpoint *endpoint = endpoints; endpoint != NULL; endpoint = endpoint->next) {
        if (endpoint->report.id != 0 && control_has_room())
            return 0;
        first = clock_sooner(first, clock_sooner(opening_deadline(endpoint, now), life_deadline(endpoint)));
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
    for (struct endpoint *endpoint = endpoints; endpoint != NULL; endpoint = endpoint->next) {
        opening_poll(endpoint, polls + used, POLLS_MAX - used);
        used += endpoint->openings.polled;
    }
    return ppoll(polls, (nfds_t)used, &wait, NULL);
}

static void serve_endpoints(bool news)
{
    int used = POLL_FIXED;
    int64_t now = clock_now();

    for (struct endpoint *endpoint = endpoints; endpoint != NULL; endpoint = endpoint->next) {
        opening_serve(endpoint, news ? polls + used : NULL, now);
        used += endpoint->openings.polled;
        life_serve(endpoint, now);
        report_serve(endpoint);
    }
}

/* Send the hello if this agent has the lock, else its place in the queue. Returns 0, or the code with which to exit. */
static int begin(void)
{
    enum lock lock = lock_advance();

    if (lock == LOCK_FAILED) {
        dprintf(STDERR_FILENO, "rigctl-agent: cannot lock the node: %s\n", strerror(errno));
        return 1;
    }
    if (lock == LOCK_HELD) {
        has_node = true;
        write_hello();
        return 0;
    }
    if (lock == LOCK_MOVED || lock == LOCK_REFUSED) {
        event_begin("busy");
        line_add_count("place", lock_place());
        line_end();
    }
    return lock == LOCK_REFUSED ? EXIT_BUSY : 0;
}

/* Run until the controller is gone or sends `quit`. Returns the exit code. */
static int loop(int64_t watchdog_ns)
{
    uint64_t ignored;

    heard_ns = clock_now();
    while (!orders_quit) {
        int news, code = has_node ? 0 : begin();

        if (!control_flush() || code != 0)
            return code != 0 ? code : 1;
        news = wait_for_news(find_deadline(watchdog_ns));
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
            /* Lines before the hello are not carried out as orders, but they show that the controller lives. */
            if (!control_read(has_node ? orders_take : NULL))
                return 0;
        }
        if (!control_flush() || control_has_lost_line() || clock_now() - heard_ns >= watchdog_ns)
            return 1;
    }
    return 0;
}

/* Raise the soft limit of open files to the hard limit: each flow takes up to three, and shells often start with 1024. */
static void allow_files(void)
{
#if !defined(_WIN32)
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
#endif
}

static int prepare(void)
{
    sigset_t signals;

    allow_files();
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

static int print_usage(void)
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
    if (i + 3 < argc && strcmp(argv[i], "--lock") == 0 && lock_request(argv[i + 1], argv[i + 2], argv[i + 3]))
        i += 4;
    return i == argc;
}

int main(int argc, char **argv)
{
    int64_t watchdog_s = WATCHDOG_S;
    int code, error = 0;
    char message[512];

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        dprintf(STDOUT_FILENO, "rigctl-agent %s protocol %d %s\n", AGENT_VERSION, PROTOCOL, machine_name());
        return 0;
    }
    if (!parse_arguments(argc, argv, &watchdog_s))
        return print_usage();
    if (prepare() != 0) {
        dprintf(STDERR_FILENO, "rigctl-agent: cannot start: %s\n", strerror(errno));
        return 1;
    }
    code = loop(watchdog_s * SECOND);
    if (has_node)
        settings_restore(&error, message, sizeof message);
    control_flush();
    /* _exit cannot hang; the kernel closes the sockets and ends the threads. */
    _exit(code);
}
