/* The table of strategies. */
#include "trainer/strategy.h"

#include <string.h>

#include "base/cleanup.h"

static const struct strategy strategies[] = {
        { .name = "serial", .run = strategy_serial },
        { .name = "allreduce", .run = strategy_allreduce },
        { .name = "split", .run = strategy_split, .whole = true },
        { .name = "ps-sync", .run = strategy_ps_sync, .served = true },
        { .name = "ps-async", .run = strategy_ps_async, .served = true },
        { .name = "ps-ssp", .run = strategy_ps_ssp, .served = true },
};

const struct strategy *strategy_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(strategies); i++)
                if (strcmp(strategies[i].name, name) == 0)
                        return &strategies[i];
        return NULL;
}
