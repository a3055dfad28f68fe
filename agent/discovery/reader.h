/* Reader: what must be read of a machine for one vendor, beyond what its row says: serials, states,
 * partitions, links. Most vendors have none. Each is a file of readers/ and a line of readers/table.c. */
#pragma once

#include "agent/discovery/sighting.h"

struct reader {
        const struct vendor *vendor;
        /* Adds the devices of one function (usually one); NULL = sighting_add(). */
        int (*add)(struct scan *scan, struct sighting *sighting);
        /* Adds devices that are no PCI functions; NULL = none. */
        int (*add_others)(struct scan *scan, const struct vendor *vendor);
};

const struct reader *reader_of(const struct vendor *vendor); /* or NULL */
