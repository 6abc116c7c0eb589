/* Requests that a sender begins at given times, with their counts. */
#pragma once

#include "agent.h"

/* What a sender counted. Its own lateness is the time from that at which a request was to begin until the sender's thread came to it; the
 * time for which the socket then took no bytes is not in it. */
struct schedule {
    int64_t late;                     /* how many the thread came to more than 1 ms after their time */
    int64_t late_max_ns, late_sum_ns; /* longest lateness, and the sum over all that were begun */
    int64_t held;                     /* how many began more than 1 ms after the thread came to them, as the socket took no bytes */
    int64_t in_flight_max;            /* most that were begun and not answered at a time */
    int64_t unanswered;               /* begun, and not answered within 2 s after the end */
    int64_t unsent;                   /* due before the end, and not begun within these 2 s */
};
