/* The words of AcceleratorsHealthy. The message of what is not Unknown begins with the number of healthy
 * devices: by it a later look, also of another replica, knows whether one broke or one recovered. */
#include "scheduler-extender/node_condition.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "scheduler-extender/decide/open_groups.h"
#include "scheduler-extender/ledger/ledger_sick.h"

#define DEVICES_NAMED 4

static const char *const doubts[LEDGER_DOUBTS] = {
        [LEDGER_OTHER_BOOT] = "the node has booted since its agent told of its devices",
        [LEDGER_OTHER_NODE] = "the Node object was made anew since its agent told of its devices",
        [LEDGER_AGENT_SILENT] = "the node's agent is silent",
        [LEDGER_NODE_UNREADABLE] = "the Node object could never be read",
};

static struct node_condition make(const char *status, const char *reason)
{
        struct node_condition made = { 0 };

        (void) text_copy(made.status, sizeof(made.status), status);
        (void) text_copy(made.reason, sizeof(made.reason), reason);
        return made;
}

static struct node_condition unknown(const char *reason, const char *message)
{
        struct node_condition made = make("Unknown", reason);

        (void) text_copy(made.message, sizeof(made.message), message);
        return made;
}

/* "7 of 8 devices are healthy; not GPU-1 (unhealthy), GPU-2 (quarantined) and 3 more" */
static void put_message(const struct ledger_node *node, uint32_t healthy, uint32_t total, char *message)
{
        CLEANUP(text_free) struct text text = { 0 };

        text_printf(&text, "%u of %u devices are healthy", healthy, total);
        for (uint32_t i = 0; i < node->sick_count && i < DEVICES_NAMED; i++)
                text_printf(&text, "%s%s (%s)", i == 0 ? "; not " : ", ", node->sick[i].id,
                            device_health_name((enum device_health) node->sick[i].health));
        if (node->sick_count > DEVICES_NAMED)
                text_printf(&text, " and %u more", node->sick_count - DEVICES_NAMED);
        (void) text_copy(message, NODE_CONDITION_MESSAGE_BYTES, text.failed ? "" : text.data);
}

struct node_condition node_condition_judge(const struct ledger *ledger, const struct ledger_node *node,
                                           bool had)
{
        struct node_condition made = { 0 };
        uint32_t total = 0, healthy = 0;

        for (uint32_t g = 0; node->has_inventory && g < node->group_count; g++) {
                if (open_groups_is_cpu(&ledger->symbols, &node->groups[g]))
                        continue;
                total += node->groups[g].total;
                healthy += node->groups[g].healthy;
        }
        if (total == 0)
                return had ? unknown("NoInventory", "nobody tells of accelerators of this node any more")
                           : made;
        if (node->trust.doubt != LEDGER_BELIEVED &&
            node->trust.doubt != LEDGER_AGENT_LEAVES) /* what it told a moment ago is true */
                return unknown("InventoryDoubted", doubts[node->trust.doubt]);
        made = healthy == total ? make("True", "AllDevicesHealthy")
               : healthy == 0   ? make("False", "NoDeviceHealthy")
                                : make("False", "DevicesUnhealthy");
        put_message(node, healthy, total, made.message);
        return made;
}

struct node_condition node_condition_read(const json_t *node)
{
        struct json_field root = json_field_root(node), status = json_field_get(&root, "status"),
                          list = json_field_get(&status, "conditions");

        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field entry = json_field_at(&list, i);
                const char *type = "", *holds = "", *reason = "", *message = "";
                struct node_condition read;

                (void) json_field_string(&entry, "type", &type, NULL);
                (void) json_field_string(&entry, "status", &holds, NULL);
                (void) json_field_string(&entry, "reason", &reason, NULL);
                (void) json_field_string(&entry, "message", &message, NULL);
                if (strcmp(type, NODE_CONDITION_TYPE) != 0)
                        continue;
                read = make(holds, reason);
                (void) text_copy(read.message, sizeof(read.message), message);
                return read;
        }
        return (struct node_condition){ 0 };
}

bool node_condition_equal(const struct node_condition *a, const struct node_condition *b)
{
        return strcmp(a->status, b->status) == 0 && strcmp(a->reason, b->reason) == 0 &&
               strcmp(a->message, b->message) == 0;
}

int64_t node_condition_healthy(const struct node_condition *condition)
{
        int64_t healthy = 0;
        const char *p = condition->message;

        for (; *p >= '0' && *p <= '9' && healthy < UINT32_MAX; p++)
                healthy = healthy * 10 + (*p - '0');
        return p == condition->message ? -1 : healthy;
}

const char *node_condition_news(const struct node_condition *before, const struct node_condition *now,
                                bool *ret_warning)
{
        int64_t were = node_condition_healthy(before), are = node_condition_healthy(now);
        bool was_bad = strcmp(before->status, "False") == 0, is_bad = strcmp(now->status, "False") == 0;

        *ret_warning = is_bad && (!was_bad || are < were);
        if (*ret_warning)
                return "AcceleratorsUnhealthy";
        return was_bad && are > were ? "AcceleratorsRecovered" : NULL;
}
