/* One host setting: its record, and functions that all kinds of settings need. The kinds are in settings-linux.c and settings-freebsd.c. */
#pragma once

#include "agent.h"

#define SETTING_TEXT 256

/* A setting with its old value. For a governor, `name` is the CPU: cpu0, cpu1, … */
struct setting {
    char kind[12], name[SETTING_TEXT], interface[INTERFACE_ROOM], old[SETTING_TEXT];
};

/* Details of a refusal besides its errno value: `; 4096 was asked for, the card takes rx up to 256`. */
extern char setting_reason[256];

/* The next two functions write `value` or, if it is NULL, read the present value into `text`. They return 0 or an errno value. */
int setting_mtu(const struct setting *setting, const char *value, char *text);
/* Read or write a file of /proc/sys or /sys. */
int setting_file(const char *path, const char *value, char *text);

/* Send a request of netdevice(7) to an interface. Returns 0 or an errno value. */
struct ifreq;
int setting_interface(const char *interface, unsigned long request, struct ifreq *ask);
