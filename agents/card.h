/* Settings of a network card on Linux besides MTU and offloads. Each function reads or writes a setting as setting_carry_out does. */
#pragma once

#include "setting.h"

/* rings, coalesce, channels, pause: a number, or on and off, by ethtool's ioctl. */
int card_number(const struct setting *setting, const char *value, char *text);
int card_number_check(const struct setting *setting, const char *value);
/* As setting_parts, for these kinds. */
int card_parts(const struct setting *setting, const char *old, struct setting *parts, int most);
/* rps: the mask of processors for all receive queues, as in /sys; if the masks differ, one for each queue, separated by semicolons. */
int card_rps(const struct setting *setting, const char *value, char *text);
/* qdisc: the root's, as KIND:HANDLE:OPTIONS in hexadecimal digits, or KIND alone if the kernel chose it. */
int card_qdisc(const struct setting *setting, const char *value, char *text);
/* Send one of ethtool's requests, a struct that begins with its command (linux/ethtool.h). */
int card_ethtool(const char *interface, void *request);
