/* YAML scalar: what a plain word of YAML means, by the core schema of YAML 1.2. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* yaml_scalar_read() - null, true, false, a number or a string.
 * Return: a new reference; NULL and why it is refused. */
json_t *yaml_scalar_read(const char *word, const char **ret_why);

/* yaml_scalar_needs_quotes() - would this text be read back as something else, by us or by an older YAML? */
bool yaml_scalar_needs_quotes(const char *text);
