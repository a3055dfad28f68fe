/* Arguments: the words of a command line as they are collected, one by one. Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A list of strings that is released with arguments_free(). */
struct arguments {
        char **list; /* count strings and a NULL */
        size_t count, capacity;
        bool failed; /* no memory */
};

void arguments_add(struct arguments *arguments, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void arguments_free(struct arguments *arguments);
