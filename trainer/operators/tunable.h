/* Tunable: the numbers that a backend's kernels can be tuned by, one row each, and the values that are tried.
 *
 * A setting of them is an array in the order of the rows, 0 = untuned. As text it is "tile_rows=128
 * tile_cols=64", with what is untuned left out; one from a file must be of values that are tried, and fit.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TUNABLE_MAX        8 /* of a backend */
#define TUNABLE_VALUES_MAX 8

enum tunable_work { /* what it is measured on: as the shipped models have it */
                    TUNABLE_PRODUCTS,
                    TUNABLE_CONVOLUTIONS,
                    TUNABLE_VECTORS, /* all that is neither */
                    TUNABLE_WORKS
};

struct tunable {
        const char *name;
        size_t untuned;
        size_t values[TUNABLE_VALUES_MAX + 1]; /* that are tried; 0 ends them */
        bool with_next;                        /* one depends on the other: they are searched together */
        enum tunable_work work;
};

struct backend_options;

struct tunable_rows {
        const struct tunable *rows;
        size_t count;
        /* these together, each the setting's or else the untuned, with what else is asked of the backend;
         * NULL = all do */
        bool (*fits)(const struct backend_options *o, const size_t *values);
};

/* tunable_value() - of a setting. */
size_t tunable_value(const struct tunable_rows *t, size_t row, const size_t *setting);

/* tunable_group_end() - rows first..end-1 are searched together. */
size_t tunable_group_end(const struct tunable_rows *t, size_t first);

/* tunable_next() - the next setting of these rows that fits, the others as they are; a group that is all 0 is
 * before the first. Return: false: there is none, and they are 0. */
bool tunable_next(const struct tunable_rows *t, const struct backend_options *o, size_t first, size_t end,
                  size_t *setting);

/* tunable_format() - Return: false: too long. */
bool tunable_format(const struct tunable_rows *t, const size_t *setting, char *text, size_t text_bytes);

/* tunable_parse() - Return: false: a name that is no row's, a value that is not tried, or they do not fit;
 * *ret is as it was. */
bool tunable_parse(const struct tunable_rows *t, const struct backend_options *o, const char *text,
                   size_t *ret);
