/* Which devices the operator keeps out. */
#include "agent/discovery/discovery_options.h"

#include <fnmatch.h>

static bool matches(const char *pattern, const char *text)
{
        return pattern[0] == '\0' || fnmatch(pattern, text, FNM_CASEFOLD) == 0;
}

bool discovery_options_exclude(const struct discovery_options *options, const struct device *device)
{
        for (size_t i = 0; i < options->exclusion_count; i++) {
                const struct discovery_options_exclusion *rule = &options->exclusions[i];

                if (matches(rule->id, device->id) && matches(rule->pci, device->pci) &&
                    matches(rule->vendor, device->vendor) && matches(rule->model, device->model) &&
                    (rule->numa < 0 || rule->numa == device->numa))
                        return true;
        }
        return false;
}
