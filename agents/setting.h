/* One host setting: its record, and what all kinds of settings need. Above it: the kinds (settings-linux.c, settings-freebsd.c). */
#pragma once

#include "agent.h"

#define SETTING_TEXT 256

/* One setting with the value it had before. The name of a governor is its CPU: cpu0, cpu1, … */
struct setting {
    char kind[12], name[SETTING_TEXT], interface[16], old[SETTING_TEXT];
};

/* Details of a refusal, beside its errno value: `; 4096 was asked for; its driver takes rx up to 256`. */
extern char setting_reason[256];

/* These functions write `value` or, if it is NULL, read the present value into `text`. They return 0 or an errno value. */
int setting_mtu(const struct setting *setting, const char *value, char *text);
/* A file of /proc/sys or /sys. */
int setting_file(const char *path, const char *value, char *text);

/* Send a request of netdevice(7) to an interface. Returns 0 or an errno value. */
struct ifreq;
int setting_interface(const char *interface, unsigned long request, struct ifreq *ask);
