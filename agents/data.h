/* Data to send. They do not compress: links and tunnels that compress must not look faster than they are. */
#pragma once

#include <stddef.h>

#define DATA_BYTES (512 << 10)
/* Large buffers begin at a page's start: elsewhere a copy takes 1.5 times the processor time (docs/measured/peers.md). */
#define PAGE_BYTES 4096

/* Make them, once per process; -1 with errno where there is no memory for them. */
int data_make(void);
/* DATA_BYTES of them; only to be read. */
const unsigned char *data_bytes(void);
/* As many as are asked for, copied to `bytes`. */
void data_fill(unsigned char *bytes, size_t count);
