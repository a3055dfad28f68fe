/* What a reflector knows of: of each object its key, and hashes of its uid and resourceVersion. What is new,
 * is another or is gone is told to the store's user from here, and from nowhere else.
 *
 * A part of the reflector, whose fields `known` and `list` are its own. */
#pragma once

#include "store/kubernetes/reflector.h"
#include "store/metadata.h"

/* reflector_known_key() - "namespace/name" or "name"; false: it has none that can be used. */
bool reflector_known_key(const struct reflector *r, const struct metadata *metadata, char key[600]);

/* reflector_known_take() - an object as it is now. Return: 0, -EBADMSG (no usable name), -ENOMEM. */
int reflector_known_take(struct reflector *r, const json_t *object, struct err *err);

/* reflector_known_forget() - it is gone; frees it. */
void reflector_known_forget(struct reflector *r, struct reflector_object *known);

/* reflector_known_drop_unlisted() - of a list that is whole: what it does not have is gone. */
void reflector_known_drop_unlisted(struct reflector *r);
