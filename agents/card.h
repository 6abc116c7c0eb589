/* Settings of a network card on Linux, besides MTU and offloads. settings-linux.c lists the functions. */
#pragma once

#include "setting.h"

/* Kinds rings, coalesce, channels and pause: the value is a number, `on` or `off`. */
int card_number(const struct setting *setting, const char *value, char *text);
int card_number_check(const struct setting *setting, const char *value);
/* Find the other settings that a change of this one also changes; as setting_parts() of settings.h. */
int card_parts(const struct setting *setting, const char *old, struct setting *parts, int most);
/* Kind rps: the processor mask of all receive queues, as in /sys; if masks differ, one per queue, separated by semicolons. */
int card_rps(const struct setting *setting, const char *value, char *text);
/* Kind eee: `off`, or `on:` and the link modes for which it is offered, as words in hexadecimal. */
int card_eee(const struct setting *setting, const char *value, char *text);
/* Kind qdisc: the root discipline as KIND:HANDLE:OPTIONS in hexadecimal, or only KIND if the kernel chose it. */
int card_qdisc(const struct setting *setting, const char *value, char *text);
