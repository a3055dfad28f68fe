/* Reads the points of tables, and compares names. */
#include "planner/shards/plan_field.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int plan_field_pair(const struct json_field *at, uint64_t max, const char *mend, uint64_t *ret_first,
                    double *ret_second, struct err *err)
{
        json_t *first = json_array_get(at->value, 0), *second = json_array_get(at->value, 1);
        double samples, ms;

        if (json_array_size(at->value) != 2 || !json_is_number(first) || !json_is_number(second))
                return json_field_error(at, err, "must be a list of two numbers; give %s", mend);
        samples = json_number_value(first);
        ms = json_number_value(second);
        if (!(samples >= 0 && samples <= (double) max) || samples != rint(samples))
                return json_field_error(at, err,
                                        "begins with %g, not a whole number in 0..%" PRIu64 "; give %s",
                                        samples, max, mend);
        if (!(ms >= 0 && ms <= PLAN_TIME_MAX))
                return json_field_error(at, err, "ends with %g, not a time of 0 or more; give %s", ms, mend);
        *ret_first = (uint64_t) samples;
        *ret_second = ms;
        return 0;
}

static int by_name(const void *a, const void *b)
{
        const char *const *left = *(const char *const *const *) a, *const *right =
                                                                           *(const char *const *const *) b;
        int order = strcmp(*left, *right);

        return order != 0 ? order : (left > right) - (left < right);
}

int plan_field_unique(const struct json_field *list, const void *first_name, size_t stride_bytes,
                      size_t count, struct err *err)
{
        CLEANUP(free_p) const char *const **sorted = calloc(count + 1, sizeof(*sorted));

        if (sorted == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu names", count);
        for (size_t i = 0; i < count; i++)
                sorted[i] = (const void *) ((const char *) first_name + i * stride_bytes);
        qsort(sorted, count, sizeof(*sorted), by_name);
        for (size_t i = 1; i < count; i++)
                if (strcmp(*sorted[i - 1], *sorted[i]) == 0) {
                        size_t one = (size_t) ((const char *) sorted[i - 1] - (const char *) first_name) /
                                     stride_bytes;
                        size_t two = (size_t) ((const char *) sorted[i] - (const char *) first_name) /
                                     stride_bytes;
                        struct json_field element = json_field_at(list, two);
                        struct json_field at = json_field_get(&element, "name");

                        return json_field_error(&at, err,
                                                "'%.100s' is also the name of [%zu]; give each its own",
                                                *sorted[i], one);
                }
        return 0;
}
