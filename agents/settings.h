/* Host settings: changed, read back and put back (docs/reference/agent-protocol.md, "Host settings"). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SETTING_TEXT 256

/* One setting with the value it had before. Of a governor `name` is its CPU's: cpu0, cpu1, … */
struct setting {
    char kind[12], name[SETTING_TEXT], interface[16], old[SETTING_TEXT];
};

/* Write `value`, or where it is NULL read the present one into `text`. 0 or an errno value. */
int setting_carry_out(const struct setting *setting, const char *value, char *text);
/* Before anything is changed: an errno value where this system surely refuses `value`. */
int setting_check(const struct setting *setting, const char *value);
/* Whether `now`, read back in place of `old`, is what becomes of `value`: drivers and queueing disciplines round. */
bool setting_fits(const struct setting *setting, const char *value, const char *old, const char *now);
/* What there is to say of a refusal besides its errno value: `; 4096 was asked for; its driver takes rx up to 256`. */
extern char setting_reason[256];
/* What it switches besides its name, at most `most` settings: those that have another value than `old`, with theirs. All are
   as `old` says once that has been written back: these are to be put back after it. */
int setting_parts(const struct setting *setting, const char *old, struct setting *parts, int most);

/* What those three need on every system: a request of netdevice(7) to an interface, and its MTU. 0 or an errno value. */
struct ifreq;
int setting_interface(const char *interface, unsigned long request, struct ifreq *ask);
int setting_mtu(const struct setting *setting, const char *value, char *text);

/* The journal: old values on disk, under a lock. 0 or an errno value. */
int journal_open(void);                         /* EBUSY: another holds it */
int journal_add(const struct setting *setting); /* durable when it returns */
void journal_remove(void);
/* What an earlier agent left behind, under the lock: settings read, or -1 where the journal was damaged and put aside. */
int journal_leftover(struct setting *settings, int most);
/* Read the journal that descriptor `fd` holds: settings, or -1. */
int journal_read(int fd, struct setting *settings, int most);
int journal_fd(void);

/* The guard: a child that restores what the journal holds when this process ends without a word. */
int guard_start(void); /* if none runs; 0 or an errno value */
void guard_dismiss(void);

/* Percent-decoding and -encoding. False where it does not fit or is no such text. */
bool percent_decode(const char *text, char *decoded, size_t room);
void percent_encode(const char *text, char *encoded, size_t room);

/* Put back what an earlier agent left; before anything else. */
void settings_start(void);
int settings_restored(void);
const char *settings_unrestored(void); /* NULL: nothing is left */
/* Put all back, the last first. Returns how many, or -1 with `message` where one could not be. */
int settings_restore(int *error, char *message, size_t room);
/* Change one, or with `dry` only look whether it can be; 0 or an errno value with `message`. `old` and `now` are what was and is
   read back. */
int settings_set(const struct setting *wanted, const char *value, bool dry, char old[SETTING_TEXT], char now[SETTING_TEXT],
                 char *message, size_t room);
