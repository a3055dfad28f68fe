/* Our taint among those of a Node. */
#include "scheduler-extender/node_taint.h"

#include <string.h>

#include "base/json/json_field.h"

enum node_taint node_taint_judge(const struct node_condition *says, bool wanted)
{
        if (!wanted)
                return NODE_TAINT_CLEARED;
        if (strcmp(says->reason, "NoDeviceHealthy") == 0)
                return NODE_TAINT_SET;
        return strcmp(says->reason, "InventoryDoubted") == 0 ? NODE_TAINT_STAYS : NODE_TAINT_CLEARED;
}

int node_taint_index(const json_t *taints)
{
        struct json_field list = json_field_root(taints);

        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field entry = json_field_at(&list, i);
                const char *key = "", *effect = "";

                (void) json_field_string(&entry, "key", &key, NULL);
                (void) json_field_string(&entry, "effect", &effect, NULL);
                if (strcmp(key, NODE_TAINT_KEY) == 0 && strcmp(effect, NODE_TAINT_EFFECT) == 0)
                        return (int) i;
        }
        return -1;
}

json_t *node_taint_patch(const json_t *taints, const char *version, bool set)
{
        json_t *list = taints == NULL ? json_array() : json_copy((json_t *) taints);
        int ours = node_taint_index(list);

        if (ours >= 0)
                (void) json_array_remove(list, (size_t) ours);
        if (set)
                (void) json_array_append_new(
                        list, json_pack("{s:s, s:s}", "key", NODE_TAINT_KEY, "effect", NODE_TAINT_EFFECT));
        return json_pack("{s:{s:s}, s:{s:o}}", "metadata", "resourceVersion", version, "spec", "taints",
                         list);
}
