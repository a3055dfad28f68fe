/* Launch choice: by ids that the caller holds, or any that nobody holds. */
#include "agent/launch/launch_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/text.h"

static int choose_one(const struct services *services, const struct caller *c, const char *runtime,
                      const char *id, struct launch_choice *ret, struct err *err)
{
        const struct device *device = inventory_find_device(services->published, id);
        const struct device_group *group;

        if (device == NULL)
                return err_set(err, -ENOENT, "no device '%s' on this node", id);
        if (!c->trusted && !services_is_held(services, id, c->pod_namespace, c->pod))
                return err_set(err, -EACCES, "device '%s' is not held by the caller's pod", id);
        group = inventory_find_group(services->published, device->group);
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
int launch_choice_list(const struct services *services, const struct caller *c, const char *runtime,
                       const char *list, struct launch_choice *ret, struct err *err)
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
                if (id[0] != '\0' && (r = choose_one(services, c, runtime, id, ret, err)) < 0)
                        return r;
                list += n + (list[n] == ',');
        }
        return 0;
}

bool launch_choice_is_free(const struct services *services, const struct launches *launches,
                           const struct device *device)
{
        return device->usable && !launches_hold(launches, device->id) &&
               !services_is_held(services, device->id, NULL, NULL);
}

int launch_choice_any(const struct services *services, const struct launches *launches, const char *runtime,
                      unsigned count, struct launch_choice *ret, struct err *err)
{
        const struct inventory *published = services->published;

        for (size_t i = 0; i < published->device_count && ret->count < count; i++) {
                const struct device_group *group =
                        inventory_find_group(published, published->devices[i].group);

                if (group != NULL && vendor_serves(group->runtime, runtime) &&
                    launch_choice_is_free(services, launches, &published->devices[i]))
                        ret->devices[ret->count++] = &published->devices[i];
        }
        if (ret->count < count)
                return err_set(err, -EBUSY, "%u devices of runtime '%s' are asked for, %zu are free", count,
                               runtime, ret->count);
        return 0;
}

/* The program's variable, if all of them can be named in one way. In a pod only ids are published: its
 * numbers are its own. */
static void append_visible(json_t *environment, const struct launch_choice *chosen, bool in_pod)
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

json_t *launch_choice_environment(const struct launch_choice *choice, bool in_pod)
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
