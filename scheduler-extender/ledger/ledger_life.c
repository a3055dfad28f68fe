/* A ledger that is empty, one that is a copy node by node, pod by pod and job by job, and one that goes. */
#include "scheduler-extender/ledger/ledger_life.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_sick.h"
#include "scheduler-extender/neighbours/neighbour_view.h"

static void *copy_array(const void *array, size_t count, size_t size)
{
        void *copy = calloc(count + 1, size);

        if (copy != NULL && count > 0)
                memcpy(copy, array, count * size);
        return copy;
}

static int copy_node(const struct ledger_node *from, uint64_t seen_usec, struct ledger *to)
{
        struct ledger_node *node = ledger_nodes_make(to, from->name);

        if (node == NULL)
                return -ENOMEM;
        node->has_inventory = from->has_inventory;
        node->has_object = from->has_object;
        node->reserved = from->reserved;
        node->out_of_service = from->out_of_service;
        node->trust = from->trust;
        node->node_class = from->node_class;
        node->pool = from->pool;
        node->switch_domain = from->switch_domain;
        node->room = from->room; /* its sums are made anew as pods come */
        if (node_match_copy_traits(&to->matches, &node->traits, &from->traits) < 0)
                return -ENOMEM;
        ledger_set_seen(to, node, seen_usec);
        node->hardware = from->hardware;
        node->groups = copy_array(from->groups, from->group_count, sizeof(*from->groups));
        node->allocatable =
                copy_array(from->allocatable, from->allocatable_count, sizeof(*from->allocatable));
        node->programs = copy_array(from->programs, from->program_count, sizeof(*from->programs));
        node->sick = copy_array(from->sick, from->sick_count, sizeof(*from->sick));
        node->losses = copy_array(from->losses, from->loss_count, sizeof(*from->losses));
        node->devices = copy_array(from->devices, from->devices == NULL ? 0 : 1, sizeof(*from->devices));
        if (node->groups == NULL || node->allocatable == NULL || node->devices == NULL ||
            node->programs == NULL || node->sick == NULL || node->losses == NULL)
                return -ENOMEM;
        node->group_count = from->group_count;
        node->allocatable_count = from->allocatable_count;
        node->program_count = from->program_count;
        node->sick_count = from->sick_count;
        node->loss_count = from->loss_count;
        return 0;
}

static void split_key(const char *key, size_t name_at, char *namespace_, size_t bytes)
{
        size_t length = name_at - 1 < bytes - 1 ? name_at - 1 : bytes - 1;

        memcpy(namespace_, key, length);
        namespace_[length] = '\0';
}

static int copy_pod(const struct ledger *ledger, const struct ledger_pod *from, struct ledger *to)
{
        struct ledger_pod *copy;
        char namespace_[256];
        struct ledger_pod_facts facts = {
                .namespace_ = namespace_,
                .name = from->name,
                .uid = from->uid,
                .node = from->node == NULL ? NULL : from->node->name,
                .nominated = from->nominated,
                .job = from->job == NULL ? NULL : strchr(from->job->key, '/') + 1,
                .request = from->request,
                .node_match = node_match_text(&ledger->matches, from->request.match),
                .labels = neighbours_labels_text(&ledger->neighbours, from->labels),
                .demands = neighbours_demands_text(&ledger->neighbours, from->request.demands),
                .part_count = from->part_count,
                .borrowed = from->borrowed,
                .saves = from->saves,
                .ended = from->ended,
                .deleting = from->deleting,
                .created_usec = from->created_usec,
                .started_usec = from->started_usec,
                .ended_usec = from->ended_usec,
                .deletion_usec = from->deletion_usec,
                .weight = from->weight,
                .batch_share = from->batch_share,
                .kind_count = from->kind_count,
        };

        split_key(from->key, (size_t) (from->name - from->key), namespace_, sizeof(namespace_));
        memcpy(facts.parts, from->parts, sizeof(facts.parts));
        if (from->kind_count > 0)
                memcpy(facts.kinds, from->kinds, from->kind_count * sizeof(facts.kinds[0]));
        if (ledger_pods_set(to, &facts) < 0)
                return -ENOMEM;
        copy = ledger_pods_find(to, namespace_, from->name);
        if (copy == NULL)
                return 0;
        copy->waited_usec = from->waited_usec;
        copy->evicted_usec = from->evicted_usec;
        copy->spared_usec = from->spared_usec;
        copy->served = from->served;
        copy->claimed = from->claimed;
        copy->has_claims = from->has_claims;
        return 0;
}

static int copy_holds(const struct ledger_node *from, struct ledger *to)
{
        struct ledger_node *node = ledger_nodes_find(to, from->name, from->name_bytes);
        char namespace_[256];

        for (const struct ledger_backfill *hold = from->backfills; hold != NULL; hold = hold->next) {
                const struct ledger_pod *pod = hold->pod;
                struct ledger_backfill copy = *hold;

                split_key(pod->key, (size_t) (pod->name - pod->key), namespace_, sizeof(namespace_));
                copy.pod = ledger_pods_find(to, namespace_, pod->name);
                if (copy.pod != NULL && backfill_add(to, node, &copy) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int copy_numbers(const struct name_numbers *from, struct name_numbers *to)
{
        int r = 0;

        for (struct name_map_entry *e = name_map_first(&from->map); r == 0 && e != NULL;
             e = name_map_next(&from->map, e))
                r = name_numbers_set(to, e->key, name_numbers_get(from, e->key));
        return r;
}

static int copy_slot(const struct ledger *ledger, const struct ledger_job_slot *from, struct ledger_job *job,
                     struct ledger *to)
{
        struct ledger_node *node = ledger_nodes_find(to, from->node->name, from->node->name_bytes);
        const char *match = node_match_text(&ledger->matches, from->request.match);
        struct request request = from->request;
        int r;

        request.match = match == NULL ? NODE_MATCH_ANY : node_match_hold(&to->matches, match);
        request.demands = neighbours_hold_demands(
                &to->neighbours, neighbours_demands_text(&ledger->neighbours, from->request.demands));
        request.labels = neighbours_hold_labels(
                &to->neighbours, neighbours_labels_text(&ledger->neighbours, from->request.labels));
        r = node == NULL ? 0 : ledger_jobs_add_slot(to, job, node, &request);
        ledger_jobs_release_texts(to, &request);
        return r;
}

static int copy_job(const struct ledger *ledger, const struct ledger_job *from, struct ledger *to)
{
        const char *name = strchr(from->key, '/') + 1;
        struct ledger_job *job;
        char namespace_[256];

        if (from->training == NULL && from->slots == NULL && from->place_count == 0 &&
            from->gave_way_usec == 0)
                return 0;
        split_key(from->key, (size_t) (name - from->key), namespace_, sizeof(namespace_));
        job = ledger_jobs_refer(to, namespace_, name);
        if (job == NULL)
                return -ENOMEM;
        job->training = from->training;
        job->training_borrowed = true;
        job->lease_ends_usec = from->lease_ends_usec;
        job->gave_way_usec = from->gave_way_usec;
        job->saved_usec = from->saved_usec;
        if (ledger_jobs_set_plan(to, namespace_, name, from->places, from->place_count) < 0)
                return -ENOMEM;
        for (const struct ledger_job_slot *slot = from->slots; slot != NULL && from->place_count == 0;
             slot = slot->next_in_job) {
                if (copy_slot(ledger, slot, job, to) < 0)
                        return -ENOMEM;
        }
        job->together = from->together;
        if (job->training == NULL)
                ledger_jobs_release(to, job);
        return 0;
}

static int copy_all(const struct ledger *from, struct ledger *to)
{
        int r = symbols_copy(&from->symbols, &to->symbols);

        to->speeds = from->speeds;
        to->speeds.rows = copy_array(from->speeds.rows, from->speeds.count, sizeof(*from->speeds.rows));
        if (to->speeds.rows == NULL)
                return -ENOMEM;
        to->liveness = from->liveness;
        to->has_slices = from->has_slices;
        to->loose_devices = from->loose_devices;
        to->plans_claims = from->plans_claims;
        if (r == 0)
                r = copy_numbers(&from->claimed_places, &to->claimed_places);
        to->groups_served = from->groups_served;

        for (uint32_t i = 0; r == 0 && i < from->node_count; i++)
                r = copy_node(from->nodes[i], ledger_seen_usec(from, from->nodes[i]), to);
        for (uint32_t i = 0; r == 0 && i < from->pod_slot_count; i++)
                if (from->pod_slots[i] != NULL)
                        r = copy_pod(from, from->pod_slots[i], to);
        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                for (const struct ledger_job *job = from->jobs[i]; r == 0 && job != NULL; job = job->next)
                        r = copy_job(from, job, to);
        for (uint32_t i = 0; r == 0 && i < from->node_count && from->backfill_total > 0; i++)
                r = copy_holds(from->nodes[i], to);
        if (r == 0)
                r = copy_numbers(&from->gang_pauses, &to->gang_pauses);
        if (r == 0)
                r = copy_numbers(&from->group_sizes, &to->group_sizes);
        return r < 0 ? r : copy_numbers(&from->gang_pause_ends, &to->gang_pause_ends);
}

struct ledger *ledger_life_copy(const struct ledger *ledger)
{
        struct ledger *copy = ledger_life_new();

        if (copy != NULL && copy_all(ledger, copy) < 0) {
                ledger_life_free(copy);
                return NULL;
        }
        return copy;
}

struct ledger *ledger_life_new(void)
{
        struct ledger *ledger = calloc(1, sizeof(struct ledger));

        if (ledger != NULL && node_match_hold(&ledger->matches, "") != NODE_MATCH_NOTHING) {
                node_match_free(&ledger->matches);
                free(ledger);
                return NULL;
        }
        return ledger;
}

void ledger_life_free(struct ledger *ledger)
{
        if (ledger == NULL)
                return;
        ledger_jobs_free_all(ledger);
        for (uint32_t i = 0; i < ledger->pod_slot_count; i++)
                ledger_pods_free_one(ledger->pod_slots[i]);
        for (uint32_t i = 0; i < ledger->node_count; i++)
                ledger_nodes_free_one(ledger, ledger->nodes[i]);
        node_match_free(&ledger->matches);
        neighbour_view_free(ledger->neighbours.views);
        neighbours_free(&ledger->neighbours);
        free(ledger->nodes);
        roster_free(&ledger->roster);
        node_kinds_free(&ledger->kinds);
        free(ledger->pod_slots);
        speed_table_free(&ledger->speeds);
        name_numbers_free(&ledger->claimed_places);
        name_numbers_free(&ledger->gang_pauses);
        name_numbers_free(&ledger->group_sizes);
        name_numbers_free(&ledger->gang_pause_ends);
        name_numbers_free(&ledger->gang_left);
        symbols_free(&ledger->symbols);
        free(ledger);
}
