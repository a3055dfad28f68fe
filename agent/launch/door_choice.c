#include "agent/launch/door_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/launch/door.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/pod_resources.h"

static bool group_serves(const struct device_group *group, const char *runtime)
{
        if (strcmp(group->runtime, runtime) == 0)
                return true;
        return strcmp(group->runtime, "cpu") == 0 &&
               (strcmp(runtime, "opencl") == 0 || strcmp(runtime, "sunway") == 0);
}

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
        if (group == NULL || !group_serves(group, runtime))
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

                if (group != NULL && group_serves(group, runtime) && door_is_free(a, &told->devices[i]))
                        ret->devices[ret->count++] = &told->devices[i];
        }
        if (ret->count < count)
                return err_set(err, -EBUSY, "%u devices of runtime '%s' are asked for, %zu are free", count,
                               runtime, ret->count);
        return 0;
}

/* How each runtime's programs are told their devices. A pod's numbers are its own: there only ids are told.
 */
/* clang-format off */
static const struct {
        const char *vendor, *variable;
        bool by_id; /* the vendor's programs know devices by the id we use */
} visible[] = {
        { "nvidia",    "CUDA_VISIBLE_DEVICES",      true  },
        { "amd",       "ROCR_VISIBLE_DEVICES",      true  },
        { "hygon",     "HIP_VISIBLE_DEVICES",       false },
        { "huawei",    "ASCEND_RT_VISIBLE_DEVICES", false },
        { "cambricon", "MLU_VISIBLE_DEVICES",       false },
        { "mthreads",  "MUSA_VISIBLE_DEVICES",      false },
        { "metax",     "CUDA_VISIBLE_DEVICES",      false },
        { "iluvatar",  "CUDA_VISIBLE_DEVICES",      false },
        { "enflame",   "TOPS_VISIBLE_DEVICES",      false },
        { "kunlunxin", "XPU_VISIBLE_DEVICES",       false },
        { "intel",     "ZE_AFFINITY_MASK",          false },
        { "google",    "TPU_VISIBLE_CHIPS",         false },
        { "tenstorrent", "TT_VISIBLE_DEVICES",      false },
};
/* clang-format on */

static void append_visible(json_t *environment, const struct door_choice *chosen, bool in_pod)
{
        const char *vendor = chosen->devices[0]->vendor;

        for (size_t v = 0; v < ARRAY_SIZE(visible); v++) {
                struct text value = { 0 };
                const struct device *first = chosen->devices[0];
                /* a whole GPU or a MIG slice by its UUID; a compute partition has only a number */
                bool by_id = visible[v].by_id &&
                             ((text_starts_with(first->id, "GPU-") && first->partition[0] == '\0') ||
                              text_starts_with(first->id, "MIG-"));
                char *taken;

                if (strcmp(visible[v].vendor, vendor) != 0 || (in_pod && !by_id))
                        continue;
                for (size_t i = 0; i < chosen->count; i++)
                        if (by_id)
                                text_printf(&value, "%s%s", i > 0 ? "," : "", chosen->devices[i]->id);
                        else
                                text_printf(&value, "%s%u", i > 0 ? "," : "", chosen->devices[i]->index);
                taken = text_take(&value, NULL);
                (void) json_object_set_new(environment, visible[v].variable, json_string(taken));
                free(taken);
                break;
        }
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
