#include "agent/launch/door_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/launch/door.h"
#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/pod_resources.h"

static bool is_held_by(const struct agent *a, const char *id, const struct caller *c)
{
        const struct device_holder *holders = NULL;
        size_t n = a->pods != NULL ? pod_resources_holders(a->pods, &holders, NULL) : 0;

        for (size_t i = 0; i < n; i++)
                if (strcmp(holders[i].device_id, id) == 0 &&
                    (c == NULL || (strcmp(holders[i].pod_namespace, c->pod_namespace) == 0 &&
                                   strcmp(holders[i].pod, c->pod) == 0)))
                        return true;
        return false;
}

static int choose_one(const struct agent *a, const struct caller *c, const char *runtime, const char *id,
                      struct door_choice *ret, struct err *err)
{
        const struct device *device = inventory_find_device(&a->told, id);
        const struct device_group *group;

        if (device == NULL)
                return err_set(err, -ENOENT, "no device '%s' on this node", id);
        if (!c->trusted && !is_held_by(a, id, c))
                return err_set(err, -EACCES, "device '%s' is not held by the caller's pod", id);
        group = inventory_find_group(&a->told, device->group);
        if (group == NULL || !vendor_serves(group->runtime, runtime))
                return err_set(err, -EINVAL, "device '%s' does not run '%s'; its runtime is '%s'", id,
                               runtime, group != NULL ? group->runtime : "none");
        for (size_t i = 0; i < ret->count; i++)
                if (ret->devices[i] == device)
                        return 0; /* two replicas of one device */
        ret->devices[ret->count++] = device;
        return 0;
}

/* "ID,ID::1,..." */
int door_choose_list(const struct agent *a, const struct caller *c, const char *runtime, const char *list,
                     struct door_choice *ret, struct err *err)
{
        char id[DEVICE_ID_BYTES];

        while (*list != '\0') {
                size_t n = strcspn(list, ",");
                char *replica;
                int r;

                if (n >= sizeof(id) || ret->count >= DEVICES_MAX)
                        return err_set(err, -EINVAL, "'%.20s...' is no device's id", list);
                memcpy(id, list, n);
                id[n] = '\0';
                replica = strstr(id, "::");
                if (replica != NULL)
                        *replica = '\0';
                if (id[0] != '\0' && (r = choose_one(a, c, runtime, id, ret, err)) < 0)
                        return r;
                list += n + (list[n] == ',');
        }
        return 0;
}

bool door_is_free(const struct agent *a, const struct device *device)
{
        return device->usable && !door_holds(a->door, device->id) && !is_held_by(a, device->id, NULL);
}

int door_choose_free(const struct agent *a, const char *runtime, unsigned count, struct door_choice *ret,
                     struct err *err)
{
        const struct inventory *told = &a->told;

        for (size_t i = 0; i < told->device_count && ret->count < count; i++) {
                const struct device_group *group = inventory_find_group(told, told->devices[i].group);

                if (group != NULL && vendor_serves(group->runtime, runtime) &&
                    door_is_free(a, &told->devices[i]))
                        ret->devices[ret->count++] = &told->devices[i];
        }
        if (ret->count < count)
                return err_set(err, -EBUSY, "%u devices of runtime '%s' are asked for, %zu are free", count,
                               runtime, ret->count);
        return 0;
}

/* The program's variable, if all of them can be named in one way. In a pod only ids are told: its numbers are
 * its own. */
static void append_visible(json_t *environment, const struct door_choice *chosen, bool in_pod)
{
        const struct vendor *row = vendor_find(chosen->devices[0]->vendor, NULL);
        char name[DEVICE_ID_BYTES];
        struct text value = { 0 };
        enum vendor_naming by;
        bool by_id;
        char *taken;

        if (row == NULL || row->program.name == NULL || (row->program.single && chosen->count > 1))
                return;
        by_id = row->program.by == VENDOR_BY_UUID_OR_INDEX;
        for (size_t i = 0; i < chosen->count; i++)
                by_id = by_id && vendor_has_uuid(chosen->devices[i]);
        if (in_pod && !by_id)
                return;
        by = by_id || row->program.by != VENDOR_BY_UUID_OR_INDEX ? row->program.by : VENDOR_BY_INDEX;
        for (size_t i = 0; i < chosen->count; i++) {
                vendor_visible_name(by, chosen->devices[i], name, sizeof(name));
                text_printf(&value, "%s%s", i > 0 ? "," : "", name);
        }
        taken = text_take(&value, NULL);
        (void) json_object_set_new(environment, row->program.name, json_string(taken));
        free(taken);
}

json_t *door_environment(const struct door_choice *choice, bool in_pod)
{
        json_t *environment = json_object();
        struct text ids = { 0 };
        char *taken;

        if (choice->count == 0)
                return environment;
        for (size_t i = 0; i < choice->count; i++)
                text_printf(&ids, "%s%s", i > 0 ? "," : "", choice->devices[i]->id);
        taken = text_take(&ids, NULL);
        (void) json_object_set_new(environment, "REMUDA_VENDOR", json_string(choice->devices[0]->vendor));
        (void) json_object_set_new(environment, "REMUDA_DEVICES", json_string(taken));
        free(taken);
        append_visible(environment, choice, in_pod);
        return environment;
}
