/* Commitments: what the journals say about pods: bound to a node, evicted at a time. The first line counts.
 *
 * Keyed by a pod's uid, or by "namespace/name" where it has none: what was said of a pod must not fall on the
 * next one of its name. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/name_map.h"

struct commitment {
        struct name_map_entry entry;
        char *node;          /* bound to, or NULL */
        char *deletion_time; /* evicted at, or NULL */
        json_t *annotations; /* recorded with the bind, or NULL */
        char *key;           /* of the entry */
        char pod[];          /* "namespace/name" */
};

struct commitments {
        struct name_map by_pod;
};

void commitments_free(struct commitments *all);

/* commitments_of() - @uid: NULL = it has none. Return: NULL if nothing is said of it. */
const struct commitment *commitments_of(const struct commitments *all, const char *uid, const char *pod);

/* commitments_take() - one line of either journal.
 * @pod: "namespace/name" of the line, checked
 * @err: set (-EALREADY) also where a second line binds the pod elsewhere, which does not count
 * Return: what is said of the pod by now, or NULL: nothing can be read from the line. */
const struct commitment *commitments_take(struct commitments *all, const json_t *line, const char *pod,
                                          struct err *err);

/* commitments_apply() - the pod as it is by now. */
void commitments_apply(const struct commitment *commitment, json_t *pod);
