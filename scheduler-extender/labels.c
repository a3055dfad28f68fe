/* Node labels, written from the inventory by this side only: agents have no rights on nodes. Level-triggered:
 * what a Node object has is compared with what its inventory says, whichever of the two has changed. */
#include "scheduler-extender/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "store/store.h"

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

bool labels_are_ours(const char *name)
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

/* Writes that wait for their answers at a time: each has buffers of a call's and of TLS, and an API server
 * has others to serve. */
#define WRITES_MAX 16
#define LOOKS_MAX  16 /* nodes that are compared before others on the loop have their turn */

#define AGAIN_FIRST_USEC UINT64_C(1000000)
#define AGAIN_MAX_USEC   (300 * UINT64_C(1000000))

struct label_write {
        struct extender *extender;
        json_t *wanted;
        char node[];
};

struct seen_labels {
        struct name_map_entry entry;
        struct seen_labels *previous, *next; /* of those that are due, in the order in which they came */
        struct label_write *write;           /* that has no answer yet; NULL = none */
        bool due;                            /* to be compared */
        bool told;                           /* the Node said what it has since that write was sent */
        bool failed;                         /* the last write was refused: it is tried again */
        char *text; /* our labels as compact JSON, as the Node has them; NULL = not known: none */
};

static struct seen_labels *find(struct extender *x, const char *node, bool make)
{
        struct name_map *nodes = &x->labels.nodes;

        return (struct seen_labels *) (make ? name_map_make(nodes, node, sizeof(struct seen_labels))
                                            : name_map_find(nodes, node));
}

/* The look at those that are due goes on while there is one, and a write is free for it. */
static void look_soon(struct extender *x)
{
        bool on = x->labels.first != NULL && x->labels.writing < WRITES_MAX;

        (void) sd_event_source_set_enabled(x->labels.look, on ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void set_due(struct extender *x, struct seen_labels *seen)
{
        if (seen->due)
                return;
        seen->due = true;
        seen->previous = x->labels.last;
        *(seen->previous != NULL ? &seen->previous->next : &x->labels.first) = seen;
        x->labels.last = seen;
}

static void set_not_due(struct extender *x, struct seen_labels *seen)
{
        if (!seen->due)
                return;
        seen->due = false;
        *(seen->previous != NULL ? &seen->previous->next : &x->labels.first) = seen->next;
        *(seen->next != NULL ? &seen->next->previous : &x->labels.last) = seen->previous;
        seen->previous = seen->next = NULL;
}

static void forget(struct extender *x, struct seen_labels *seen)
{
        set_not_due(x, seen);
        name_map_remove(&x->labels.nodes, &seen->entry);
        free(seen->text);
        free(seen);
}

void labels_free(struct extender *x)
{
        for (struct name_map_entry *e = name_map_first(&x->labels.nodes), *next; e != NULL; e = next) {
                next = name_map_next(&x->labels.nodes, e);
                forget(x, (struct seen_labels *) e);
        }
        name_map_free(&x->labels.nodes);
        sd_event_source_disable_unref(x->labels.look);
        sd_event_source_disable_unref(x->labels.again);
}

static bool has_labels(const struct extender *x)
{
        return store_directory(x->options->server.store) ==
               NULL; /* a directory's Node objects are somebody's files */
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
                if (labels_are_ours(name))
                        (void) json_object_set(ours, name, value);
        }
        seen->told = true;
        remember(seen, ours);
        json_decref(ours);
        labels_write(x, node);
}

/* All that were refused are tried again together, ever later while none of them is taken. */
static void try_again_later(struct extender *x, struct seen_labels *seen)
{
        seen->failed = true;
        if (x->labels.waits_again)
                return;
        x->labels.waits_again = true;
        loop_rearm(x->labels.again, backoff_usec(++x->labels.rounds, AGAIN_FIRST_USEC, AGAIN_MAX_USEC));
}

static void on_again(void *userdata)
{
        struct extender *x = userdata;
        struct name_map_entry *e = name_map_first(&x->labels.nodes);

        x->labels.waits_again = false;
        for (; e != NULL; e = name_map_next(&x->labels.nodes, e))
                if (((struct seen_labels *) e)->failed)
                        set_due(x, (struct seen_labels *) e);
        look_soon(x);
}

/* What was written is what the Node has, unless it has said something else meanwhile. */
static void written(void *userdata, int result, const char *sentence)
{
        struct label_write *write = userdata;
        struct extender *x = write->extender;
        struct seen_labels *seen = find(x, write->node, false);

        x->labels.writing--;
        if (seen != NULL && seen->write == write) {
                seen->write = NULL;
                if (result < 0 && result != -ECANCELED) {
                        if (!seen->failed)
                                extender_log(x, LOG_WARNING, "labels", "node=%s error=\"%s\"",
                                             seen->entry.key, sentence);
                        try_again_later(x, seen);
                } else if (result == 0) {
                        if (!seen->told)
                                remember(seen, write->wanted);
                        x->labels.rounds = seen->failed ? 0 : x->labels.rounds;
                        seen->failed = false;
                        set_due(x, seen); /* the inventory may have changed meanwhile */
                }
        }
        look_soon(x);
        json_decref(write->wanted);
        free(write);
}

static void send_patch(struct extender *x, struct seen_labels *seen, json_t *difference, json_t *wanted)
{
        struct label_write *write = calloc(1, sizeof(*write) + strlen(seen->entry.key) + 1);
        json_t *patch = json_pack("{s:{s:O}}", "metadata", "labels", difference);

        if (write == NULL || patch == NULL) {
                free(write);
                try_again_later(x, seen);
        } else {
                x->labels.writing++;
                *write = (struct label_write){ .extender = x, .wanted = json_incref(wanted) };
                memcpy(write->node, seen->entry.key, strlen(seen->entry.key) + 1);
                seen->write = write;
                seen->told = false;
                store_patch(cluster_store(x->cluster), STORE_NODE, NULL, seen->entry.key, patch, written,
                            write);
        }
        json_decref(patch);
}

static void compare(struct extender *x, struct seen_labels *seen)
{
        const struct ledger *ledger = cluster_ledger(x->cluster);
        const struct ledger_node *node = ledger_nodes_find(ledger, seen->entry.key, strlen(seen->entry.key));
        json_t *have, *wanted, *difference;

        if (seen->write != NULL || node == NULL || !node->has_object || !leader_leads(x->leader) ||
            !cluster_is_ready(x->cluster))
                return;
        have = seen->text != NULL ? json_loads(seen->text, 0, NULL) : json_object();
        wanted = wanted_labels(ledger, node);
        difference = difference_of(have, wanted);
        if (json_object_size(difference) > 0)
                send_patch(x, seen, difference, wanted);
        else
                seen->failed = false;
        json_decref(difference);
        json_decref(wanted);
        json_decref(have);
}

static int on_look(sd_event_source *source, void *userdata)
{
        struct extender *x = userdata;

        (void) source;
        for (int i = 0; i < LOOKS_MAX && x->labels.first != NULL && x->labels.writing < WRITES_MAX; i++) {
                struct seen_labels *seen = x->labels.first;

                set_not_due(x, seen);
                compare(x, seen);
        }
        look_soon(x);
        return 0;
}

int labels_open(struct extender *x)
{
        int r = sd_event_add_defer(x->loop, &x->labels.look, on_look, x);

        if (r >= 0)
                r = sd_event_source_set_enabled(x->labels.look, SD_EVENT_OFF);
        if (r >= 0)
                r = loop_timer(x->loop, on_again, x, &x->labels.again);
        return r < 0 ? r : sd_event_source_set_priority(x->labels.look, SD_EVENT_PRIORITY_NORMAL + 1);
}

void labels_write(struct extender *x, const char *name)
{
        struct seen_labels *seen = has_labels(x) ? find(x, name, false) : NULL;

        if (seen == NULL)
                return;
        set_due(x, seen);
        look_soon(x);
}

void labels_write_all(struct extender *x)
{
        struct name_map_entry *e = name_map_first(&x->labels.nodes);

        for (; e != NULL; e = name_map_next(&x->labels.nodes, e))
                set_due(x, (struct seen_labels *) e);
        look_soon(x);
}
