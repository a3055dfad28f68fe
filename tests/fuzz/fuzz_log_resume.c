/* Any bytes as the log of a pod, read, broken off and read again: no line is shown twice where its times
 * grow, and what is asked for is a query's value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/show/log_resume.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Return: do the times grow? @ret_shown: lines with a time */
static bool read_all(struct log_resume *resume, const char *text, size_t *ret_shown)
{
        char *copy = strdup(text), *rest = copy, *line, last[LOG_RESUME_TIME_BYTES];
        bool grows = true;

        *ret_shown = 0;
        while (copy != NULL && (line = strsep(&rest, "\n")) != NULL) {
                const char *shown;

                memcpy(last, resume->last, sizeof(last));
                shown = log_resume_line(resume, line);
                if (shown != NULL && (shown < line || shown > line + strlen(line)))
                        __builtin_trap();
                *ret_shown += shown != NULL && shown != line;
                grows = grows && strcmp(last, resume->last) <= 0;
        }
        free(copy);
        return grows;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1);
        struct log_resume resume = { .count = 0 };
        struct text query = { 0 };
        size_t shown, again;

        if (text == NULL)
                return 0;
        memcpy(text, data, size);
        text[size] = '\0';
        if (read_all(&resume, text, &shown) && shown > 0) {
                log_resume_since(&resume, &query);
                if (query.data == NULL || query.data[strspn(query.data, "0123456789TZtz:%B-")] != '\0')
                        __builtin_trap();
                log_resume_begin(&resume);
                (void) read_all(&resume, text, &again);
                if (again > 0)
                        __builtin_trap();
        }
        text_free(&query);
        free(text);
        return 0;
}
