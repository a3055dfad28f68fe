/* Adds to what a typed read found wrong the sentence that says how to mend it. */
#include "planner/shards/plan_field.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* Adds the remedy to what is wrong. */
static int finish(int r, const struct json_field *in, const char *name, bool required, const char *mend,
                  struct err *err)
{
        struct json_field at = json_field_get(in, name);
        struct err wrong;

        if (r == JSON_FIELD_ABSENT && required)
                return json_field_error(&at, err, "is missing; give %s", mend);
        if (r >= 0 || err == NULL)
                return r;
        wrong = *err;
        return err_set(err, r, "%.300s; give %s", wrong.msg, mend);
}

int plan_field_double(const struct json_field *in, const char *name, bool required, double min,
                      const char *mend, double *ret, struct err *err)
{
        return finish(json_field_double(in, name, min, PLAN_TIME_MAX, ret, err), in, name, required, mend,
                      err);
}

int plan_field_uint64(const struct json_field *in, const char *name, bool required, uint64_t min,
                      uint64_t max, const char *mend, uint64_t *ret, struct err *err)
{
        return finish(json_field_uint64(in, name, min, max, ret, err), in, name, required, mend, err);
}

int plan_field_string(const struct json_field *in, const char *name, const char *mend, const char **ret,
                      struct err *err)
{
        struct json_field at = json_field_get(in, name);
        int r = finish(json_field_string(in, name, ret, err), in, name, true, mend, err);

        if (r == 0 && **ret == '\0')
                return json_field_error(&at, err, "must not be empty; give %s", mend);
        return r;
}

int plan_field_list(const struct json_field *in, const char *name, size_t max, const char *mend,
                    struct json_field *ret, struct err *err)
{
        int r = finish(json_field_array(in, name, max, ret, err), in, name, true, mend, err);

        if (r == 0 && json_field_count(ret) == 0)
                return json_field_error(ret, err, "must not be empty; give %s", mend);
        return r;
}

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

int plan_field_unique(const struct json_field *list, const char *const *names, size_t count, struct err *err)
{
        CLEANUP(free_p) const char *const **sorted = calloc(count + 1, sizeof(*sorted));

        if (sorted == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu names", count);
        for (size_t i = 0; i < count; i++)
                sorted[i] = &names[i];
        qsort(sorted, count, sizeof(*sorted), by_name);
        for (size_t i = 1; i < count; i++)
                if (strcmp(*sorted[i - 1], *sorted[i]) == 0) {
                        struct json_field element = json_field_at(list, (size_t) (sorted[i] - names));
                        struct json_field at = json_field_get(&element, "name");

                        return json_field_error(&at, err,
                                                "'%.100s' is also the name of [%zu]; give each its own",
                                                *sorted[i], (size_t) (sorted[i - 1] - names));
                }
        return 0;
}
