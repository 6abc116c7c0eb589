/* From start to end: samples at their times, and an end for everything, whatever the peer does. */
#pragma once

#include <stdint.h>

struct endpoint;

#define GRACE_SILENT_S 2 /* a receiver without end-of-file: no data any more … */
#define GRACE_S 10       /* … or still some */

void life_serve(struct endpoint *endpoint, int64_t now);
int64_t life_deadline(const struct endpoint *endpoint);
