/* Plan field: what the rows of the planners' files (base/json/json_table.h) cannot say: points of tables, and
 * names of which no two are equal. Pure. */
#pragma once

#include "base/json/json_field.h"

#define PLAN_TIME_MAX 1e30 /* ms, and every other number with a point */

/* plan_field_pair() - a point of a table: the list `at` holds exactly two numbers, the first one whole. */
int plan_field_pair(const struct json_field *at, uint64_t max, const char *mend, uint64_t *ret_first,
                    double *ret_second, struct err *err);

/* plan_field_unique() - refuse two equal names, which stand in structs of `stride_bytes`. @list: for the
 * place in the message. Return: 0, -EBADMSG, -ENOMEM. */
int plan_field_unique(const struct json_field *list, const void *first_name, size_t stride_bytes,
                      size_t count, struct err *err);
