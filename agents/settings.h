/* Host settings: changed, read back and restored (docs/reference/agent-protocol.md, "Host settings"). */
#pragma once

#include "agent.h"
#include "setting.h"

/* kinds.c: what the kind of a setting does on this system. */
/* Write `value` or, if it is NULL, read the present value into `text`. Returns 0 or an errno value. */
int setting_carry_out(const struct setting *setting, const char *value, char *text);
/* Return an errno value if this system is certain to refuse `value`, else 0. Changes nothing. */
int setting_check(const struct setting *setting, const char *value);
/* Tell whether `now`, read back after a change from `old`, is a valid result of writing `value`, which drivers may round. */
bool setting_fits(const struct setting *setting, const char *value, const char *old, const char *now);
/* Find the settings that change together with this one but would not be restored by writing `old` back. Stores them in `parts` with their
 * present values. Returns how many there are, at most `most`. */
int setting_parts(const struct setting *setting, const char *old, struct setting *parts, int most);

/* The journal is a file with the old values of changed settings, locked by one agent. The next two functions return 0 or an errno value. */
int journal_open(void);                         /* EBUSY: another agent has locked the journal */
int journal_add(const struct setting *setting); /* on return the setting is on disk */
void journal_remove(void);
/* Lock and read the journal of an earlier agent. Returns the number of its settings, JOURNAL_DAMAGED (the file was renamed), or
 * JOURNAL_HELD (locked by another agent). */
#define JOURNAL_DAMAGED (-1)
#define JOURNAL_HELD (-2)
int journal_take_over(struct setting *settings, int most);
/* Read the journal from `fd`. Returns the number of its settings, or JOURNAL_DAMAGED. */
int journal_read(int fd, struct setting *settings, int most);
int journal_fd(void);

/* The guard: a child process that restores the journal's settings if this process ends without restoring them. */
int guard_start(void); /* starts the guard unless it runs; returns 0 or an errno value */
void guard_dismiss(void);

/* Percent-encoding. Decoding returns false if the text is malformed or does not fit. */
bool percent_decode(const char *text, char *decoded, size_t room);
void percent_encode(const char *text, char *encoded, size_t room);

/* Restore the settings that an earlier agent left changed; call this first. Returns how many it restored. `message`: what failed, or "". */
int settings_start(char *message, size_t room);
/* Restore all settings, last change first. Returns their number, or -1 with `*error` and `message` of the first failure. */
int settings_restore(int *error, char *message, size_t room);
/* Change a setting or, with `dry`, only check it. Returns 0, or an errno value with `message`. `old` and `now`: values before and after. */
int settings_set(const struct setting *wanted, const char *value, bool dry, char old[SETTING_TEXT], char now[SETTING_TEXT],
                 char *message, size_t room);
