/* What a network card counts on the wire. wire-linux.c has the sources, and the names of private counters. */
#pragma once

#include "sample.h"

/* Read the counters of the card that carries the frames of `interface`. Those that are unknown stay unchanged. */
void wire_read(const char *interface, struct wire_counters *counters);
