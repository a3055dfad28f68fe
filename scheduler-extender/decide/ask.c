#include "scheduler-extender/decide/ask.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

/* clang-format off */
static const char *const placement_names[] = {
        [PLACEMENT_DEFAULT]      = "default",
        [PLACEMENT_PACKED]       = "packed",
        [PLACEMENT_UNIFORM]      = "uniform",
        [PLACEMENT_LARGEST_FREE] = "largest-free",
        [PLACEMENT_FASTEST]      = "fastest",
};
/* clang-format on */
static_assert(ARRAY_SIZE(placement_names) == PLACEMENT_COUNT, "a placement without a name");

const char *placement_name(enum placement placement)
{
        assert(placement < PLACEMENT_COUNT);
        return placement_names[placement];
}

int placement_parse(const char *name, enum placement *ret)
{
        for (size_t i = PLACEMENT_DEFAULT + 1; i < PLACEMENT_COUNT; i++)
                if (strcmp(placement_names[i], name) == 0) {
                        *ret = (enum placement) i;
                        return 0;
                }
        return -EINVAL;
}
