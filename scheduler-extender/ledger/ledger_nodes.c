/* Nodes are found through the roster; what an inventory or a Node object says becomes groups with accounts.
 */
#include "scheduler-extender/ledger/ledger_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "scheduler-extender/ledger/ledger_account.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_sick.h"

static int nodes_grow(struct ledger *ledger)
{
        uint32_t capacity = ledger->node_capacity == 0 ? 64 : ledger->node_capacity * 2;
        struct ledger_node **nodes = realloc(ledger->nodes, capacity * sizeof(struct ledger_node *));

        if (nodes == NULL)
                return -ENOMEM;
        ledger->nodes = nodes;
        ledger->node_capacity = capacity;
        return 0;
}

struct ledger_node *ledger_nodes_find(const struct ledger *ledger, const char *name, size_t bytes)
{
        uint32_t index = roster_find(&ledger->roster, name, bytes);

        return index == ROSTER_NONE ? NULL : ledger->nodes[index];
}

struct ledger_node *ledger_nodes_make(struct ledger *ledger, const char *name)
{
        size_t bytes = strlen(name);
        struct ledger_node *node = ledger_nodes_find(ledger, name, bytes);

        if (node != NULL)
                return node;
        if (ledger->node_count == ledger->node_capacity && nodes_grow(ledger) < 0)
                return NULL;
        node = calloc(1, sizeof(*node) + bytes + 1);
        if (node == NULL)
                return NULL;
        memcpy(node->name, name, bytes + 1);
        node->name_bytes = (uint32_t) bytes;
        node->index = roster_add(&ledger->roster, name, bytes);
        if (node->index == ROSTER_NONE) {
                free(node);
                return NULL;
        }
        ledger->nodes[ledger->node_count++] = node;
        ledger->kinds_stale = true;
        return node;
}

void ledger_nodes_free_one(struct ledger *ledger, struct ledger_node *node)
{
        while (node->backfills != NULL) {
                struct ledger_backfill *backfill = node->backfills;

                node->backfills = backfill->next;
                free(backfill);
        }
        node_match_free_traits(&ledger->matches, &node->traits);
        free(node->groups);
        free(node->allocatable);
        free(node->programs);
        free(node->sick);
        free(node->losses);
        free(node->devices);
        free(node);
}

static void remove_node(struct ledger *ledger, struct ledger_node *node)
{
        struct ledger_node *last = ledger->nodes[ledger->node_count - 1];

        roster_remove(&ledger->roster, node->index);
        last->index = node->index;
        ledger->nodes[node->index] = last;
        ledger->node_count--;
        node_match_forget(&ledger->matches);
        ledger_nodes_free_one(ledger, node);
}

void ledger_nodes_forget_if_empty(struct ledger *ledger, struct ledger_node *node)
{
        if (!ledger_node_known(node) && node->pods == NULL && node->slots == NULL && node->backfills == NULL)
                remove_node(ledger, node);
}

static uint32_t shares_of(uint64_t chips, unsigned shares)
{
        uint64_t count = chips * shares;

        return count < INT32_MAX ? (uint32_t) count : INT32_MAX;
}

static uint64_t hash_of(const char *text)
{
        return text == NULL || text[0] == '\0' ? 0 : hash_text(text, 1);
}

void ledger_nodes_judge(struct ledger *ledger, struct ledger_node *node)
{
        (void) ledger_trust_judge(node, ledger->liveness.working_since_usec, ledger->liveness.looked_usec);
        ledger_trust_apply(node);
        ledger_account_refresh(ledger, node);
}

/* Of a shared group every id is a share of a chip: so many are asked for and held, each so slow and small. */
static void group_from_inventory(struct ledger *ledger, struct ledger_node *node,
                                 const struct device_group *from, struct ledger_group *to)
{
        struct symbols *symbols = &ledger->symbols;
        unsigned shares = from->shares > 1 ? from->shares : 1;

        *to = (struct ledger_group){
                .name = symbols_add_of(symbols, from->name, &node->brought),
                .vendor = symbols_add_of(symbols, from->vendor, &node->brought),
                .runtime = symbols_add_of(symbols, from->runtime, &node->brought),
                .model = symbols_add_of(symbols, from->model, &node->brought),
                .resource = symbols_add_of(symbols, from->resource, &node->brought),
                .total = shares_of(from->total, shares),
                .shared = shares > 1,
                .healthy = shares_of(from->healthy < from->total ? from->healthy : from->total, shares),
                .figures = { .tflops = { from->tflops_bf16 / shares, from->tflops_fp16 / shares,
                                         from->tflops_fp32 / shares },
                             .kernel_gflops = from->measured_gflops / shares,
                             .kernel_precision = chip_speed_precision(from->measured_precision),
                             .estimated = from->tflops_estimated },
                .memory_bytes = from->memory_bytes / shares,
        };
        if (to->resource != 0)
                ledger_chips_note(ledger, to->resource, LEDGER_CHIPS);
}

static void hardware_from_inventory(struct ledger *ledger, const struct hardware *from,
                                    struct ledger_node *node)
{
        const struct hardware_network *fastest = NULL;

        for (size_t i = 0; i < from->network_count; i++)
                if (fastest == NULL || from->networks[i].mbps > fastest->mbps)
                        fastest = &from->networks[i];
        node->hardware = (struct ledger_hardware){
                .cores = from->cores,
                .max_mhz = from->max_mhz,
                .memory_bytes = from->memory_bytes,
                .memory_type = symbols_add_of(&ledger->symbols, from->memory_type, &node->brought),
                .network_kind =
                        fastest == NULL ? 0 : symbols_add_of(&ledger->symbols, fastest->kind, &node->brought),
                .network_mbps = fastest == NULL ? 0 : fastest->mbps,
        };
}

static int programs_from_inventory(struct ledger *ledger, const struct inventory *inventory,
                                   struct ledger_node *node)
{
        struct ledger_program *programs = NULL;

        if (inventory->program_count > 0) {
                programs = calloc(inventory->program_count, sizeof(*programs));
                if (programs == NULL)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < inventory->program_count; i++) {
                programs[i].runtime =
                        symbols_add_of(&ledger->symbols, inventory->programs[i].runtime, &node->brought);
                memcpy(programs[i].sha256, inventory->programs[i].sha256, sizeof(programs[i].sha256));
                memcpy(programs[i].speed_name, inventory->programs[i].speed_name,
                       sizeof(programs[i].speed_name));
        }
        free(node->programs);
        node->programs = programs;
        node->program_count = (uint32_t) inventory->program_count;
        return 0;
}

/* Who knows its chips tells that what else it offers is none. */
static void note_resources(struct ledger *ledger, const struct ledger_node *node)
{
        for (uint32_t i = 0; node->has_inventory && i < node->allocatable_count; i++)
                if (!ledger_chips_has(ledger, node->allocatable[i].resource))
                        ledger_chips_note(ledger, node->allocatable[i].resource, LEDGER_CHIPS_BESIDE);
}

int ledger_nodes_set_inventory(struct ledger *ledger, const struct inventory *inventory)
{
        struct ledger_node *node = ledger_nodes_make(ledger, inventory->node);
        struct ledger_group *groups;

        if (node == NULL)
                return -ENOMEM;
        groups = calloc(inventory->group_count + 1, sizeof(*groups));
        if (groups == NULL || programs_from_inventory(ledger, inventory, node) < 0 ||
            ledger_sick_take(inventory, ledger, node) < 0) {
                free(groups);
                ledger_nodes_forget_if_empty(ledger, node);
                return -ENOMEM;
        }
        for (size_t i = 0; i < inventory->group_count; i++)
                group_from_inventory(ledger, node, &inventory->groups[i], &groups[i]);
        hardware_from_inventory(ledger, &inventory->hardware, node);
        free(node->groups);
        node->groups = groups;
        node->group_count = (uint32_t) inventory->group_count;
        node->node_class = (uint8_t) inventory->node_class;
        node->pool = symbols_add_of(&ledger->symbols, inventory->pool, &node->brought);
        node->reserved = strcmp(inventory->pool, "reserved") == 0;
        node->has_inventory = true;
        note_resources(ledger, node);
        node->trust.inventory_boot_hash = hash_of(inventory->boot_id);
        ledger_nodes_judge(ledger, node);
        return 0;
}

void ledger_nodes_set_words(struct ledger *ledger, const char *name, const char *uid, bool leaves)
{
        struct ledger_node *node = ledger_nodes_find(ledger, name, strlen(name));

        if (node == NULL || (node->trust.owner_uid_hash == hash_of(uid) && node->trust.leaves == leaves))
                return;
        node->trust.owner_uid_hash = hash_of(uid);
        node->trust.leaves = leaves;
        ledger_nodes_judge(ledger, node);
}

static void add_group(struct ledger_node *node, uint32_t resource, uint32_t chips)
{
        if (node->group_count < GROUPS_MAX)
                node->groups[node->group_count++] = (struct ledger_group){
                        .name = resource, .resource = resource, .total = chips, .healthy = chips
                };
}

/* A device plugin may have left out those that claims hold: then there are as many as the slices have. */
static uint32_t chips_there(const struct ledger_node *node, const struct ledger_trust_offer *allocatable)
{
        const struct ledger_devices_offer *offer = ledger_devices_offer(node->devices, allocatable->resource);
        uint64_t most = allocatable->chips + (offer == NULL ? (uint64_t) 0 : offer->held);

        if (offer == NULL || offer->offered <= allocatable->chips)
                return allocatable->chips;
        if (ledger_trust_by_claims(allocatable, offer))
                return offer->offered;
        return most < offer->offered ? (uint32_t) most : offer->offered;
}

/* Without an inventory what a kubelet or a DRA driver offers is what there is: a group per resource. */
static int use_allocatable(struct ledger *ledger, struct ledger_node *node)
{
        const struct ledger_devices *devices = node->devices;
        struct ledger_group *groups =
                calloc(node->allocatable_count + LEDGER_DEVICES_OFFERS_MAX + 1u, sizeof(*groups));

        if (groups == NULL)
                return -ENOMEM;
        free(node->groups);
        node->groups = groups;
        node->group_count = 0;
        for (uint32_t i = 0; i < node->allocatable_count; i++)
                add_group(node, node->allocatable[i].resource, chips_there(node, &node->allocatable[i]));
        for (size_t i = 0; devices != NULL && node->has_object && i < devices->offer_count; i++)
                if (devices->offers[i].offers && !ledger_trust_names(node, devices->offers[i].resource))
                        add_group(node, devices->offers[i].resource, devices->offers[i].offered);
        ledger_nodes_judge(ledger, node);
        return 0;
}

static uint64_t devices_held(const struct ledger_devices *devices)
{
        uint64_t held = 0;

        for (size_t i = 0; devices != NULL && i < devices->offer_count; i++)
                held += devices->offers[i].held;
        return held;
}

/* Has anything become free that kube-scheduler may have asked for before we heard of it? */
static bool gives_back(const struct ledger_devices *before, const struct ledger_devices *now)
{
        return now->free > (before == NULL ? 0 : before->free) || devices_held(now) < devices_held(before);
}

int ledger_nodes_set_devices(struct ledger *ledger, struct ledger_node *node,
                             const struct ledger_devices *devices)
{
        struct ledger_devices *kept = node->devices == NULL ? malloc(sizeof(*kept)) : node->devices;

        if (kept == NULL)
                return -ENOMEM;
        if (gives_back(node->devices, devices))
                ledger->departure_count++;
        *kept = *devices;
        node->devices = kept;
        if (!node->has_inventory)
                return use_allocatable(ledger, node);
        ledger_nodes_judge(ledger, node);
        return 0;
}

static void forget_allocatable(struct ledger_node *node)
{
        free(node->allocatable);
        node->allocatable = NULL;
        node->allocatable_count = 0;
}

void ledger_nodes_drop_inventory(struct ledger *ledger, const char *name)
{
        struct ledger_node *node = ledger_nodes_find(ledger, name, strlen(name));

        if (node == NULL || !node->has_inventory)
                return;
        node->has_inventory = false;
        node->node_class = NODE_CLASS_ANY;
        node->pool = 0;
        node->reserved = false;
        node->group_count = 0;
        node->program_count = node->sick_count = node->loss_count = 0;
        node->hardware = (struct ledger_hardware){ 0 };
        ledger_set_seen(ledger, node, 0);
        (void) use_allocatable(ledger, node); /* out of memory: no chips there, which is safe */
        ledger_nodes_forget_if_empty(ledger, node);
}

int ledger_nodes_set(struct ledger *ledger, const struct ledger_node_facts *facts)
{
        struct ledger_node *node = ledger_nodes_make(ledger, facts->name);
        struct ledger_trust_offer *allocatable =
                malloc((facts->allocatable_count + 1) * sizeof(*allocatable));

        if (node == NULL || allocatable == NULL ||
            node_match_set_traits(&ledger->matches, &node->traits, facts->traits) < 0) {
                free(allocatable);
                return -ENOMEM;
        }
        memcpy(allocatable, facts->allocatable, facts->allocatable_count * sizeof(*allocatable));
        free(node->allocatable);
        node->allocatable = allocatable;
        node->allocatable_count = (uint32_t) facts->allocatable_count;
        node->trust.left_out = (uint32_t) facts->allocatable_left_out;
        node->room.offered = facts->room.offered;
        node->room.pods_offered = facts->room.pods_offered;
        node->has_object = true;
        node->trust.node_unreadable = false;
        note_resources(ledger, node);
        node->out_of_service = facts->out_of_service;
        node->trust.node_boot_hash = hash_of(facts->boot_id);
        ledger_trust_set_uid(&node->trust, hash_of(facts->uid), facts->now_usec);
        node->switch_domain =
                facts->switch_domain == NULL
                        ? 0
                        : symbols_add_of(&ledger->symbols, facts->switch_domain, &node->brought);
        if (!node->has_inventory)
                return use_allocatable(ledger, node);
        ledger_nodes_judge(ledger, node);
        return 0;
}

int ledger_nodes_note(struct ledger *ledger, const char *name)
{
        struct ledger_node *node = ledger_nodes_make(ledger, name);

        if (node == NULL)
                return -ENOMEM;
        if (node->has_object)
                return 0;
        node->has_object = node->trust.node_unreadable = true;
        ledger_nodes_judge(ledger, node);
        return 0;
}

void ledger_nodes_drop(struct ledger *ledger, const char *name)
{
        struct ledger_node *node = ledger_nodes_find(ledger, name, strlen(name));

        if (node == NULL || !node->has_object)
                return;
        node->has_object = node->out_of_service = node->trust.node_unreadable = false;
        node->room.offered = (struct request_needs){ 0 };
        node->room.pods_offered = 0;
        node_match_free_traits(&ledger->matches, &node->traits);
        forget_allocatable(node);
        if (!node->has_inventory)
                (void) use_allocatable(ledger, node);
        ledger_nodes_judge(ledger, node);
        ledger_nodes_forget_if_empty(ledger, node);
}
