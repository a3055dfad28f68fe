/* Pod words: strings of Pod and Node objects that can stand in the lines of decide/node_match.h and
 * neighbours/neighbours.h, where tabs part words and line ends lines; and how such lines are read. In memory
 * only. */
#pragma once

#include "base/json/json_field.h"

/* pod_words_at(), pod_words_of() - the string itself, or a member of that name; NULL = it is no word.
 * pod_words_or_none() - the same, "" where there is none. */
const char *pod_words_at(const struct json_field *at);
const char *pod_words_of(const struct json_field *in, const char *name);
const char *pod_words_or_none(const struct json_field *in, const char *name);

/* pod_words_is_key() - can the name of a member stand in "KEY=VALUE"? */
bool pod_words_is_key(const char *name);

/* A word of a line; borrowed. */
struct pod_word {
        const char *at;
        size_t bytes;
};

/* pod_words_next() - the words of a line, one after the other. @line: where the next begins, NULL behind the
 * last; @end: of the line. pod_words_line() - where the next line begins, or the text ends. */
bool pod_words_next(const char **line, const char *end, struct pod_word *ret);
const char *pod_words_line(const char *end);

bool pod_words_equal(const struct pod_word *word, const char *text, size_t bytes);

/* pod_words_among() - is it one of those that are left of the line? */
bool pod_words_among(const struct pod_word *word, const char *line, const char *end);
