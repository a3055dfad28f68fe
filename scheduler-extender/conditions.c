/* Level-triggered, a part of the nodes each second: what the ledger says of a node is compared with what its
 * Node object has, whichever of the two has changed. */
#include "scheduler-extender/conditions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/text.h"
#include "base/timestamp.h"
#include "io/loop.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/node_condition.h"
#include "scheduler-extender/node_taint.h"
#include "store/store.h"

#define MINUTE_USEC UINT64_C(60000000)

struct seen_condition {
        struct name_map_entry entry;
        struct node_condition has;
        json_t *taints;   /* of its spec; NULL = none */
        char version[64]; /* of the object that has them; "" = they were written, and are not seen yet */
        bool writing;
};

struct condition_write {
        struct extender *extender;
        struct node_condition wanted;
        char version[64]; /* of the Node, where its taints are written */
        bool set;         /* ours is among them */
        char node[];
};

static bool is_on(const struct extender *x)
{
        return strcmp(x->options->node_conditions, "on") == 0;
}

static struct seen_condition *find(struct extender *x, const char *node, bool make)
{
        struct name_map *nodes = &x->conditions.nodes;

        return (struct seen_condition *) (make ? name_map_make(nodes, node, sizeof(struct seen_condition))
                                               : name_map_find(nodes, node));
}

static void forget(struct extender *x, struct seen_condition *seen)
{
        name_map_remove(&x->conditions.nodes, &seen->entry);
        json_decref(seen->taints);
        free(seen);
}

void conditions_free(struct extender *x)
{
        for (struct name_map_entry *e = name_map_first(&x->conditions.nodes), *next; e != NULL; e = next) {
                next = name_map_next(&x->conditions.nodes, e);
                forget(x, (struct seen_condition *) e);
        }
        name_map_free(&x->conditions.nodes);
}

static json_t *taints_of(const json_t *node)
{
        return json_object_get(json_object_get(node, "spec"), "taints");
}

/* A taint of ours is taken away by who is told to write none, too. */
static bool is_to_be_kept(const struct extender *x, const json_t *object)
{
        return object != NULL &&
               (is_on(x) || x->options->taint_all_bad || node_taint_index(taints_of(object)) >= 0);
}

void conditions_seen(struct extender *x, const char *node, const json_t *object)
{
        bool kept = is_to_be_kept(x, object);
        struct seen_condition *seen = find(x, node, kept);
        const char *version =
                json_string_value(json_object_get(json_object_get(object, "metadata"), "resourceVersion"));

        if (seen == NULL)
                return;
        if (!kept) {
                forget(x, seen);
                return;
        }
        if (store_directory(x->options->server.store) != NULL)
                return;
        seen->has = node_condition_read(object);
        json_decref(seen->taints);
        seen->taints = json_incref(taints_of(object));
        if (!text_copy(seen->version, sizeof(seen->version), version != NULL ? version : ""))
                seen->version[0] = '\0';
}

static void written(void *userdata, int result, const char *sentence)
{
        struct condition_write *write = userdata;
        struct extender *x = write->extender;
        struct seen_condition *seen = find(x, write->node, false);

        if (result < 0 && result != -ECANCELED) {
                extender_log(x, LOG_WARNING, "conditions", "node=%s error=\"%s\"", write->node, sentence);
                x->conditions.not_before_usec = loop_now_usec(x->loop) + MINUTE_USEC;
        }
        if (seen != NULL) {
                seen->writing = false;
                if (result == 0)
                        seen->has = write->wanted;
        }
        free(write);
}

static void tell_taint(struct extender *x, const char *node, bool set)
{
        struct store_event event = {
                .object_kind = store_kind_name(STORE_NODE),
                .namespace_ = "",
                .name = node,
                .type = set ? "Warning" : "Normal",
                .reason = set ? "AcceleratorsTainted" : "AcceleratorsUntainted",
                .message = set ? "no accelerator is healthy: pods that do not tolerate " NODE_TAINT_KEY
                                 " go elsewhere"
                               : "the taint " NODE_TAINT_KEY " is taken away"
        };

        extender_log(x, LOG_NOTICE, "conditions", "node=%s taint=%s", node, set ? "set" : "cleared");
        store_event(cluster_store(x->cluster), &event);
}

/* Somebody else has changed the Node: it is looked at again as it is then. */
static void tainted(void *userdata, int result, const char *sentence)
{
        struct condition_write *write = userdata;
        struct extender *x = write->extender;
        struct seen_condition *seen = find(x, write->node, false);

        if (result < 0 && result != -ECANCELED && result != -ESTALE && result != -ENOENT) {
                extender_log(x, LOG_WARNING, "conditions", "node=%s taint=%s error=\"%s\"", write->node,
                             write->set ? "set" : "cleared", sentence);
                x->conditions.taint_not_before_usec = loop_now_usec(x->loop) + MINUTE_USEC;
        }
        if (result == 0)
                tell_taint(x, write->node, write->set);
        if (seen != NULL) {
                seen->writing = false;
                if ((result == 0 || result == -ESTALE) && strcmp(seen->version, write->version) == 0)
                        seen->version[0] = '\0';
        }
        free(write);
}

static bool send_taint(struct extender *x, struct seen_condition *seen, bool set)
{
        struct condition_write *write = calloc(1, sizeof(*write) + strlen(seen->entry.key) + 1);
        json_t *patch = node_taint_patch(seen->taints, seen->version, set);

        if (write == NULL || patch == NULL) {
                free(write);
                json_decref(patch);
                return false;
        }
        *write = (struct condition_write){ .extender = x, .set = set };
        (void) text_copy(write->version, sizeof(write->version), seen->version);
        memcpy(write->node, seen->entry.key, strlen(seen->entry.key) + 1);
        seen->writing = true;
        store_patch(cluster_store(x->cluster), STORE_NODE, NULL, seen->entry.key, patch, tainted, write);
        json_decref(patch);
        return true;
}

/* Merged by its type: the kubelet's stay. The time of the last transition stays where the status does. */
static json_t *new_patch(const struct node_condition *has, const struct node_condition *wanted,
                         uint64_t now_usec)
{
        char now[TIMESTAMP_BYTES];
        bool turned = strcmp(has->status, wanted->status) != 0;

        (void) timestamp_format(now_usec - now_usec % 1000000, now);
        return json_pack("{s:{s:[{s:s, s:s, s:s, s:s, s:s, s:s*}]}}", "status", "conditions", "type",
                         NODE_CONDITION_TYPE, "status", wanted->status, "reason", wanted->reason, "message",
                         wanted->message, "lastHeartbeatTime", now, "lastTransitionTime",
                         turned ? now : NULL);
}

static bool send_patch(struct extender *x, struct seen_condition *seen, const struct node_condition *wanted)
{
        struct condition_write *write = calloc(1, sizeof(*write) + strlen(seen->entry.key) + 1);
        json_t *patch = new_patch(&seen->has, wanted, loop_realtime_usec(x->loop));

        if (write == NULL || patch == NULL) {
                free(write);
                json_decref(patch);
                return false;
        }
        *write = (struct condition_write){ .extender = x, .wanted = *wanted };
        memcpy(write->node, seen->entry.key, strlen(seen->entry.key) + 1);
        seen->writing = true;
        store_patch(cluster_store(x->cluster), STORE_NODE, NULL, seen->entry.key, patch, written, write);
        json_decref(patch);
        return true;
}

static void tell(struct extender *x, const char *node, const struct node_condition *before,
                 const struct node_condition *now)
{
        bool warning;
        char field[80];
        struct store_event event = { .object_kind = store_kind_name(STORE_NODE),
                                     .namespace_ = "",
                                     .name = node,
                                     .reason = node_condition_news(before, now, &warning),
                                     .message = now->message };

        event.type = warning ? "Warning" : "Normal";
        event.field = field; /* one that breaks after another is news of its own */
        (void) text_format(field, sizeof(field), "status.conditions{" NODE_CONDITION_TYPE "=%lld}",
                           (long long) node_condition_healthy(now));
        if (event.reason != NULL)
                store_event(cluster_store(x->cluster), &event);
}

static bool may_write(struct extender *x, uint64_t not_before_usec)
{
        uint64_t now = loop_now_usec(x->loop);

        if (now - x->conditions.minute_usec >= MINUTE_USEC) {
                x->conditions.minute_usec = now;
                x->conditions.written = 0;
        }
        return x->conditions.written < CONDITIONS_PER_MINUTE && now >= not_before_usec;
}

static void settle_taint(struct extender *x, struct seen_condition *seen, const struct node_condition *says)
{
        enum node_taint wanted = node_taint_judge(says, x->options->taint_all_bad);
        bool has = node_taint_index(seen->taints) >= 0;

        if (store_directory(x->options->server.store) != NULL || seen->version[0] == '\0' ||
            wanted == NODE_TAINT_STAYS || has == (wanted == NODE_TAINT_SET) ||
            !may_write(x, x->conditions.taint_not_before_usec) || !send_taint(x, seen, !has))
                return;
        x->conditions.written++;
}

static void settle_condition(struct extender *x, const char *node, struct seen_condition *seen,
                             const struct node_condition *wanted)
{
        struct node_condition before = seen->has;

        if (!may_write(x, x->conditions.not_before_usec))
                return;
        if (store_directory(x->options->server.store) != NULL)
                seen->has = *wanted;
        else if (!send_patch(x, seen, wanted))
                return;
        x->conditions.written++;
        tell(x, node, &before, wanted);
}

static void compare(struct extender *x, const struct ledger_node *node)
{
        struct seen_condition *seen = node->has_object ? find(x, node->name, is_on(x)) : NULL;
        struct node_condition wanted;

        if (seen == NULL || seen->writing)
                return;
        wanted = node_condition_judge(cluster_ledger(x->cluster), node, seen->has.status[0] != '\0');
        if (is_on(x) && !node_condition_equal(&wanted, &seen->has))
                settle_condition(x, node->name, seen, &wanted);
        if (!seen->writing)
                settle_taint(x, seen, &wanted);
}

void conditions_look(struct extender *x)
{
        const struct ledger *ledger = cluster_ledger(x->cluster);
        uint32_t count =
                ledger->node_count < CONDITIONS_LOOKED_AT ? ledger->node_count : CONDITIONS_LOOKED_AT;

        if ((!is_on(x) && x->conditions.nodes.count == 0) || !leader_leads(x->leader) ||
            !cluster_is_ready(x->cluster))
                return;
        for (uint32_t i = 0; i < count; i++) {
                x->conditions.next = x->conditions.next + 1 < ledger->node_count ? x->conditions.next + 1 : 0;
                compare(x, ledger->nodes[x->conditions.next]);
        }
}
