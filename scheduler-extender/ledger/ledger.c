/* Nodes and pods come, change and go; the accounts of a node are recomputed each time. */
#include "scheduler-extender/ledger/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/ledger_table.h"

struct ledger *ledger_new(void)
{
        struct ledger *ledger = calloc(1, sizeof(struct ledger));

        if (ledger != NULL && node_match_hold(&ledger->matches, "") != NODE_MATCH_NOTHING) {
                node_matches_free(&ledger->matches);
                free(ledger);
                return NULL;
        }
        return ledger;
}

static void free_jobs(struct ledger *ledger)
{
        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                while (ledger->jobs[i] != NULL) {
                        struct ledger_job *job = ledger->jobs[i];

                        ledger->jobs[i] = job->next;
                        for (struct lease_slot *slot = job->slots, *next; slot != NULL; slot = next) {
                                next = slot->next_in_job;
                                free(slot);
                        }
                        job_drop_training(job);
                        free(job);
                }
}

static void free_pod(struct ledger_pod *pod)
{
        if (pod != NULL) {
                free(pod->kinds);
                free(pod->evicted_node);
        }
        free(pod);
}

void ledger_free(struct ledger *ledger)
{
        if (ledger == NULL)
                return;
        free_jobs(ledger);
        for (uint32_t i = 0; i < ledger->pod_slot_count; i++)
                free_pod(ledger->pod_slots[i]);
        for (uint32_t i = 0; i < ledger->node_count; i++)
                node_free(ledger, ledger->nodes[i]);
        node_matches_free(&ledger->matches);
        free(ledger->nodes);
        roster_free(&ledger->roster);
        node_kinds_free(&ledger->kinds);
        free(ledger->pod_slots);
        free(ledger->chip_resource);
        free(ledger->speeds);
        symbols_free(&ledger->symbols);
        free(ledger);
}

void ledger_mark_chips(struct ledger *ledger, const char *resource)
{
        uint32_t symbol = symbols_add(&ledger->symbols, resource);

        if (symbol >= ledger->chip_resource_count) {
                uint32_t count = symbol + 64;
                uint8_t *grown = realloc(ledger->chip_resource, count);

                if (grown == NULL)
                        return;
                memset(grown + ledger->chip_resource_count, 0, count - ledger->chip_resource_count);
                ledger->chip_resource = grown;
                ledger->chip_resource_count = count;
        }
        ledger->chip_resource[symbol] = 1;
}

bool ledger_is_chip(const struct ledger *ledger, uint32_t resource)
{
        return resource != 0 && resource < ledger->chip_resource_count &&
               ledger->chip_resource[resource] != 0;
}

void ledger_chips_only(const struct ledger *ledger, struct request *request)
{
        uint8_t kept = 0;

        for (size_t i = 0; i < request->item_count; i++)
                kept = (uint8_t) (kept + ledger_is_chip(ledger, request->items[i].resource));
        if (kept == 0 || kept == request->item_count)
                return;
        kept = 0;
        for (size_t i = 0; i < request->item_count; i++)
                if (ledger_is_chip(ledger, request->items[i].resource))
                        request->items[kept++] = request->items[i];
        request->item_count = kept;
}

void ledger_set_seen(struct ledger *ledger, const struct ledger_node *node, uint64_t seen_usec)
{
        ledger->roster.seats[node->index].seen_usec = seen_usec;
}

uint64_t ledger_seen_usec(const struct ledger *ledger, const struct ledger_node *node)
{
        return node->index < ledger->node_count ? ledger->roster.seats[node->index].seen_usec : 0;
}

void ledger_touch(struct ledger *ledger, const struct ledger_node *node)
{
        ledger->roster.seats[node->index].kind = NODE_KIND_UNKNOWN;
        ledger->kinds_stale = true;
}

static void recompute(struct ledger *ledger, struct ledger_node *node)
{
        ledger_account(node, NULL, NULL, node->groups);
        ledger_touch(ledger, node);
        ledger->generation++;
}

static void forget_if_empty(struct ledger *ledger, struct ledger_node *node)
{
        if (!ledger_node_known(node) && node->pods == NULL && node->slots == NULL && node->backfills == NULL)
                node_remove(ledger, node);
}

static uint32_t shares_of(uint64_t chips, unsigned shares)
{
        uint64_t count = chips * shares;

        return count < INT32_MAX ? (uint32_t) count : INT32_MAX;
}

/* Of a shared group every id is a share of a chip: so many are asked for and held, each so slow and small. */
static void group_from_inventory(struct ledger *ledger, const struct device_group *from,
                                 struct ledger_group *to)
{
        struct symbols *symbols = &ledger->symbols;
        unsigned shares = from->shares > 1 ? from->shares : 1;

        *to = (struct ledger_group){
                .name = symbols_add(symbols, from->name),
                .vendor = symbols_add(symbols, from->vendor),
                .runtime = symbols_add(symbols, from->runtime),
                .model = symbols_add(symbols, from->model),
                .resource = symbols_add(symbols, from->resource),
                .total = shares_of(from->total, shares),
                .usable = shares_of(from->healthy < from->total ? from->healthy : from->total, shares),
                .tflops = from->tflops_bf16 / shares,
                .tflops_fp16 = from->tflops_fp16 / shares,
                .tflops_fp32 = from->tflops_fp32 / shares,
                .measured_gflops = from->measured_gflops / shares,
                .memory_bytes = from->memory_bytes / shares,
        };
        if (from->resource[0] != '\0')
                ledger_mark_chips(ledger, from->resource);
}

static void hardware_from_inventory(struct ledger *ledger, const struct hardware *from,
                                    struct ledger_hardware *to)
{
        const struct network_interface *fastest = NULL;

        for (size_t i = 0; i < from->network_count; i++)
                if (fastest == NULL || from->networks[i].mbps > fastest->mbps)
                        fastest = &from->networks[i];
        *to = (struct ledger_hardware){
                .cores = from->cores,
                .max_mhz = from->max_mhz,
                .memory_bytes = from->memory_bytes,
                .memory_type = symbols_add(&ledger->symbols, from->memory_type),
                .network_kind = fastest == NULL ? 0 : symbols_add(&ledger->symbols, fastest->kind),
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
                programs[i].runtime = symbols_add(&ledger->symbols, inventory->programs[i].runtime);
                memcpy(programs[i].sha256, inventory->programs[i].sha256, sizeof(programs[i].sha256));
        }
        free(node->programs);
        node->programs = programs;
        node->program_count = (uint32_t) inventory->program_count;
        return 0;
}

int ledger_set_inventory(struct ledger *ledger, const struct inventory *inventory)
{
        struct ledger_node *node = node_find_or_add(ledger, inventory->node);
        struct ledger_group *groups;

        if (node == NULL)
                return -ENOMEM;
        groups = calloc(inventory->group_count + 1, sizeof(*groups));
        if (groups == NULL || programs_from_inventory(ledger, inventory, node) < 0 ||
            sick_from_inventory(inventory, ledger, node) < 0) {
                free(groups);
                forget_if_empty(ledger, node);
                return -ENOMEM;
        }
        for (size_t i = 0; i < inventory->group_count; i++)
                group_from_inventory(ledger, &inventory->groups[i], &groups[i]);
        hardware_from_inventory(ledger, &inventory->hardware, &node->hardware);
        free(node->groups);
        node->groups = groups;
        node->group_count = (uint32_t) inventory->group_count;
        node->node_class = (uint8_t) inventory->node_class;
        node->pool = symbols_add(&ledger->symbols, inventory->pool);
        node->reserved = strcmp(inventory->pool, "reserved") == 0;
        node->has_inventory = true;
        recompute(ledger, node);
        return 0;
}

/* Without an inventory the Node object's allocatable is what there is: a group per resource, of unknown
 * model. */
static int use_allocatable(struct ledger *ledger, struct ledger_node *node)
{
        struct ledger_group *groups = calloc(node->allocatable_count + 1u, sizeof(*groups));

        if (groups == NULL)
                return -ENOMEM;
        for (uint32_t i = 0; i < node->allocatable_count; i++)
                groups[i] = (struct ledger_group){ .name = node->allocatable[i].resource,
                                                   .resource = node->allocatable[i].resource,
                                                   .total = node->allocatable[i].chips,
                                                   .usable = node->allocatable[i].chips };
        free(node->groups);
        node->groups = groups;
        node->group_count = node->allocatable_count;
        recompute(ledger, node);
        return 0;
}

static void forget_allocatable(struct ledger_node *node)
{
        free(node->allocatable);
        node->allocatable = NULL;
        node->allocatable_count = 0;
}

void ledger_drop_inventory(struct ledger *ledger, const char *name)
{
        struct ledger_node *node = ledger_find_node(ledger, name, strlen(name));

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
        forget_if_empty(ledger, node);
}

int ledger_set_node(struct ledger *ledger, const struct node_facts *facts)
{
        struct ledger_node *node = node_find_or_add(ledger, facts->name);
        struct request_item *allocatable = malloc((facts->allocatable_count + 1) * sizeof(*allocatable));

        if (node == NULL || allocatable == NULL ||
            node_traits_set(&ledger->matches, &node->traits, facts->traits) < 0) {
                free(allocatable);
                return -ENOMEM;
        }
        memcpy(allocatable, facts->allocatable, facts->allocatable_count * sizeof(*allocatable));
        free(node->allocatable);
        node->allocatable = allocatable;
        node->allocatable_count = (uint32_t) facts->allocatable_count;
        node->has_object = true;
        node->switch_domain =
                facts->switch_domain == NULL ? 0 : symbols_add(&ledger->symbols, facts->switch_domain);
        ledger_touch(ledger, node);
        ledger->generation++;
        return node->has_inventory ? 0 : use_allocatable(ledger, node);
}

void ledger_drop_node(struct ledger *ledger, const char *name)
{
        struct ledger_node *node = ledger_find_node(ledger, name, strlen(name));

        if (node == NULL || !node->has_object)
                return;
        node->has_object = false;
        node_traits_free(&ledger->matches, &node->traits);
        forget_allocatable(node);
        if (!node->has_inventory)
                (void) use_allocatable(ledger, node);
        ledger_touch(ledger, node);
        ledger->generation++;
        forget_if_empty(ledger, node);
}

/* Canonical order, so that the accounts do not depend on the order of events. */
static bool comes_before(const struct ledger_pod *a, const struct ledger_pod *b)
{
        if (a->created_usec != b->created_usec)
                return a->created_usec < b->created_usec;
        return strcmp(a->key, b->key) < 0;
}

static void add_pending(struct ledger *ledger, struct ledger_pod *pod)
{
        pod->previous_pending = NULL;
        pod->next_pending = ledger->pending;
        if (ledger->pending != NULL)
                ledger->pending->previous_pending = pod;
        ledger->pending = pod;
        ledger->pending_count++;
}

static void remove_pending(struct ledger *ledger, struct ledger_pod *pod)
{
        if (pod->previous_pending != NULL)
                pod->previous_pending->next_pending = pod->next_pending;
        else
                ledger->pending = pod->next_pending;
        if (pod->next_pending != NULL)
                pod->next_pending->previous_pending = pod->previous_pending;
        ledger->pending_count--;
}

static void attach(struct ledger *ledger, struct ledger_pod *pod, struct ledger_node *node)
{
        struct ledger_pod **place = &node->pods;

        while (*place != NULL && comes_before(*place, pod))
                place = &(*place)->next_on_node;
        pod->next_on_node = *place;
        *place = pod;
        remove_pending(ledger, pod);
        pod->node = node;
        recompute(ledger, node);
}

static void detach(struct ledger *ledger, struct ledger_pod *pod)
{
        struct ledger_node *node = pod->node;
        struct ledger_pod **place;

        if (node == NULL)
                return;
        for (place = &node->pods; *place != NULL && *place != pod;)
                place = &(*place)->next_on_node;
        if (*place == pod)
                *place = pod->next_on_node;
        pod->node = NULL;
        pod->next_on_node = NULL;
        add_pending(ledger, pod);
        recompute(ledger, node);
        forget_if_empty(ledger, node);
        if (pod->request.item_count > 0)
                ledger->departure_count++;
}

void ledger_detach(struct ledger *ledger, struct ledger_pod *pod)
{
        struct ledger_node *node = pod->node;
        struct ledger_pod **place = &node->pods;

        while (*place != pod)
                place = &(*place)->next_on_node;
        *place = pod->next_on_node;
        pod->node = NULL;
        add_pending(ledger, pod);
        recompute(ledger, node);
}

void ledger_attach(struct ledger *ledger, struct ledger_pod *pod, struct ledger_node *node)
{
        attach(ledger, pod, node);
}

static void leave_job(struct ledger *ledger, struct ledger_pod *pod)
{
        struct ledger_pod **place;

        if (pod->job == NULL)
                return;
        for (place = &pod->job->pods; *place != NULL && *place != pod;)
                place = &(*place)->next_in_job;
        if (*place == pod)
                *place = pod->next_in_job;
        if (pod->job->pods == NULL)
                ledger_drop_lease(ledger, pod->job); /* nobody is left to use it */
        ledger_release_job(ledger, pod->job);
        pod->job = NULL;
}

/* Reservations point to their pod: they go with it. */
static void drop_holds(struct ledger *ledger, const struct ledger_pod *pod)
{
        for (uint32_t i = 0; i < ledger->node_count && pod->waited && ledger->backfill_total > 0; i++)
                for (struct backfill **place = &ledger->nodes[i]->backfills; *place != NULL;) {
                        struct backfill *backfill = *place;

                        if (backfill->pod != pod) {
                                place = &backfill->next;
                                continue;
                        }
                        *place = backfill->next;
                        ledger->backfill_total--;
                        free(backfill);
                }
}

static void remove_pod(struct ledger *ledger, struct ledger_pod *pod)
{
        drop_holds(ledger, pod);
        detach(ledger, pod);
        leave_job(ledger, pod);
        remove_pending(ledger, pod);
        pod_remove(ledger, pod);
        node_match_release(&ledger->matches, pod->request.match);
        free_pod(pod);
        ledger->generation++;
}

static struct ledger_pod *make_pod(struct ledger *ledger, const struct pod_facts *facts)
{
        size_t namespace_bytes = strlen(facts->namespace_), name_bytes = strlen(facts->name);
        size_t uid_bytes = strlen(facts->uid);
        struct ledger_pod *pod = calloc(1, sizeof(*pod) + namespace_bytes + name_bytes + uid_bytes + 3);

        if (pod == NULL)
                return NULL;
        memcpy(pod->text, facts->namespace_, namespace_bytes);
        pod->text[namespace_bytes] = '/';
        memcpy(pod->text + namespace_bytes + 1, facts->name, name_bytes + 1);
        memcpy(pod->text + namespace_bytes + name_bytes + 2, facts->uid, uid_bytes + 1);
        pod->key = pod->text;
        pod->name = pod->text + namespace_bytes + 1;
        pod->uid = pod->text + namespace_bytes + name_bytes + 2;
        if (pod_insert(ledger, pod) < 0) {
                free(pod);
                return NULL;
        }
        add_pending(ledger, pod);
        return pod;
}

static int join_job(struct ledger *ledger, struct ledger_pod *pod, const struct pod_facts *facts)
{
        struct ledger_job *job = NULL;

        if (facts->job != NULL && pod->job != NULL &&
            ledger_find_job(ledger, facts->namespace_, facts->job) == pod->job)
                return 0;
        if (facts->job != NULL && facts->job[0] != '\0') {
                job = ledger_hold_job(ledger, facts->namespace_, facts->job);
                if (job == NULL)
                        return -ENOMEM;
        }
        leave_job(ledger, pod);
        pod->job = job;
        if (job != NULL) {
                pod->next_in_job = job->pods;
                job->pods = pod;
        }
        return 0;
}

/* A slot of the pod's gang is given up when the pod is bound: one on the same node if there is one. */
static void give_up_slot(struct ledger *ledger, const struct ledger_pod *pod, const struct ledger_node *node)
{
        struct lease_slot *chosen = NULL;

        if (pod->job == NULL)
                return;
        for (struct lease_slot *slot = pod->job->slots; slot != NULL; slot = slot->next_in_job)
                if (request_chips(&slot->request) == request_chips(&pod->request) &&
                    slot->request.items[0].resource == pod->request.items[0].resource &&
                    (chosen == NULL || (slot->node == node && chosen->node != node)))
                        chosen = slot;
        if (chosen != NULL)
                ledger_drop_slot(ledger, chosen);
}

static int bind_pod(struct ledger *ledger, struct ledger_pod *pod, const char *node_name)
{
        struct ledger_node *node = node_find_or_add(ledger, node_name);

        if (node == NULL)
                return -ENOMEM;
        give_up_slot(ledger, pod, node);
        drop_holds(ledger, pod);
        pod->waited = false;
        attach(ledger, pod, node);
        return 0;
}

static int copy_kinds(struct ledger_pod *pod, const struct pod_facts *facts)
{
        free(pod->kinds);
        pod->kinds = NULL;
        pod->kind_count = 0;
        if (facts->kind_count == 0)
                return 0;
        pod->kinds = malloc(facts->kind_count * sizeof(*pod->kinds));
        if (pod->kinds == NULL)
                return -ENOMEM;
        memcpy(pod->kinds, facts->kinds, facts->kind_count * sizeof(*pod->kinds));
        pod->kind_count = facts->kind_count;
        return 0;
}

static void copy_facts(struct ledger *ledger, struct ledger_pod *pod, const struct pod_facts *facts)
{
        uint32_t before = pod->request.match;

        pod->request = facts->request;
        pod->request.match = facts->node_match == NULL ? NODE_MATCH_ANY
                                                       : node_match_hold(&ledger->matches, facts->node_match);
        node_match_release(&ledger->matches, before);
        pod->deleting = facts->deleting;
        pod->ended = facts->ended;
        pod->created_usec = facts->created_usec;
        pod->started_usec = facts->started_usec;
        pod->ended_usec = facts->ended_usec;
        pod->weight = facts->weight;
        pod->batch_share = facts->batch_share;
}

static int apply_node(struct ledger *ledger, struct ledger_pod *pod, const struct pod_facts *facts)
{
        bool bound = facts->node != NULL && facts->node[0] != '\0' && !facts->ended;
        bool same = bound && pod->node != NULL && strcmp(pod->node->name, facts->node) == 0;

        if (facts->part_count > 0 || (bound && !same)) {
                memcpy(pod->parts, facts->parts, sizeof(pod->parts));
                pod->part_count = facts->part_count;
        }
        if (bound)
                pod->assumed = false;
        if (same) {
                recompute(ledger, pod->node);
                return 0;
        }
        if (pod->assumed && !facts->ended && !facts->deleting)
                return 0; /* our bind is on its way: the object will show it */
        pod->assumed = false;
        detach(ledger, pod);
        return bound ? bind_pod(ledger, pod, facts->node) : 0;
}

int ledger_set_pod(struct ledger *ledger, const struct pod_facts *facts)
{
        struct ledger_pod *pod = pod_find(ledger, facts->namespace_, facts->name);

        if (pod != NULL && strcmp(pod->uid, facts->uid) != 0) {
                remove_pod(ledger, pod);
                pod = NULL;
        }
        if (pod == NULL)
                pod = make_pod(ledger, facts);
        if (pod == NULL || join_job(ledger, pod, facts) < 0 || copy_kinds(pod, facts) < 0)
                return -ENOMEM;
        copy_facts(ledger, pod, facts);
        ledger->generation++;
        return apply_node(ledger, pod, facts);
}

void ledger_drop_pod(struct ledger *ledger, const char *namespace_, const char *name)
{
        struct ledger_pod *pod = pod_find(ledger, namespace_, name);

        if (pod != NULL)
                remove_pod(ledger, pod);
}

struct ledger_pod *ledger_find_pod(const struct ledger *ledger, const char *namespace_, const char *name)
{
        return pod_find(ledger, namespace_, name);
}

int ledger_assume(struct ledger *ledger, struct ledger_pod *pod, struct ledger_node *node,
                  const struct pod_part *parts, size_t part_count)
{
        pod->part_count = (uint8_t) (part_count < POD_PARTS_MAX ? part_count : POD_PARTS_MAX);
        if (part_count > 0)
                memcpy(pod->parts, parts, pod->part_count * sizeof(*parts));
        pod->assumed = true;
        give_up_slot(ledger, pod, node);
        drop_holds(ledger, pod);
        pod->waited = false;
        attach(ledger, pod, node);
        return 0;
}

void ledger_forget(struct ledger *ledger, struct ledger_pod *pod)
{
        if (!pod->assumed)
                return;
        pod->assumed = false;
        pod->part_count = 0;
        detach(ledger, pod);
}
