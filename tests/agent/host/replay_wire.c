/* Reads the counters of a card from recorded answers of a kernel: on the standard input, lines with a request's bytes, a blank and the
 * answer's, in hexadecimal digits. Prints the counters, as -1 those that are unknown. Ends with 2 after a request that is not recorded. */
#include <stdio.h>
#include <stdlib.h>

#include "setting.h"
#include "wire.h"

#define LINE_ROOM 40000

static char line[LINE_ROOM];
static char hex[LINE_ROOM];
static bool taken; /* whether the answer was received */

/* The card has no private counters. */
int setting_interface(const char *interface, unsigned long request, struct ifreq *ask)
{
    (void)interface, (void)request, (void)ask;
    return EOPNOTSUPP;
}

ssize_t send_replayed(int fd, const void *message, size_t size, int flags)
{
    const unsigned char *bytes = message;

    (void)fd, (void)flags;
    taken = false;
    for (size_t i = 0; i < size; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    if (fgets(line, sizeof line, stdin) == NULL || strncmp(line, hex, 2 * size) != 0 || line[2 * size] != ' ') {
        fprintf(stderr, "sent %s, recorded %s\n", hex, line);
        exit(2);
    }
    return (ssize_t)size;
}

ssize_t recv_replayed(int fd, void *message, size_t size, int flags)
{
    const char *digits = strchr(line, ' ') + 1;
    size_t count = strcspn(digits, "\n") / 2;

    (void)fd, (void)flags;
    if (count > size)
        abort();
    if (taken) { /* as after SO_RCVTIMEO */
        errno = EAGAIN;
        return -1;
    }
    taken = true;
    for (size_t i = 0; i < count; i++) {
        unsigned byte;

        sscanf(digits + 2 * i, "%2x", &byte);
        ((unsigned char *)message)[i] = (unsigned char)byte;
    }
    return (ssize_t)count;
}

#define AS_UNKNOWN(name) .name = -1,
#define AS_PRINTED(name) printf(" %s=%lld", #name, (long long)counters.name);

int main(int count, char **words)
{
    struct wire_counters counters = {WIRE_COUNTS(AS_UNKNOWN)};

    if (count != 2)
        return 1;
    wire_read(words[1], &counters);
    printf("wire_read:");
    WIRE_COUNTS(AS_PRINTED)
    puts("");
    return 0;
}
