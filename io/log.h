/* Log: one event a line on standard error, in the same form from every program that stays.
 *
 * text: 2026-11-28T06:11:00.123Z level=info event=listening address=127.0.0.1:9510
 * where systemd's journal listens, which keeps the time itself: <6>event=listening address=127.0.0.1:9510
 * json: {"time":"2026-11-28T06:11:00.123Z","level":"info","program":"remuda-agent","event":"listening",
 *        "message":"address=127.0.0.1:9510"}, a line each, there too
 *
 * Lines below the level that was asked for are not written: no program has any below info.
 * A storm is held back by log_line(): at most LOG_BURST lines a second of one event, then one line says how
 * many were not written. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

#define LOG_BURST  10
#define LOG_EVENTS 32

/* The options of every such program. @format_at, @level_at: the places of two const char * in its options;
 * @format, @level: what they are where nothing is given, "text" and "info", or NULL */
/* clang-format off */
#define LOG_LEVELS "info|warning|error"
#define LOG_ROWS(format_at, level_at, format, level) \
        { .name = "log-format", .type = OPTION_CHOICE, .offset = (format_at), .value = "text|json", \
          .default_ = (format), .help = "form of the lines on standard error" }, \
        { .name = "log-level", .type = OPTION_CHOICE, .offset = (level_at), .value = LOG_LEVELS, \
          .default_ = (level), .help = "lines of this weight and above" }
/* clang-format on */

struct log {
        const char *program;
        bool json;
        bool journal; /* prefix "<4>" */
        int least;    /* a priority: what weighs less is not written; 0 = all is */
        struct log_rate {
                const char *event; /* a literal of the caller */
                uint64_t second;
                unsigned lines, dropped;
        } rates[LOG_EVENTS];
};

/* log_init() - @program: a literal; @format: "text" or "json", NULL = text; @level: of LOG_LEVELS, NULL =
 * info. log_set() - other ones from now on. */
void log_init(struct log *log, const char *program, const char *format, const char *level);
void log_set(struct log *log, const char *format, const char *level);

/* log_end() - why the program ends: "PROGRAM: sentence" for people, as commands say it, whatever the level;
 * of json an event "failed". */
void log_end(const struct log *log, const char *sentence);

/* log_write() - a line whose writer holds back by himself; any length. */
void log_write(const struct log *log, int priority, const char *event, const char *said);

/* log_say() - log_write(), formatted; up to 1023 bytes. */
void log_say(const struct log *log, int priority, const char *event, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

/* log_line() - @event: a short literal ("scan"), also what the rate is counted by. */
void log_line(struct log *log, int priority, const char *event, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
