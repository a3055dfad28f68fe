/* A list that doubles its room, and always has a NULL after its last word. */
#include "job/spec/arguments.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void arguments_add(struct arguments *arguments, const char *fmt, ...)
{
        char *word = NULL;
        va_list values;

        if (arguments->count + 2 > arguments->capacity) {
                size_t capacity = arguments->capacity == 0 ? 64 : 2 * arguments->capacity;
                char **grown = reallocarray(arguments->list, capacity, sizeof(*grown));

                if (grown == NULL) {
                        arguments->failed = true;
                        return;
                }
                arguments->list = grown;
                arguments->capacity = capacity;
        }
        va_start(values, fmt);
        if (vasprintf(&word, fmt, values) < 0)
                arguments->failed = true;
        else
                arguments->list[arguments->count++] = word;
        va_end(values);
        arguments->list[arguments->count] = NULL;
}

void arguments_free(struct arguments *arguments)
{
        for (size_t i = 0; i < arguments->count; i++)
                free(arguments->list[i]);
        free(arguments->list);
        *arguments = (struct arguments){ 0 };
}
