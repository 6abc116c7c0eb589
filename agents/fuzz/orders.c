/* Fuzz: any bytes as orders, carried out by the whole agent in its own network namespace. Host settings are kept in memory, and a
 * sender's files are not filled. Every line that the agent writes must be one whole JSON object in printable ASCII. */
#define main agent_main
#include "main.c" /* the loop's parts are static */
#undef main

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define MOST 8192
#define ANSWERS (1 << 20)

int LLVMFuzzerInitialize(int *count, char ***words);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The following replaces settings-linux.c, guard.c, and the files of file.c. */
static struct {
    char name[SETTING_TEXT + 32], value[SETTING_TEXT];
} kept[8];

static size_t keeper(const struct setting *setting)
{
    size_t sum = 0;

    for (const char *at = setting->name; *at != '\0'; at++)
        sum += (unsigned char)*at;
    return sum % 8;
}

static int carry_out(const struct setting *setting, const char *value, char *text)
{
    size_t place = keeper(setting);

    if (value != NULL) {
        snprintf(kept[place].value, SETTING_TEXT, "%s", value);
        return place == 5 ? EINVAL : 0;
    }
    if (strcmp(setting->kind, "governor") == 0 && strlen(setting->name) > 4)
        return ENOENT;
    snprintf(text, SETTING_TEXT, "%s", place == 7 ? "" : kept[place].value);
    return place == 6 ? EACCES : 0;
}

static int check(const struct setting *setting, const char *value)
{
    snprintf(setting_reason, sizeof setting_reason, "; %.100s was asked for", value);
    return keeper(setting) == 3 ? EOPNOTSUPP : 0;
}

static bool fits(const char *value, const char *old, const char *now)
{
    return strlen(value) % 8 == 2 && strcmp(old, now) != 0;
}

static int parts(const struct setting *setting, const char *old, struct setting *found, int most)
{
    if (keeper(setting) != 4 || most < 2)
        return 0;
    for (int i = 0; i < 2; i++) {
        found[i] = *setting;
        snprintf(found[i].name, sizeof found->name, "part-%d", i);
        snprintf(found[i].old, sizeof found->old, "%s", old);
    }
    return 2;
}

#define WAYS {carry_out, check, fits, parts}
const struct setting_ways setting_ways_mtu = WAYS, setting_ways_sysctl = WAYS, setting_ways_offload = WAYS,
                          setting_ways_governor = WAYS, setting_ways_card = WAYS, setting_ways_eee = WAYS, setting_ways_qdisc = WAYS,
                          setting_ways_rps = WAYS;

int guard_start(void)
{
    return 0;
}

void guard_dismiss(void)
{
}

int __wrap_file_open(const char *folder, bool sender);
int __wrap_file_open(const char *folder, bool sender)
{
    (void)sender;
    errno = ENOENT;
    return folder[0] != '/' ? -1 : memfd_create("file", MFD_CLOEXEC);
}

int __wrap_file_fill(int fd, int64_t size, const _Atomic bool *stop);
int __wrap_file_fill(int fd, int64_t size, const _Atomic bool *stop)
{
    return atomic_load(stop) ? 0 : ftruncate(fd, size < 65536 ? size : 65536) != 0 ? errno : 0;
}

static void check_answer(const char *text, size_t length)
{
    int depth = 0;
    bool quoted = false;

    if (length < 2 || length > ANSWER_MAX - 1 || text[0] != '{' || text[length - 1] != '}')
        abort();
    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~')
            abort();
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (text[i] == '{' || text[i] == '[') - (text[i] == '}' || text[i] == ']');
        if (depth == 0 && i + 1 < length)
            abort();
    }
    if (depth != 0 || quoted)
        abort();
}

static void check_answers(void)
{
    static char text[ANSWERS];
    ssize_t got = pread(STDOUT_FILENO, text, sizeof text, 0);

    for (char *at = text, *end; got > 0 && at < text + got; at = end + 1) {
        end = memchr(at, '\n', (size_t)(text + got - at));
        if (end == NULL) {
            if (got == (ssize_t)sizeof text)
                break;
            abort();
        }
        check_answer(at, (size_t)(end - at));
    }
    if (ftruncate(STDOUT_FILENO, 0) != 0 || lseek(STDOUT_FILENO, 0, SEEK_SET) != 0)
        abort();
}

int LLVMFuzzerInitialize(int *count, char ***words)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd, in = memfd_create("in", 0), out = memfd_create("out", 0);

    (void)count;
    (void)words;
    if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        perror("a network namespace of its own");
        exit(1);
    }
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (ioctl(fd, SIOCSIFFLAGS, &request) != 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || prepare() != 0)
        abort();
    close(fd);
    return 0;
}

/* Do as loop() does, for some rounds and without waiting. */
static void serve(int rounds)
{
    while (rounds-- > 0) {
        find_deadline(SECOND);
        polls[POLL_STDIN].fd = -1;
        serve_endpoints(wait_for_news(clock_now()) > 0);
        if (rounds % 2 == 0)
            write_progress(clock_now());
        if (!control_flush() || control_has_lost_line())
            abort();
    }
}

static void give(const void *bytes, size_t size)
{
    if (ftruncate(STDIN_FILENO, 0) != 0 || pwrite(STDIN_FILENO, bytes, size, 0) != (ssize_t)size || lseek(STDIN_FILENO, 0, SEEK_SET) != 0)
        abort();
    while (control_read(orders_take))
        if (!control_flush())
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char last[] = "\n1 probed last=1\n2 restore\n";
    int error;
    char message[512];

    if (size > MOST)
        return 0;
    memset(kept, 0, sizeof kept);
    orders_quit = false;
    for (size_t at = 0; at < size && !orders_quit;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t length = end == NULL ? size - at : (size_t)(end - data) - at + 1;

        give(data + at, length);
        serve(3);
        at += length;
    }
    give(last, sizeof last - 1);
    serve(2);
    while (endpoints != NULL)
        endpoint_free(endpoints);
    settings_restore(&error, message, sizeof message);
    memset(kept, 0, sizeof kept);
    settings_restore(&error, message, sizeof message);
    check_answers();
    return 0;
}
