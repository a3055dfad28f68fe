/* Slices stored: is a slice in the store the one that should be there? What an API server adds (when a taint
 * was added) or writes in another way (quantities) is no difference. Pure. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* slices_stored_same() - @any_generation: that of the pool may differ */
bool slices_stored_same(const json_t *want, const json_t *have, bool any_generation);

/* slices_stored_features() - slices_feature: which of them the slice has; what is written with one and read
 * without was dropped. */
unsigned slices_stored_features(const json_t *slice);

/* slices_stored_is_ours() - a slice of our driver and this node. @ret_generation: of its pool */
bool slices_stored_is_ours(const json_t *slice, const char *node, uint64_t *ret_generation);
