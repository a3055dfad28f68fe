/* YAML parse: what people write (configuration, jobs, program tables) as the JSON values that the API
 * carries.
 *
 * YAML 1.2 core schema as Kubernetes reads it: true/false, null, integers, floats, strings; anchors and
 * aliases within limits; no tags, no merge keys, no bare key `on` (which kubectl reads as true), duplicate
 * keys are an error. JSON is YAML. In memory only.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

#define YAML_PARSE_MAX_BYTES ((size_t) 16 << 20)
#define YAML_PARSE_MAX_DEPTH 64

/* yaml_parse() - one document. Return: 0 and a new reference; -EBADMSG with "line L, column C: why"; -E2BIG.
 * An empty document (@bytes may be NULL with no bytes) is an empty object. */
int yaml_parse(const char *bytes, size_t size_bytes, json_t **ret, struct err *err);

/* yaml_parse_all() - every document of a stream, as an array. */
int yaml_parse_all(const char *bytes, size_t size_bytes, json_t **ret, struct err *err);
