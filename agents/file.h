/* File transfer: disk → network → disk, as an FTP put does it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct flow;

#define FILE_MAX (INT64_C(1) << 40)

/* A file in `folder` that has no name, so that it goes with its descriptor. -1 with errno; EINVAL where the folder is in memory. */
int file_open(const char *folder);
/* `size` bytes into it, on the disk and out of the page cache; stops early where `stop` becomes true. 0 or an errno value. */
int file_fill(int fd, int64_t size, const _Atomic bool *stop);
/* Memory for a flow's pieces; 0 or an errno value. */
int file_prepare(struct flow *flow);
/* What the threads of such flows do. */
void file_run(struct flow *flow);
