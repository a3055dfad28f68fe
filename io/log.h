/* Log: one event a line, key=value, on standard error; with journal prefixes when systemd listens.
 *
 * A storm is held back: at most LOG_BURST lines a second of one event, then one line says how many were
 * not written. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

#define LOG_BURST  10
#define LOG_EVENTS 32

struct log {
        bool journal; /* prefix "<4>" */
        struct log_rate {
                const char *event; /* a literal of the caller */
                uint64_t second;
                unsigned lines, dropped;
        } rates[LOG_EVENTS];
};

void log_init(struct log *log);

/* log_line() - @event: a short literal ("scan"), also what the rate is counted by. */
void log_line(struct log *log, int priority, const char *event, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/* log_harmless() - in place, a '?' for what would forge a line, or is no UTF-8: text may quote anything.
 * log_line() does it. */
void log_harmless(char *text);
