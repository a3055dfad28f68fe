/* JSON merge patch (RFC 7386): what `kubectl patch --type merge` does. Pure. */
#pragma once

#include <jansson.h>

/* json_merge_patch() - change the object `target` as the object `patch` says: null removes, objects merge,
 * everything else replaces. Values are copied. Return: 0 or -ENOMEM (the target may be changed in part). */
int json_merge_patch(json_t *target, const json_t *patch);
