/* Device: the names of its health, and what a group leaves unsaid. */
#include "agent/inventory/device.h"

#include <assert.h>

#include "base/cleanup.h"
#include "base/text.h"

/* clang-format off */
const char *const device_health_names[] = {
        [HEALTH_UNKNOWN]     = "unknown",
        [HEALTH_HEALTHY]     = "healthy",
        [HEALTH_DEGRADED]    = "degraded",
        [HEALTH_UNHEALTHY]   = "unhealthy",
        [HEALTH_QUARANTINED] = "quarantined",
        [HEALTH_COUNT]       = NULL,
};
/* clang-format on */
static_assert(ARRAY_SIZE(device_health_names) == HEALTH_COUNT + 1, "a health state without a name");

const char *device_health_name(enum device_health health)
{
        assert(health < HEALTH_COUNT);
        return device_health_names[health];
}

void device_group_complete(struct device_group *group)
{
        if (group->measured_kernel[0] != '\0' && group->measured_precision[0] == '\0')
                (void) text_copy(group->measured_precision, sizeof(group->measured_precision), "fp32");
}
