/* Table: columns that line up, for people. Colour only where the caller found that it is wanted.
 *
 * A struct table is zero-initialised and released with table_free(). Cells are copied; control characters and
 * bytes that are no UTF-8 become '?', since they come from files of unknown origin. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX  20
#define TABLE_COLUMN_LEAST 8 /* no column is cut below */

enum table_colour { TABLE_PLAIN, TABLE_GOOD, TABLE_WARN, TABLE_BAD, TABLE_FAINT };

struct table_cell {
        char *text;
        enum table_colour colour;
};

struct table {
        size_t columns;
        struct table_cell *cells; /* row by row; the first row is the heading */
        size_t cell_count;
        bool failed;
        size_t width;   /* that it has to fit; 0 = any. See table_width() */
        bool headless;  /* the heading is not printed; set before table_begin() */
        size_t *widths; /* of the columns of a table that this one goes on: they are kept, and what is wider
                           here is put there; NULL = it stands alone */
};

/* table_begin() - the headings, NULL-terminated. */
void table_begin(struct table *table, const char *const *headings);
/* table_add() - the next cell, left to right; "" is printed as "-". */
void table_add(struct table *table, enum table_colour colour, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* table_print() - Where it does not fit: columns of which nothing is known are left out, the widest are cut
 * (a '~' stands at the cut) down to TABLE_COLUMN_LEAST, and the last ones are left out.
 * Return: 0, or -ENOMEM when a cell was lost. */
int table_print(const struct table *table, bool colour, FILE *out);
void table_free(struct table *table);

/* table_line() - a line beside tables, cleaned as cells are. table_clean() - text from outside, in place. */
void table_line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_clean(char *text);

/* table_width() - COLUMNS, else the terminal's (80 where it does not say); 0 = the output is no terminal. */
size_t table_width(FILE *out);

/* table_wants_colour() - a terminal, NO_COLOR not set, TERM not "dumb". */
bool table_wants_colour(FILE *out);
