/* Any bytes as a configuration: refused with a place, or taken with every figure in its bounds. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "agent/config/agent_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct agent_config config;
        struct err err = { 0 };
        int r = agent_config_parse("fuzz", (const char *) data, size, &config, &err);

        if (r < 0 && strncmp(err.msg, "fuzz", 4) != 0)
                __builtin_trap();
        if (config.health.recovery_probes < 1 || config.health.flap_changes < 1 ||
            config.health.flap_changes > HEALTH_FLAP_CHANGES_MAX || config.probe_sec < 1)
                __builtin_trap();
        agent_config_free(&config);
        return 0;
}
