/* The headers of the C library that all files of the agent need. Windows has posix-windows.h instead. */
#pragma once

#if defined(_WIN32)
#include "posix-windows.h"
#else
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <unistd.h>
#endif

/* Room for the name of a network interface in UTF-8, with NUL. */
#if defined(_WIN32)
#define INTERFACE_ROOM 769 /* 256 characters, at most three bytes of UTF-8 each, and NUL */
#define INTERFACE_MOST "256 characters"
#else
#define INTERFACE_ROOM 16
#define INTERFACE_MOST "15 characters"
#endif
