/* Times are compared as words. */
#include "job/show/log_resume.h"

#include <string.h>

#include "base/timestamp.h"

#define SECONDS_BYTES 19 /* of a time: "2026-11-30T06:58:19" */

void log_resume_begin(struct log_resume *resume)
{
        resume->repeating = resume->last[0] != '\0';
        resume->repeats = resume->count;
}

void log_resume_since(const struct log_resume *resume, struct text *query)
{
        const char *zone = resume->last + SECONDS_BYTES;

        text_printf(query, "%.*s", SECONDS_BYTES, resume->last);
        text_append_escaped(query, zone + strcspn(zone, "Z+-"), ":");
}

const char *log_resume_line(struct log_resume *resume, const char *line)
{
        char time[LOG_RESUME_TIME_BYTES];
        size_t n = strcspn(line, " ");
        uint64_t usec;
        int order;

        if (n <= SECONDS_BYTES || !text_format(time, sizeof(time), "%.*s", (int) n, line) ||
            timestamp_parse(time, &usec) < 0) /* it is asked for as it stands */
                return line;
        order = strcmp(time, resume->last);
        if (resume->repeating && (order < 0 || (order == 0 && resume->repeats > 0))) {
                resume->repeats -= order == 0;
                return NULL;
        }
        resume->repeating = false;
        resume->count = order == 0 ? resume->count + 1 : 1;
        (void) text_copy(resume->last, sizeof(resume->last), time);
        return line[n] == ' ' ? line + n + 1 : line + n;
}
