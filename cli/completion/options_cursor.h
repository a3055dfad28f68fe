/* Options cursor: where the end of an unfinished command line is, as options_parse() will read it: in the
 * value of an option, in the name of one, or in an operand. For who completes what is typed.
 *
 * Pure: strings are borrowed from the words and the table. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"

struct options_cursor {
        const struct option_program *program;
        const char *const *words; /* behind the command; the last is unfinished, perhaps "" */
        size_t count;             /* of words, >= 1 */

        const struct option_spec *value_of; /* the last word is, or ends in, this option's value; NULL */
        bool ended;                         /* behind `--`: only operands come */
        size_t kept_bytes;                  /* of the last word, before the value: "--store=", "-o" */
};

/* options_cursor_find() - @words, @count: as in the struct; the first word is an argument, not the command.
 */
struct options_cursor options_cursor_find(const struct option_program *program, const char *const *words,
                                          size_t count);

/* options_cursor_operand() - the @i-th finished operand. Return: NULL when there are no @i + 1. */
const char *options_cursor_operand(const struct options_cursor *cursor, size_t i);

/* options_cursor_value() - what the finished words say of an option, the last time, or its default.
 * Return: NULL: nothing, or the table has no such option. */
const char *options_cursor_value(const struct options_cursor *cursor, const char *name);
