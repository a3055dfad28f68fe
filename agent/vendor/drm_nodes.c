#include "agent/vendor/drm_nodes.h"

void vendor_add_drm_nodes(struct scan *scan, struct sighting *sighting, bool required)
{
        unsigned number;

        if (vendor_class_number(scan, sighting->function, "drm", "renderD", &number))
                vendor_add_node(scan, &sighting->device, required, "/dev/dri/renderD%u", number);
        if (vendor_class_number(scan, sighting->function, "drm", "card", &number))
                vendor_add_node(scan, &sighting->device, false, "/dev/dri/card%u", number);
}
