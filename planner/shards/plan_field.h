/* Plan field: what the planners' files have in common. As json_field.h, but what is missing or wrong is
 * answered with how to mend it: "workers[3].speed: must be a number in 1e-30..1e+30, not -2; give samples per
 * second". Pure. */
#pragma once

#include <jansson.h>

#include "base/json/json_field.h"

#define PLAN_TIME_MAX 1e30 /* ms, and every other number with a point */

/* @mend: "samples per second": follows "; give ".
 * Return: 0; JSON_FIELD_ABSENT unless `required`; -EBADMSG. */
int plan_field_double(const struct json_field *in, const char *name, bool required, double min,
                      const char *mend, double *ret, struct err *err);
int plan_field_uint64(const struct json_field *in, const char *name, bool required, uint64_t min,
                      uint64_t max, const char *mend, uint64_t *ret, struct err *err);
int plan_field_string(const struct json_field *in, const char *name, const char *mend, const char **ret,
                      struct err *err); /* required, not empty; borrowed from the JSON */

/* plan_field_list() - a required list that is not empty. */
int plan_field_list(const struct json_field *in, const char *name, size_t max, const char *mend,
                    struct json_field *ret, struct err *err);

/* plan_field_pair() - a point of a table: the list `at` holds exactly two numbers, the first one whole. */
int plan_field_pair(const struct json_field *at, uint64_t max, const char *mend, uint64_t *ret_first,
                    double *ret_second, struct err *err);

/* plan_field_unique() - refuse two equal names. @list: for the place in the message. 0, -EBADMSG, -ENOMEM. */
int plan_field_unique(const struct json_field *list, const char *const *names, size_t count, struct err *err);
