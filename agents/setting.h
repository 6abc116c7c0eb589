/* One host setting, its kind, and functions that several kinds need. kinds.c lists the kinds. */
#pragma once

#include "agent.h"

#define SETTING_TEXT 256

/* A setting with its old value. For a governor, `name` is the CPU: cpu0, cpu1, … */
struct setting {
    char kind[12], name[SETTING_TEXT], interface[INTERFACE_ROOM], old[SETTING_TEXT];
};

/* What a system does with a kind of settings: in settings-linux.c, settings-freebsd.c and settings-windows.c. */
struct setting_ways {
    /* Write `value` or, if it is NULL, read the present value into `text`. Returns 0 or an errno value. NULL: the system lacks this kind. */
    int (*carry_out)(const struct setting *setting, const char *value, char *text);
    /* The following functions are those of settings.h; they may be NULL. */
    int (*check)(const struct setting *setting, const char *value);
    bool (*fits)(const char *value, const char *old, const char *now); /* called if `now` differs from `value` */
    int (*parts)(const struct setting *setting, const char *old, struct setting *parts, int most);
};

extern const struct setting_ways setting_ways_mtu, setting_ways_sysctl, setting_ways_offload, setting_ways_governor,
    setting_ways_card, setting_ways_eee, setting_ways_qdisc, setting_ways_rps;

struct setting_kind {
    const char *name;
    bool has_name, has_interface;
    bool each_cpu;                            /* each processor has a setting of its own */
    const char *(*wrong)(const char *value); /* return what is wrong with a value on any system, or NULL; may be NULL */
    const struct setting_ways *ways;
};

/* Return the kind with this name, or NULL. */
const struct setting_kind *setting_find_kind(const char *name);
/* Return the names of the kinds for which `holds` is true, with `last` (" or ") before the last one, in a static buffer. */
const char *setting_list_kinds(bool (*holds)(const struct setting_kind *kind), const char *last);
bool setting_is_any(const struct setting_kind *kind);
bool setting_is_named(const struct setting_kind *kind);
bool setting_is_of_node(const struct setting_kind *kind);

/* Details of a refusal besides its errno value: `; 4096 was asked for, the card takes rx up to 256`. */
extern char setting_reason[256];

/* The next two functions write `value` or, if it is NULL, read the present value into `text`. They return 0 or an errno value. */
int setting_mtu(const struct setting *setting, const char *value, char *text);
/* Read or write a file of /proc/sys or /sys. */
int setting_file(const char *path, const char *value, char *text);

/* Send a request of netdevice(7) to an interface. Returns 0 or an errno value. */
struct ifreq;
int setting_interface(const char *interface, unsigned long request, struct ifreq *ask);
