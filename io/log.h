/* Log: one event a line on standard error, in the same form from every program that stays.
 *
 * text: 2026-11-28T06:11:00.123Z level=info event=listening address=127.0.0.1:9510
 * where systemd's journal listens, which keeps the time itself: <6>event=listening address=127.0.0.1:9510
 * json: {"time":"2026-11-28T06:11:00.123Z","level":"info","program":"remuda-agent","event":"listening",
 *        "message":"address=127.0.0.1:9510"}, a line each, there too
 *
 * A storm is held back by log_line(): at most LOG_BURST lines a second of one event, then one line says how
 * many were not written. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

#define LOG_BURST  10
#define LOG_EVENTS 32

/* The option of every such program. @at: the place of a const char * in its options */
/* clang-format off */
#define LOG_FORMAT_ROW(at) \
        { .name = "log-format", .type = OPTION_CHOICE, .offset = (at), .value = "text|json", \
          .default_ = "text", .help = "form of the lines on standard error" }
/* clang-format on */

struct log {
        const char *program;
        bool json;
        bool journal; /* prefix "<4>" */
        struct log_rate {
                const char *event; /* a literal of the caller */
                uint64_t second;
                unsigned lines, dropped;
        } rates[LOG_EVENTS];
};

/* log_init() - @program: a literal; @format: "text" or "json", NULL = text. */
void log_init(struct log *log, const char *program, const char *format);

/* log_write() - a line whose writer holds back by himself; any length. */
void log_write(const struct log *log, int priority, const char *event, const char *said);

/* log_line() - @event: a short literal ("scan"), also what the rate is counted by. */
void log_line(struct log *log, int priority, const char *event, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
