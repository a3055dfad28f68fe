/* What-if question: the text that somebody sends as a question (scheduler-extender/explain/whatif.h): JSON,
 * or YAML as people have it in files: one document, or several, whose objects are placed one after the other.
 * In memory only. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

/* whatif_question_read() - Return: 0 and a new reference, an object; -EBADMSG with the place; -E2BIG;
 * -ENOMEM.
 */
int whatif_question_read(const char *bytes, size_t size_bytes, json_t **ret, struct err *err);

/* whatif_question_add() - the objects of these documents, those of Lists one by one, at the end of `list`. */
void whatif_question_add(const json_t *documents, json_t *list);
