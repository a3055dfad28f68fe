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

#define MINUTE_USEC UINT64_C(60000000)

struct seen_condition {
        struct name_map_entry entry;
        struct node_condition has;
        bool writing;
        char name[];
};

struct condition_write {
        struct extender *extender;
        struct node_condition wanted;
        char node[];
};

static bool is_on(const struct extender *x)
{
        return strcmp(x->options->node_conditions, "on") == 0;
}

static bool is_cluster(const struct extender *x)
{
        return !text_starts_with(x->options->server.store, "dir:");
}

static struct seen_condition *find(struct extender *x, const char *node, bool make)
{
        struct seen_condition *seen = (struct seen_condition *) name_map_find(&x->conditions.nodes, node);

        if (seen != NULL || !make)
                return seen;
        seen = calloc(1, sizeof(*seen) + strlen(node) + 1);
        if (seen == NULL)
                return NULL;
        memcpy(seen->name, node, strlen(node) + 1);
        seen->entry.key = seen->name;
        if (name_map_insert(&x->conditions.nodes, &seen->entry) == 0)
                return seen;
        free(seen);
        return NULL;
}

static void forget(struct extender *x, struct seen_condition *seen)
{
        name_map_remove(&x->conditions.nodes, &seen->entry);
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

void conditions_seen(struct extender *x, const char *node, const json_t *object)
{
        struct seen_condition *seen = is_on(x) ? find(x, node, object != NULL) : NULL;

        if (seen == NULL)
                return;
        if (object == NULL)
                forget(x, seen);
        else if (is_cluster(x))
                seen->has = node_condition_read(object);
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
        struct condition_write *write = calloc(1, sizeof(*write) + strlen(seen->name) + 1);
        json_t *patch = new_patch(&seen->has, wanted, loop_realtime_usec(x->loop));

        if (write == NULL || patch == NULL) {
                free(write);
                json_decref(patch);
                return false;
        }
        *write = (struct condition_write){ .extender = x, .wanted = *wanted };
        memcpy(write->node, seen->name, strlen(seen->name) + 1);
        seen->writing = true;
        store_patch(cluster_store(x->cluster), STORE_NODE, NULL, seen->name, patch, written, write);
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

static bool may_write(struct extender *x)
{
        uint64_t now = loop_now_usec(x->loop);

        if (now - x->conditions.minute_usec >= MINUTE_USEC) {
                x->conditions.minute_usec = now;
                x->conditions.written = 0;
        }
        return x->conditions.written < CONDITIONS_PER_MINUTE && now >= x->conditions.not_before_usec;
}

static void compare(struct extender *x, const struct ledger_node *node)
{
        struct seen_condition *seen = node->has_object ? find(x, node->name, true) : NULL;
        struct node_condition wanted, before;

        if (seen == NULL || seen->writing)
                return;
        before = seen->has;
        wanted = node_condition_judge(cluster_ledger(x->cluster), node, before.status[0] != '\0');
        if (node_condition_equal(&wanted, &before) || !may_write(x))
                return;
        if (!is_cluster(x))
                seen->has = wanted;
        else if (!send_patch(x, seen, &wanted))
                return;
        x->conditions.written++;
        tell(x, node->name, &before, &wanted);
}

void conditions_look(struct extender *x)
{
        const struct ledger *ledger = cluster_ledger(x->cluster);
        uint32_t count =
                ledger->node_count < CONDITIONS_LOOKED_AT ? ledger->node_count : CONDITIONS_LOOKED_AT;

        if (!is_on(x) || !leader_leads(x->leader) || !cluster_is_ready(x->cluster))
                return;
        for (uint32_t i = 0; i < count; i++) {
                x->conditions.next = x->conditions.next + 1 < ledger->node_count ? x->conditions.next + 1 : 0;
                compare(x, ledger->nodes[x->conditions.next]);
        }
}
