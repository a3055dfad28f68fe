/* Identities: no two devices may bear one id, and the operator may keep devices out. */
#include <fnmatch.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

static bool matches(const char *pattern, const char *text)
{
        return pattern[0] == '\0' || fnmatch(pattern, text, FNM_CASEFOLD) == 0;
}

static bool excludes(const struct discovery_exclusion *rule, const struct device *device)
{
        if (rule->id[0] == '\0' && rule->pci[0] == '\0' && rule->vendor[0] == '\0' &&
            rule->model[0] == '\0' && !rule->has_numa)
                return false;
        return matches(rule->id, device->id) && matches(rule->pci, device->pci) &&
               matches(rule->vendor, device->vendor) && matches(rule->model, device->model) &&
               (!rule->has_numa || rule->numa == device->numa);
}

static void keep_out(struct scan *scan, size_t i, enum device_health health, const char *reason,
                     const char *rule, const char *message)
{
        struct device *device = &scan->inventory->devices[i];

        scan->placements[i].grouped = false;
        device->health = health;
        device->usable = false;
        (void) text_copy(device->reason, sizeof(device->reason), reason);
        (void) text_copy(device->rule, sizeof(device->rule), rule);
        (void) text_copy(device->message, sizeof(device->message), message);
}

/* Every bearer of an id that comes twice is kept out, and is told by its place, which is unique. */
static void find_duplicates(struct scan *scan)
{
        struct inventory *inventory = scan->inventory;

        for (size_t i = 0; i < inventory->device_count; i++) {
                char id[DEVICE_ID_BYTES];
                unsigned bearers = 0;

                (void) text_copy(id, sizeof(id), inventory->devices[i].id);
                for (size_t j = i; j < inventory->device_count; j++)
                        bearers += strcmp(inventory->devices[j].id, id) == 0;
                for (size_t j = i; bearers > 1 && j < inventory->device_count; j++) {
                        struct device *device = &inventory->devices[j];

                        if (strcmp(device->id, id) != 0)
                                continue;
                        keep_out(scan, j, HEALTH_UNHEALTHY, "DuplicateId", "identity", "");
                        (void) text_format(device->message, sizeof(device->message),
                                           "%u devices say that they are %s", bearers, id);
                        (void) text_format(device->id, sizeof(device->id), "%s-duplicate-%u",
                                           device->pci[0] != '\0' ? device->pci : device->vendor,
                                           device->index);
                }
        }
}

void scan_identities(struct scan *scan)
{
        struct inventory *inventory = scan->inventory;

        find_duplicates(scan);
        for (size_t i = 0; i < inventory->device_count; i++)
                for (size_t j = 0; j < scan->options->exclusion_count; j++)
                        if (excludes(&scan->options->exclusions[j], &inventory->devices[i])) {
                                keep_out(scan, i, HEALTH_UNKNOWN, "Excluded", "configuration",
                                         "the configuration keeps it out");
                                break;
                        }
}
