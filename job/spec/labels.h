/* Labels: are they what Kubernetes takes? A job file is judged like the object that it becomes in a cluster,
 * so what tries to be a path or an option is refused on one machine, too. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"

#define LABELS_QUEUE "kueue.x-k8s.io/queue-name" /* of a TrainingJob: the queue of Kueue that it names */

/* labels_check() - a mapping of names to values, such as `metadata.labels`. A name is at most 63 letters,
 * digits,
 * '-', '_' and '.', beginning and ending with a letter or digit, after an optional DNS name and '/'. A value
 * is empty or such a word; with `annotations` any text.
 * @field: "metadata.labels", for the sentence
 * Return: 0; -EINVAL with name, value and remedy. */
int labels_check(const json_t *labels, const char *field, bool annotations, struct err *err);
