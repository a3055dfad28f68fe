/* Continuity: ids first, then the names of groups. */
#include "agent/inventory/continuity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* The device that stood at the same place before; NULL = none, or it bore the same id. */
static const struct device *same_place(const struct inventory *before, const struct device *device)
{
        for (size_t i = 0; i < before->device_count; i++) {
                const struct device *old = &before->devices[i];

                if (strcmp(old->pci, device->pci) == 0 && strcmp(old->vendor, device->vendor) == 0 &&
                    strcmp(old->partition, device->partition) == 0 && strcmp(old->id, device->id) != 0)
                        return old;
        }
        return NULL;
}

static void keep_id(const struct inventory *before, struct inventory *now, struct device *device)
{
        const struct device *old;

        if (device->pci[0] == '\0' || strcmp(device->id, device->pci) != 0)
                return;
        /* known by its address before as well: that is its id */
        if (inventory_find_device(before, device->id) != NULL)
                return;
        old = same_place(before, device);
        if (old != NULL && strcmp(old->reason, "DuplicateId") != 0 &&
            inventory_find_device(now, old->id) == NULL)
                (void) text_copy(device->id, sizeof(device->id), old->id);
}

/* The name that the group's first device with a past had; NULL = none has one. Vendor and model must be the
 * same. */
static const char *old_name(const struct inventory *before, const struct inventory *now,
                            const struct device_group *group)
{
        for (size_t i = 0; i < now->device_count; i++) {
                const struct device *old;

                if (strcmp(now->devices[i].group, group->name) != 0)
                        continue;
                old = inventory_find_device(before, now->devices[i].id);
                if (old != NULL && old->group[0] != '\0' && strcmp(old->vendor, group->vendor) == 0 &&
                    strcmp(old->model, group->model) == 0)
                        return old->group;
        }
        return NULL;
}

static bool taken(char (*names)[DEVICE_GROUP_BYTES], size_t count, const char *name)
{
        for (size_t i = 0; i < count; i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

/* `name` with the first number that is neither given already nor was anybody's before: "nvidia-h100-3". */
static void free_name(const struct inventory *before, char (*names)[DEVICE_GROUP_BYTES], size_t count,
                      const char *name, char *ret)
{
        const char *dash = strrchr(name, '-');
        int length = dash != NULL ? (int) (dash - name) : (int) strlen(name);
        char chosen[DEVICE_GROUP_BYTES];

        (void) text_copy(chosen, sizeof(chosen), name);
        for (unsigned number = 0; number < 2 * GROUPS_MAX && (taken(names, count, chosen) ||
                                                              inventory_find_group(before, chosen) != NULL);
             number++)
                (void) text_format(chosen, sizeof(chosen), "%.*s-%u", length, name, number);
        (void) text_copy(ret, DEVICE_GROUP_BYTES, chosen);
}

static void rename_groups(struct inventory *now, char (*names)[DEVICE_GROUP_BYTES], const size_t *group_of)
{
        for (size_t i = 0; i < now->device_count; i++)
                if (group_of[i] < now->group_count)
                        (void) text_copy(now->devices[i].group, sizeof(now->devices[i].group),
                                         names[group_of[i]]);
        for (size_t i = 0; i < now->group_count; i++)
                (void) text_copy(now->groups[i].name, sizeof(now->groups[i].name), names[i]);
}

/* Those with a past choose first; what is left takes free names. */
static void choose_names(const struct inventory *before, const struct inventory *now,
                         char (*names)[DEVICE_GROUP_BYTES])
{
        for (size_t i = 0; i < now->group_count; i++) {
                const char *name = old_name(before, now, &now->groups[i]);

                if (name != NULL && !taken(names, now->group_count, name))
                        (void) text_copy(names[i], DEVICE_GROUP_BYTES, name);
        }
        for (size_t i = 0; i < now->group_count; i++)
                if (names[i][0] == '\0')
                        free_name(before, names, now->group_count, now->groups[i].name, names[i]);
}

int continuity_keep(const struct inventory *before, struct inventory *now)
{
        CLEANUP(free_p) char(*names)[DEVICE_GROUP_BYTES] = calloc(now->group_count + 1, DEVICE_GROUP_BYTES);
        CLEANUP(free_p) size_t *group_of = calloc(now->device_count + 1, sizeof(*group_of));

        if (names == NULL || group_of == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < now->device_count; i++)
                keep_id(before, now, &now->devices[i]);
        for (size_t i = 0; i < now->device_count; i++) {
                const struct device_group *group = inventory_find_group(now, now->devices[i].group);

                group_of[i] = group != NULL ? (size_t) (group - now->groups) : SIZE_MAX;
        }
        choose_names(before, now, names);
        rename_groups(now, names, group_of);
        return 0;
}
