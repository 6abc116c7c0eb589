/* Connections that a test opens and closes, with their counts. */
#pragma once

#include "agent.h"

#define FAILURES_MAX 8 /* most errno values by which failures are told apart; further ones count as the last */

enum closing { CLOSE_RESET, CLOSE_SENDER, CLOSE_RECEIVER };

struct connections {
    int64_t late;        /* how many began more than 1 ms after their time, as the last one took too long; -1: no time was given */
    int64_t retransmits; /* segments that the sender's kernel sent again, SYNs among them */
    struct {
        int error; /* errno value; 0: unused */
        int64_t count;
    } failed[FAILURES_MAX];
};
