/* YAML dump: a JSON value as YAML in block style, for people. Pure. */
#pragma once

#include <jansson.h>

/* yaml_dump() - the text, which the caller frees. NULL when out of memory. */
char *yaml_dump(const json_t *value);
