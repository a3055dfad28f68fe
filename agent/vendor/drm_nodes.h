/* DRM nodes: the render node and the card of a function. Private to lib/discovery/vendor. */
#pragma once

#include "agent/vendor/vendor.h"

/* vendor_add_drm_nodes() - @required: without a render node that is there, the device is no use */
void vendor_add_drm_nodes(struct scan *scan, struct sighting *sighting, bool required);
