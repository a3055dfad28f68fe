/* Pod words: strings of Pod and Node objects that can stand in the lines of decide/node_match.h and
 * neighbours/neighbours.h, where blanks part words and lines. In memory only. */
#pragma once

#include "base/json/json_field.h"

/* pod_words_at(), pod_words_of() - the string itself, or a member of that name; NULL = it is no word.
 * pod_words_or_none() - the same, "" where there is none. */
const char *pod_words_at(const struct json_field *at);
const char *pod_words_of(const struct json_field *in, const char *name);
const char *pod_words_or_none(const struct json_field *in, const char *name);
