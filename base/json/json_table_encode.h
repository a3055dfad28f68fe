/* JSON table encode: the way out of a table (json_table.h, which includes this). Pure. */
#pragma once

#include <jansson.h>

struct json_table;

/* json_table_encode() - a new reference; NULL = no memory. */
json_t *json_table_encode(const struct json_table *table, const void *object);
