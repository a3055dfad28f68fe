/* Pods and nodes that a what-if leaves out or adds. */
#include "scheduler-extender/explain/whatif_change.h"

#include <errno.h>
#include <string.h>

#include "base/json/json_field.h"
#include "base/text.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

static int drop_pods(struct ledger *ledger, const struct json_field *keys, struct err *err)
{
        for (size_t i = 0; i < json_field_count(keys); i++) {
                const char *key = json_string_value(json_array_get(keys->value, i));
                const char *name;
                char namespace_[256];

                if (key == NULL)
                        return err_set(err, -EBADMSG, "withoutPods[%zu]: must be \"NAMESPACE/NAME\"", i);
                name = store_key_split(key, namespace_);
                if (strchr(key, '/') == NULL)
                        (void) text_copy(namespace_, sizeof(namespace_), "default");
                if (ledger_pods_find(ledger, namespace_, name) == NULL)
                        return err_set(err, -EBADMSG, "withoutPods[%zu]: there is no pod '%s'", i, key);
                ledger_pods_drop(ledger, namespace_, name);
        }
        return 0;
}

static int drop_nodes(struct ledger *ledger, const struct json_field *names, struct err *err)
{
        for (size_t i = 0; i < json_field_count(names); i++) {
                const char *name = json_string_value(json_array_get(names->value, i));

                if (name == NULL || ledger_nodes_find(ledger, name, strlen(name)) == NULL)
                        return err_set(err, -EBADMSG, "removeNodes[%zu]: there is no node '%s'", i,
                                       name == NULL ? "?" : name);
                ledger_nodes_drop_inventory(ledger, name);
                ledger_nodes_drop(ledger, name);
        }
        return 0;
}

/* An empty copy of a node: its inventory, or what it allows, under another name. */
static json_t *copy_node(const struct ledger *ledger, const struct ledger_node *node, const char *name)
{
        const struct symbols *s = &ledger->symbols;
        json_t *groups = json_array();

        for (uint32_t i = 0; i < node->group_count; i++) {
                const struct ledger_group *g = &node->groups[i];
                json_t *group = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:I}", "name",
                                          symbols_name(s, g->name), "vendor", symbols_name(s, g->vendor),
                                          "runtime", symbols_name(s, g->runtime), "model",
                                          symbols_name(s, g->model), "resource", symbols_name(s, g->resource),
                                          "total", (int) g->total, "healthy", (int) g->total, "free",
                                          (int) g->total, "memoryBytes", (json_int_t) g->memory_bytes);

                ledger_speeds_put(group, &g->figures);
                (void) json_array_append_new(groups, group);
        }
        return json_pack("{s:s, s:s, s:{s:s}, s:{s:s, s:s, s:o, s:[]}}", "apiVersion", "remuda.dev/v1alpha1",
                         "kind", "NodeAccelerators", "metadata", "name", name, "status", "nodeClass",
                         node_class_name((enum node_class) node->node_class), "pool",
                         node->pool == 0 ? "regular" : symbols_name(s, node->pool), "groups", groups,
                         "devices");
}

/* An object, or {"name","like"}. */
static int add_node(struct cluster *c, const json_t *node, struct err *err)
{
        struct json_field root = json_field_root(node);
        const char *like = NULL, *name = NULL;
        const struct ledger_node *model;
        json_t *copy;
        int r;

        if (json_field_string(&root, "like", &like, NULL) < 0 || like == NULL)
                return cluster_take(c, node, err);
        r = json_field_string(&root, "name", &name, err);
        if (r != 0)
                return r < 0 ? r : json_field_require(&root, "name", err);
        model = ledger_nodes_find(cluster_ledger(c), like, strlen(like));
        if (model == NULL)
                return err_set(err, -ENOENT, "there is no node '%.100s' that '%.100s' could be like", like,
                               name);
        copy = copy_node(cluster_ledger(c), model, name);
        r = copy == NULL ? err_set(err, -EBADMSG, "'%.100s' is no name of a node", name)
                         : cluster_take(c, copy, err);
        json_decref(copy);
        return r;
}

int whatif_change(struct cluster *c, const json_t *body, size_t max, struct err *err)
{
        struct json_field root = json_field_root(body), add, remove, without;
        int r;

        if (json_field_array(&root, "addNodes", max, &add, err) < 0 ||
            json_field_array(&root, "removeNodes", max, &remove, err) < 0 ||
            json_field_array(&root, "withoutPods", max, &without, err) < 0)
                return -EBADMSG;
        r = drop_pods(cluster_ledger(c), &without, err);
        if (r == 0)
                r = drop_nodes(cluster_ledger(c), &remove, err);
        for (size_t i = 0; i < json_field_count(&add) && r == 0; i++) {
                r = add_node(c, json_array_get(add.value, i), err);
                if (r < 0)
                        (void) err_wrap(err, r, "addNodes[%zu]", i);
        }
        return r;
}
