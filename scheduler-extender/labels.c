/* Node labels, written from the inventory by this side only: agents have no rights on nodes. */
#include <string.h>

#include "core/cleanup.h"
#include "core/text.h"
#include "scheduler-extender/state.h"

/* A label's name or value holds [A-Za-z0-9._-] and begins and ends with a letter or digit; at most 63. */
static void make_label_part(const char *from, char *to, size_t bytes)
{
        size_t n = 0;

        for (; *from != '\0' && n + 1 < bytes; from++) {
                bool plain = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') ||
                             (*from >= '0' && *from <= '9');

                if (plain || (n > 0 && strchr("._-", *from) != NULL))
                        to[n++] = *from;
                else if (n > 0)
                        to[n++] = '-';
        }
        while (n > 0 && strchr("._-", to[n - 1]) != NULL)
                n--;
        to[n] = '\0';
}

static void add_count(json_t *labels, const char *name, unsigned count)
{
        const json_t *old = json_object_get(labels, name);
        uint64_t sum = count;
        char text[24];

        if (old != NULL && text_parse_uint64(json_string_value(old), &sum) == 0)
                sum += count;
        (void) text_format(text, sizeof(text), "%llu", (unsigned long long) sum);
        (void) json_object_set_new(labels, name, json_string(text));
}

static void add_group(json_t *labels, const struct device_group *group)
{
        char vendor[24], model[40], name[64], label[96];

        make_label_part(group->vendor, vendor, sizeof(vendor));
        make_label_part(group->model, model, sizeof(model));
        make_label_part(group->name, name, 57); /* "group." and the name: 63 */
        if (vendor[0] != '\0') {
                (void) text_format(label, sizeof(label), "remuda.dev/%s.count", vendor);
                add_count(labels, label, group->total);
        }
        if (vendor[0] != '\0' && model[0] != '\0' && strlen(vendor) + strlen(model) + 7 <= 63) {
                (void) text_format(label, sizeof(label), "remuda.dev/%s.%s.count", vendor, model);
                add_count(labels, label, group->total);
        }
        if (name[0] != '\0') {
                (void) text_format(label, sizeof(label), "remuda.dev/group.%s", name);
                add_count(labels, label, group->total);
        }
}

/* Were these labels written before? The ledger's node remembers. */
static bool are_old(struct extender *x, const char *node_name, const json_t *labels)
{
        struct ledger_node *node = ledger_find_node(cluster_ledger(x->cluster), node_name, strlen(node_name));
        CLEANUP(free_p) char *text = json_dumps(labels, JSON_SORT_KEYS);
        uint64_t hash = text == NULL ? 0 : string_hash(text, strlen(text));

        if (node == NULL || hash == 0)
                return false;
        if (node->labels_hash == hash)
                return true;
        node->labels_hash = hash;
        return false;
}

void labels_write(struct extender *x, const struct inventory *inventory)
{
        json_t *labels, *patch;
        char pool[64];

        if (!text_starts_with(x->options->store, "kubernetes"))
                return; /* a directory's Node objects are somebody's files */
        labels = json_object();
        make_label_part(inventory->pool, pool, sizeof(pool));
        (void) json_object_set_new(labels, "remuda.dev/node-class",
                                   json_string(node_class_name(inventory->node_class)));
        (void) json_object_set_new(labels, "remuda.dev/pool", json_string(pool));
        for (size_t i = 0; i < inventory->group_count; i++)
                add_group(labels, &inventory->groups[i]);
        if (are_old(x, inventory->node, labels)) {
                json_decref(labels);
                return;
        }
        patch = json_pack("{s:{s:o}}", "metadata", "labels", labels);
        if (patch == NULL)
                return;
        store_patch(cluster_store(x->cluster), STORE_NODE, NULL, inventory->node, patch, NULL, NULL);
        json_decref(patch);
}
