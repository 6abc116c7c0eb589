/* Settings of a network card on Linux besides MTU and offloads, each as setting_carry_out does it (settings.h). */
#pragma once

#include "settings.h"

/* rings, coalesce, channels, pause: one number, or on and off, by ethtool's ioctl. */
int card_number(const struct setting *setting, const char *value, char *text);
int card_number_check(const struct setting *setting, const char *value);
/* What a change of one of these changes besides; as setting_parts. */
int card_parts(const struct setting *setting, const char *old, struct setting *parts, int most);
/* rps: the mask of processors of all receive queues, as in /sys; where they differ one of each, with semicolons between them. */
int card_rps(const struct setting *setting, const char *value, char *text);
/* qdisc: that of the root, as KIND:HANDLE:OPTIONS in hexadecimal digits; KIND alone where the kernel chose it itself. */
int card_qdisc(const struct setting *setting, const char *value, char *text);

/* What these need of settings-linux.c. */
int setting_ethtool(const char *interface, void *asked);
int setting_file(const char *path, const char *value, char *text);
