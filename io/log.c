/* Lines are written at once, at most so many of one event in a second. */
#include "io/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "io/clock.h"

static const char *const priority_names[] = { "emergency", "alert",  "critical", "error",
                                              "warning",   "notice", "info",     "debug" };

/* systemd says which stream it gave (device:inode); a child's may be another one, a file say. */
static bool is_the_journal(const char *said)
{
        const char *colon = said != NULL ? strchr(said, ':') : NULL;
        uint64_t device, inode;
        char first[24];
        struct stat st;

        if (colon == NULL || !text_format(first, sizeof(first), "%.*s", (int) (colon - said), said))
                return false;
        return text_parse_uint64(first, &device) == 0 && text_parse_uint64(colon + 1, &inode) == 0 &&
               fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_init(struct log *log, const char *program, const char *format, const char *level)
{
        *log = (struct log){ .program = program, .journal = is_the_journal(getenv("JOURNAL_STREAM")) };
        log_set(log, format, level);
}

void log_set(struct log *log, const char *format, const char *level)
{
        log->json = format != NULL && strcmp(format, "json") == 0;
        log->least = 0;
        for (int i = 0; level != NULL && i < LOG_NOTICE; i++)
                if (strcmp(level, priority_names[i]) == 0)
                        log->least = i;
}

/* "2026-11-28T06:11:00.123Z", of as many digits at each moment. */
static const char *time_now(char text[TIMESTAMP_BYTES])
{
        uint64_t usec = clock_realtime_usec();
        size_t length;

        (void) timestamp_format(usec - usec % 1000000, text);
        length = strlen(text);
        if (length > 0) /* its Z */
                (void) text_format(text + length - 1, TIMESTAMP_BYTES - length + 1, ".%03uZ",
                                   (unsigned) (usec / 1000 % 1000));
        return text;
}

/* What is harmless has of JSON's own two letters alone. */
static void append_member(struct text *line, const char *name, const char *value)
{
        text_printf(line, "%c\"%s\":\"", line->size_bytes == 0 ? '{' : ',', name);
        for (; *value != '\0'; value++) {
                if (*value == '"' || *value == '\\')
                        text_append_char(line, '\\');
                text_append_char(line, *value);
        }
        text_append_char(line, '"');
}

static void append_json(struct text *line, const struct log *log, const char *level, const char *event,
                        const char *said)
{
        char now[TIMESTAMP_BYTES];

        append_member(line, "time", time_now(now));
        append_member(line, "level", level);
        append_member(line, "program", log->program);
        append_member(line, "event", event);
        append_member(line, "message", said);
        text_append(line, "}\n");
}

static bool is_light(const struct log *log, int priority)
{
        return log->least != 0 && (priority & 7) > log->least;
}

void log_write(const struct log *log, int priority, const char *event, const char *said)
{
        const char *level = priority_names[priority & 7];
        CLEANUP(free_p) char *harmless = strdup(said);
        struct text line = { 0 };
        char now[TIMESTAMP_BYTES];

        if (harmless == NULL || is_light(log, priority))
                return;
        text_harmless(harmless, 0);
        if (log->json)
                append_json(&line, log, level, event, harmless);
        else if (log->journal)
                text_printf(&line, "<%d>event=%s %s\n", priority, event, harmless);
        else
                text_printf(&line, "%s level=%s event=%s %s\n", time_now(now), level, event, harmless);
        if (!line.failed)
                (void) fputs(line.data, stderr); /* in one piece: others write there, too */
        text_free(&line);
}

void log_end(const struct log *log, const char *sentence)
{
        if (log->json)
                log_write(log, LOG_ERR, "failed", sentence);
        else
                fprintf(stderr, "%s: %s\n", log->program, sentence);
}

void log_say(const struct log *log, int priority, const char *event, const char *fmt, ...)
{
        char text[1024];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        log_write(log, priority, event, text);
}

static struct log_rate *rate_of(struct log *log, const char *event)
{
        for (size_t i = 0; i < LOG_EVENTS - 1; i++) {
                struct log_rate *rate = &log->rates[i];

                if (rate->event == NULL)
                        rate->event = event;
                if (rate->event == event || strcmp(rate->event, event) == 0)
                        return rate;
        }
        return &log->rates[LOG_EVENTS - 1]; /* the rest share one */
}

static bool may_write(struct log *log, const char *event)
{
        struct log_rate *rate = rate_of(log, event);
        uint64_t second = clock_monotonic_usec() / 1000000;
        char text[64];

        if (rate->second != second) {
                if (rate->dropped > 0) {
                        (void) snprintf(text, sizeof(text), "dropped=%u", rate->dropped);
                        log_write(log, LOG_WARNING, event, text);
                }
                rate->second = second;
                rate->lines = rate->dropped = 0;
        }
        if (rate->lines >= LOG_BURST) {
                rate->dropped++;
                return false;
        }
        rate->lines++;
        return true;
}

void log_line(struct log *log, int priority, const char *event, const char *fmt, ...)
{
        char text[1024];
        va_list ap;

        if (is_light(log, priority) || !may_write(log, event))
                return;
        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        log_write(log, priority, event, text);
}
