/* Lines are written at once, at most so many of one event in a second. */
#include "io/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_scan.h"
#include "io/clock.h"

static const char *const priority_names[] = { "emergency", "alert",  "critical", "error",
                                              "warning",   "notice", "info",     "debug" };

void log_init(struct log *log)
{
        memset(log, 0, sizeof(*log));
        log->journal = getenv("JOURNAL_STREAM") != NULL;
}

static void write_line(const struct log *log, int priority, const char *event, const char *text)
{
        if (log->journal)
                fprintf(stderr, "<%d>event=%s %s\n", priority, event, text);
        else
                fprintf(stderr, "level=%s event=%s %s\n", priority_names[priority & 7], event, text);
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
                        write_line(log, LOG_WARNING, event, text);
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

/* U+0080 to U+009F: some terminals take them as they take ESC. */
static bool is_c1(const char *s)
{
        return s[0] == '\xc2' && (unsigned char) s[1] < 0xa0;
}

void log_harmless(char *text)
{
        size_t bytes;

        for (char *s = text; *s != '\0'; s += bytes) {
                bytes = (signed char) *s < 0 ? json_scan_utf8(s, s + strnlen(s, 4)) : 1;
                if (bytes == 0 || (unsigned char) *s < 0x20 || *s == 0x7f || is_c1(s)) {
                        *s = '?';
                        bytes = 1; /* of a C1 the second byte follows, by itself no UTF-8 */
                }
        }
}

void log_line(struct log *log, int priority, const char *event, const char *fmt, ...)
{
        char text[1024];
        va_list ap;

        if (!may_write(log, event))
                return;
        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        log_harmless(text);
        write_line(log, priority, event, text);
}
