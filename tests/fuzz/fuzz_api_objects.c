/* Any JSON as a stream of objects from the API server: a ledger is built of them, asked, and never goes
 * wrong. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inventory/inventory_json.h"
#include "base/cleanup.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/candidates.h"
#include "scheduler-extender/decide/gang.h"
#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/decide/score.h"
#include "scheduler-extender/groups/group_pass.h"
#include "scheduler-extender/groups/groups.h"
#include "scheduler-extender/ledger/ledger.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/wire/pod_json.h"
#include "scheduler-extender/wire/pod_node_match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_accounts(const struct ledger *ledger)
{
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                const struct ledger_node *node = ledger->nodes[i];
                uint64_t asked = 0, held = 0;

                for (const struct ledger_pod *pod = node->pods; pod != NULL; pod = pod->next_on_node)
                        for (size_t k = 0; k < pod->request.item_count; k++)
                                for (uint32_t g = 0; g < node->group_count; g++)
                                        if (pod->part_count == 0 && node->groups[g].resource != 0 &&
                                            node->groups[g].resource == pod->request.items[k].resource) {
                                                asked += pod->request.items[k].chips;
                                                break;
                                        }
                for (uint32_t g = 0; g < node->group_count; g++)
                        held += node->groups[g].held;
                if (held < asked) /* every chip that a pod asks for is held somewhere */
                        __builtin_trap();
        }
}

/* A member of a group's own cycle: nothing is left of the question, and then its bind. */
static void ask_group(struct ledger *ledger, struct rules_context *ctx, struct ledger_job *job,
                      const struct gang_demand *demand)
{
        uint32_t nodes[64], slots = ledger->slot_total;
        uint8_t verdicts[64];
        size_t count = ledger->node_count < 64 ? ledger->node_count : 64;

        for (uint32_t i = 0; i < count; i++)
                nodes[i] = i;
        if (group_pass_begin(ledger, ctx, job, demand) > 0) {
                if (candidates_judge(ctx, ledger, nodes, count, verdicts) == 0)
                        (void) group_pass_choose(ledger, ctx, nodes, count, verdicts);
                group_pass_end(ledger, job);
        }
        if (ledger->slot_total != slots)
                __builtin_trap();
        (void) group_pass_commit(ledger, ctx, job);
}

static void ask_ledger(struct ledger *ledger, const struct ledger_pod_facts *facts)
{
        struct rules rules = { .placement = PLACEMENT_PACKED, .lease_usec = 1 };
        struct request request = facts->request;
        struct rules_context ctx = { .ledger = ledger, .rules = &rules, .request = &request, .now_usec = 1 };
        struct gang_demand demand = { .kinds = facts->kinds, .kind_count = facts->kind_count, .keep = true };
        struct ledger_job *job = facts->job == NULL || request.gang_size > 64
                                         ? NULL
                                         : ledger_jobs_refer(ledger, facts->namespace_, facts->job);

        ledger_chips_only(ledger, &request);
        ctx.job = job;
        ctx.namespace_ = facts->namespace_;
        ctx.self = ledger_pods_find(ledger, facts->namespace_, facts->name);
        rules_prepare(&ctx);
        if (job != NULL && request.group == REQUEST_GROUP_CYCLE)
                ask_group(ledger, &ctx, job, &demand);
        else if (job != NULL)
                (void) gang_prepare(ledger, &ctx, job, &demand);
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                struct score_tuple tuple;

                if (rules_judge(&ctx, ledger->nodes[i]) == REASON_NONE)
                        score_tuple(&ctx, ledger->nodes[i], &tuple);
        }
        if (job != NULL)
                ledger_jobs_release(ledger, job);
}

static void take(struct ledger *ledger, const json_t *object)
{
        const char *kind = json_string_value(json_object_get(object, "kind"));
        struct pod_json_policy policy = { 0 };
        struct inventory inventory;
        CLEANUP(text_free) struct text lines = { 0 };
        struct ledger_node_facts node;
        struct ledger_pod_facts pod;

        if (kind == NULL)
                return;
        if (strcmp(kind, "PodGroup") == 0 || strcmp(kind, "Workload") == 0) {
                (void) (kind[0] == 'P' ? groups_take_pod_group
                                       : groups_take_workload)(ledger, "default/train", object, NULL);
        } else if (strcmp(kind, "NodeAccelerators") == 0) {
                if (inventory_json_decode(object, &inventory, NULL) == 0) {
                        (void) ledger_nodes_set_inventory(ledger, &inventory);
                        inventory_free(&inventory);
                }
        } else if (strcmp(kind, "Node") == 0) {
                if (pod_json_node_decode(object, ledger, &node, NULL) == 0) {
                        pod_node_match_traits(object, &lines);
                        node.traits = lines.data;
                        (void) ledger_nodes_set(ledger, &node);
                }
        } else if (pod_json_decode(object, &policy, ledger, true, &pod, NULL) == 0 || pod.name[0] != '\0') {
                pod_node_match(object, &lines);
                pod.node_match = lines.data;
                (void) ledger_pods_set(ledger, &pod);
                ask_ledger(ledger, &pod);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *list = json_loadb((const char *) data, size, 0, NULL), *item;
        struct rules rules = { .placement = PLACEMENT_PACKED };
        struct ledger *ledger = ledger_life_new();
        size_t i;

        groups_serve(ledger, REQUEST_GROUP_ALONE, size % 2 == 0);
        groups_serve(ledger, REQUEST_GROUP_CYCLE, true);
        json_array_foreach(list, i, item) take(ledger, item);
        check_accounts(ledger);
        (void) backfill_update(ledger, &rules, 1);
        (void) gang_expire(ledger, &rules, UINT64_MAX);
        ledger_life_free(ledger);
        json_decref(list);
        return 0;
}
