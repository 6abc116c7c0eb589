/* The queue for a node has places 0 to 63. A place is a name that one process at a time can claim (system_claim). The agent at place 0 has
 * the lock. An agent starts behind the last place and moves up while the next place is free. It claims the next place before it releases
 * its own, so nobody overtakes. The kernel releases the names of a process that ends or is killed. */
#include "lock.h"
#include "system.h"

#define PLACES 64

static const char *name, *holder;
static bool waits, first, told;
static int place = PLACES, claimed = -1, label = -1;

bool lock_request(const char *asked, const char *by, const char *how)
{
    name = asked;
    holder = by;
    waits = strcmp(how, "wait") == 0;
    first = strcmp(how, "first") == 0;
    return waits || first || strcmp(how, "now") == 0;
}

/* Claim place `wanted` and release the present place. */
static bool move_to(int wanted)
{
    char text[64];
    int fd;

    snprintf(text, sizeof text, "rigctl-lock-%.32s-%d", name, wanted);
    fd = system_claim(text);
    if (fd < 0)
        return false;
    system_close(&claimed);
    claimed = fd;
    place = wanted;
    return true;
}

/* Claim a second name, from which other programs see who holds this place of the queue. */
static void show_holder(void)
{
    char text[160];

    system_close(&label);
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
    if (place != before && name != NULL)
        show_holder();
    if (place == 0)
        return LOCK_HELD;
    if (!waits)
        return LOCK_REFUSED;
    /* If another program has the last place, this agent has none; its controller must know that it waits. */
    if (place == before && told)
        return LOCK_STAYS;
    told = true;
    return LOCK_MOVED;
}

int lock_place(void)
{
    return place;
}
