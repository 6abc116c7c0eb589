/* A histogram whose buckets are at most 1/128 of their value wide (docs/reference/agent-protocol.md, "Histogram"). */
#pragma once

#include "agent.h"

#define HISTOGRAM_TOP_BITS 40 /* largest value is 2^40 - 1 (18 minutes in ns); a larger value counts as this one */
#define HISTOGRAM_BUCKETS (128 * (HISTOGRAM_TOP_BITS - 8) + 256)

struct histogram {
    int64_t count, sum_ns, min_ns, max_ns; /* number, sum and bounds of the values, not rounded to buckets */
    uint32_t buckets[HISTOGRAM_BUCKETS];
};

/* Return the bucket of a value: one bucket for each value below 256, then 128 buckets for each power of two. */
static inline int histogram_bucket(int64_t value)
{
    uint64_t bits = value < 0 ? 0 : value >= INT64_C(1) << HISTOGRAM_TOP_BITS ? (UINT64_C(1) << HISTOGRAM_TOP_BITS) - 1 : (uint64_t)value;
    int shift = bits < 256 ? 0 : 63 - __builtin_clzll(bits) - 7;

    return 128 * shift + (int)(bits >> shift);
}

static inline void histogram_add(struct histogram *histogram, int64_t value)
{
    if (histogram->count == 0 || value < histogram->min_ns)
        histogram->min_ns = value;
    if (value > histogram->max_ns)
        histogram->max_ns = value;
    histogram->count++;
    histogram->sum_ns += value;
    histogram->buckets[histogram_bucket(value)]++;
}
