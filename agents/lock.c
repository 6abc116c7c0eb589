/* The lock of a node and its queue: a row of places, each a name that one process at a time can claim (system_claim). Place 0 is the
 * lock. Whoever comes begins at the last place and moves up while the next one is free, claiming it before the own one is let go: so
 * nobody overtakes. The kernel frees the names of a process that ends, however it ends. */
#include "lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "system.h"

#define PLACES 64

static const char *name, *holder;
static bool waits, first;
static int place = PLACES, claimed = -1, label = -1;

bool lock_ask(const char *asked, const char *by, const char *how)
{
    name = asked;
    holder = by;
    waits = strcmp(how, "wait") == 0;
    first = strcmp(how, "first") == 0;
    return waits || first || strcmp(how, "now") == 0;
}

/* Claim place `wanted`, and let go of the present one. */
static bool move_to(int wanted)
{
    char text[64];
    int fd;

    snprintf(text, sizeof text, "rigctl-lock-%.32s-%d", name, wanted);
    fd = system_claim(text);
    if (fd < 0)
        return false;
    if (claimed >= 0)
        close(claimed);
    claimed = fd;
    place = wanted;
    return true;
}

/* A second name, for those who ask who has the node: what it says is not looked at here. */
static void tell(void)
{
    char text[160];

    if (label >= 0)
        close(label);
    snprintf(text, sizeof text, "rigctl-lock-%.32s-%d %d %s", name, place, (int)getpid(), holder);
    label = system_claim(text);
}

enum lock lock_advance(void)
{
    int before = place;

    if (name == NULL)
        place = 0;
    errno = 0;
    while (place > 0 && move_to(first ? 0 : place - 1))
        ;
    if (place > 0 && errno != EADDRINUSE)
        return LOCK_FAILED;
    if (place == before)
        return place == 0 ? LOCK_HELD : LOCK_STAYS;
    if (name != NULL)
        tell();
    return place == 0 ? LOCK_HELD : LOCK_MOVED;
}

int lock_place(void)
{
    return place;
}

bool lock_waits(void)
{
    return waits;
}
