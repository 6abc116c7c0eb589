/* The report of an endpoint that has ended. */
#pragma once

#include <stdint.h>

struct endpoint;

void report_begin(struct endpoint *endpoint, int64_t id);
/* Write as much of it as the output takes now. */
void report_serve(struct endpoint *endpoint);
