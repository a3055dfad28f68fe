/* A small cluster in few lines, for the tests of scheduler-extender/decide. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "scheduler-extender/decide/gang.h"
#include "scheduler-extender/decide/rules.h"
#include "scheduler-extender/decide/score.h"
#include "scheduler-extender/ledger/ledger.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define GPU "nvidia.com/gpu"

static struct rules fixture_rules = { .placement = PLACEMENT_PACKED,
                                      .lease_usec = 60000000,
                                      .lease_share_percent = 50,
                                      .hold_usec = 600000000 };

/* A node with one group of `total` chips of which `healthy` are usable. */
static inline void add_node(struct ledger *ledger, const char *name, enum node_class class, const char *pool,
                            const char *model, unsigned total, unsigned healthy)
{
        struct inventory inventory;
        struct device_group *group;

        inventory_init(&inventory);
        (void) text_copy(inventory.node, sizeof(inventory.node), name);
        inventory.node_class = class;
        (void) text_copy(inventory.pool, sizeof(inventory.pool), pool);
        group = inventory_add_group(&inventory);
        (void) text_copy(group->name, sizeof(group->name), "group-0");
        (void) text_copy(group->vendor, sizeof(group->vendor), "nvidia");
        (void) text_copy(group->runtime, sizeof(group->runtime), "cuda");
        (void) text_copy(group->model, sizeof(group->model), model);
        (void) text_copy(group->resource, sizeof(group->resource), GPU);
        group->total = total;
        group->healthy = healthy;
        group->tflops_bf16 = 100;
        (void) ledger_nodes_set_inventory(ledger, &inventory);
        inventory_free(&inventory);
}

/* One more group of the same resource on a node that exists: the inventory is told again with both. */
static inline void add_two_groups(struct ledger *ledger, const char *name, unsigned first, unsigned second,
                                  double first_tflops, double second_tflops)
{
        struct inventory inventory;

        inventory_init(&inventory);
        (void) text_copy(inventory.node, sizeof(inventory.node), name);
        for (int i = 0; i < 2; i++) {
                struct device_group *group = inventory_add_group(&inventory);

                (void) text_format(group->name, sizeof(group->name), "group-%d", i);
                (void) text_copy(group->vendor, sizeof(group->vendor), "nvidia");
                (void) text_copy(group->runtime, sizeof(group->runtime), "cuda");
                (void) text_copy(group->model, sizeof(group->model), i == 0 ? "H100" : "A100");
                (void) text_copy(group->resource, sizeof(group->resource), GPU);
                group->total = group->healthy = i == 0 ? first : second;
                group->tflops_bf16 = i == 0 ? first_tflops : second_tflops;
        }
        (void) ledger_nodes_set_inventory(ledger, &inventory);
        inventory_free(&inventory);
}

static inline struct ledger_pod_facts pod_of(struct ledger *ledger, const char *name, uint32_t chips)
{
        struct ledger_pod_facts facts = {
                .namespace_ = "default", .name = name, .uid = name, .created_usec = 1000
        };

        facts.request.item_count = chips > 0;
        facts.request.items[0] =
                (struct request_item){ .resource = symbols_add(&ledger->symbols, GPU), .chips = chips };
        facts.request.class_chips = chips;
        return facts;
}

static inline void bind_pod(struct ledger *ledger, const char *name, const char *node, uint32_t chips)
{
        struct ledger_pod_facts facts = pod_of(ledger, name, chips);

        facts.node = node;
        (void) ledger_pods_set(ledger, &facts);
}

static inline struct rules_context context_of(struct ledger *ledger, const struct request *request)
{
        struct rules_context ctx = {
                .ledger = ledger, .rules = &fixture_rules, .request = request, .now_usec = 1000000
        };

        rules_prepare(&ctx);
        return ctx;
}

/* Of a pod that is known. Not prepared. */
static inline struct rules_context context_of_pod(struct ledger *ledger, struct ledger_pod *self)
{
        return (struct rules_context){ .ledger = ledger,
                                       .rules = &fixture_rules,
                                       .now_usec = 1000000,
                                       .self = self,
                                       .request = &self->request,
                                       .job = self->job };
}

/* Does the gang fit, of which the pod asks? Its lease stays. */
static inline bool gang_fits(struct ledger *ledger, struct ledger_pod *self)
{
        struct gang_demand demand = { .keep = true };
        struct rules_context ctx = context_of_pod(ledger, self);

        rules_prepare(&ctx);
        if (gang_prepare(ledger, &ctx, self->job, &demand) < 0)
                abort();
        return !ctx.gang_blocked;
}

static inline struct ledger_node *node_of(struct ledger *ledger, const char *name)
{
        return ledger_nodes_find(ledger, name, strlen(name));
}

static inline const char *word_for(struct ledger *ledger, const struct request *request, const char *node)
{
        struct rules_context ctx = context_of(ledger, request);

        return reason_text(rules_judge(&ctx, node_of(ledger, node)))->word;
}

/* The places that leases of gangs have on the node. */
static inline size_t slots_on(struct ledger *ledger, const char *node)
{
        size_t count = 0;

        for (const struct ledger_job_slot *slot = node_of(ledger, node)->slots; slot != NULL;
             slot = slot->next_on_node)
                count++;
        return count;
}

/* The first node with a hold; "" = none. */
static inline const char *held_node(const struct ledger *ledger)
{
        for (uint32_t i = 0; i < ledger->node_count; i++)
                if (ledger->nodes[i]->backfills != NULL)
                        return ledger->nodes[i]->name;
        return "";
}
