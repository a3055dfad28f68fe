/* Node labels, written from the inventory by this side only: agents have no rights on nodes. Level-triggered:
 * what a Node object has is compared with what its inventory says, whichever of the two has changed. */
#include "scheduler-extender/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_nodes.h"

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

static void add_group(json_t *labels, const struct symbols *symbols, const struct ledger_group *group)
{
        char vendor[24], model[40], name[64], label[96];

        make_label_part(symbols_name(symbols, group->vendor), vendor, sizeof(vendor));
        make_label_part(symbols_name(symbols, group->model), model, sizeof(model));
        make_label_part(symbols_name(symbols, group->name), name, 57); /* "group." and the name: 63 */
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

static json_t *wanted_labels(const struct ledger *ledger, const struct ledger_node *node)
{
        json_t *labels = json_object();
        char pool[64];

        if (labels == NULL || !node->has_inventory)
                return labels;
        make_label_part(symbols_name(&ledger->symbols, node->pool), pool, sizeof(pool));
        (void) json_object_set_new(labels, "remuda.dev/node-class",
                                   json_string(node_class_name((enum node_class) node->node_class)));
        (void) json_object_set_new(labels, "remuda.dev/pool", json_string(pool));
        for (uint32_t i = 0; i < node->group_count; i++)
                add_group(labels, &ledger->symbols, &node->groups[i]);
        return labels;
}

static bool are_ours(const char *name)
{
        if (!text_starts_with(name, "remuda.dev/"))
                return false;
        name += strlen("remuda.dev/");
        return strcmp(name, "node-class") == 0 || strcmp(name, "pool") == 0 ||
               text_starts_with(name, "group.") || text_ends_with(name, ".count");
}

static json_t *difference_of(const json_t *have, const json_t *wanted)
{
        json_t *difference = json_object(), *value;
        const char *name;

        json_object_foreach((json_t *) wanted, name, value)
        {
                if (!json_equal(json_object_get(have, name), value))
                        (void) json_object_set(difference, name, value);
        }
        json_object_foreach((json_t *) have, name, value)
        {
                if (json_object_get(wanted, name) == NULL)
                        (void) json_object_set_new(difference, name, json_null());
        }
        return difference;
}

struct seen_labels {
        struct name_map_entry entry;
        char *text; /* our labels as compact JSON; NULL = not known: write them all */
        char name[];
};

static struct seen_labels *find(struct extender *x, const char *node, bool make)
{
        struct seen_labels *seen = (struct seen_labels *) name_map_find(&x->labels, node);

        if (seen != NULL || !make)
                return seen;
        seen = calloc(1, sizeof(*seen) + strlen(node) + 1);
        if (seen == NULL)
                return NULL;
        memcpy(seen->name, node, strlen(node) + 1);
        seen->entry.key = seen->name;
        if (name_map_insert(&x->labels, &seen->entry) == 0)
                return seen;
        free(seen);
        return NULL;
}

static void forget(struct extender *x, struct seen_labels *seen)
{
        name_map_remove(&x->labels, &seen->entry);
        free(seen->text);
        free(seen);
}

void labels_free(struct extender *x)
{
        for (struct name_map_entry *e = name_map_first(&x->labels), *next; e != NULL; e = next) {
                next = name_map_next(&x->labels, e);
                forget(x, (struct seen_labels *) e);
        }
        name_map_free(&x->labels);
}

static bool has_labels(const struct extender *x)
{
        return !text_starts_with(x->options->server.store,
                                 "dir:"); /* a directory's Node objects are somebody's files */
}

static void remember(struct seen_labels *seen, const json_t *labels)
{
        free(seen->text);
        seen->text = json_dumps(labels, JSON_COMPACT | JSON_SORT_KEYS);
}

void labels_seen(struct extender *x, const char *node, const json_t *labels)
{
        struct seen_labels *seen = has_labels(x) ? find(x, node, labels != NULL) : NULL;
        json_t *ours, *value;
        const char *name;

        if (seen == NULL)
                return;
        if (labels == NULL) {
                forget(x, seen);
                return;
        }
        ours = json_object();
        json_object_foreach((json_t *) labels, name, value)
        {
                if (are_ours(name))
                        (void) json_object_set(ours, name, value);
        }
        remember(seen, ours);
        json_decref(ours);
        labels_write(x, node);
}

struct label_write {
        struct extender *extender;
        char node[];
};

static void written(void *userdata, int result, const char *sentence)
{
        struct label_write *write = userdata;
        struct seen_labels *seen;

        if (result < 0 && result != -ECANCELED) {
                extender_log(write->extender, LOG_WARNING, "labels", "node=%s error=\"%s\"", write->node,
                             sentence);
                seen = find(write->extender, write->node, false);
                if (seen != NULL) {
                        free(seen->text);
                        seen->text = NULL;
                }
        }
        free(write);
}

static void send_patch(struct extender *x, const char *node, json_t *difference)
{
        struct label_write *write = calloc(1, sizeof(*write) + strlen(node) + 1);
        json_t *patch = json_pack("{s:{s:O}}", "metadata", "labels", difference);

        if (write == NULL || patch == NULL) {
                free(write);
        } else {
                write->extender = x;
                memcpy(write->node, node, strlen(node) + 1);
                store_patch(cluster_store(x->cluster), STORE_NODE, NULL, node, patch, written, write);
        }
        json_decref(patch);
}

void labels_write(struct extender *x, const char *name)
{
        const struct ledger_node *node = ledger_nodes_find(cluster_ledger(x->cluster), name, strlen(name));
        struct seen_labels *seen = has_labels(x) ? find(x, name, false) : NULL;
        json_t *have, *wanted, *difference;

        if (seen == NULL || node == NULL || !node->has_object || !leader_leads(x->leader) ||
            !cluster_is_ready(x->cluster))
                return;
        have = seen->text != NULL ? json_loads(seen->text, 0, NULL) : json_object();
        wanted = wanted_labels(cluster_ledger(x->cluster), node);
        difference = difference_of(have, wanted);
        if (json_object_size(difference) > 0) {
                remember(seen, wanted); /* until the Node says otherwise */
                send_patch(x, name, difference);
        }
        json_decref(difference);
        json_decref(wanted);
        json_decref(have);
}

void labels_write_all(struct extender *x)
{
        const struct ledger *ledger = cluster_ledger(x->cluster);

        for (uint32_t i = 0; i < ledger->node_count && has_labels(x); i++)
                labels_write(x, ledger->nodes[i]->name);
}
