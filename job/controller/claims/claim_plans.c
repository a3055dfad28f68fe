/* Each claim's next step, one write at a time. */
#include "job/controller/claims/claim_plans.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/metrics.h"
#include "job/controller/controller_internal.h"
#include "job/controller/suspend.h"
#include "job/controller/write.h"
#include "scheduler-extender/claims/claims_planned.h"
#include "scheduler-extender/claims/cluster_claims.h"

#define KEY_BYTES 512
#define SEEN_USEC 1000000u /* what was written should be seen within */

static const char ALLOCATE[] = "allocate";

/* A write under way. The plan is found again by its key: it may have gone meanwhile. */
struct claim_write {
        struct record *record;
        const char *what;
        char key[KEY_BYTES];
};

static struct claim_plan_list *list_of(const struct record *record)
{
        return &record->controller->claim_plans;
}

static bool key_of(const struct record *record, const struct job_group *group, char ret[KEY_BYTES])
{
        char name[JOB_POD_NAME_BYTES];

        job_group_pod_name(record->name, group, name);
        return text_format(ret, KEY_BYTES, "%s/%s", record->namespace_, name);
}

static void on_written(void *userdata, int result, const char *sentence)
{
        struct claim_write *write = userdata;
        struct record *record = write->record;
        struct controller *c = record->controller;
        struct claim_plan *plan = claim_plan_find(&c->claim_plans, write->key);

        record->calls--;
        controller_queue(record);
        if (plan != NULL) {
                plan->asked = false;
                if (!plan->shown)
                        plan->again_usec = controller_monotonic(c) + SEEN_USEC;
        }
        if (result == 0)
                record->unanswered_usec = 0;
        c->claim_plans.allocated += result == 0 && write->what == ALLOCATE;
        /* another version, gone, or there already: the watch shows it in a moment */
        if (result < 0 && result != -ECANCELED && result != -EEXIST && result != -ENOENT &&
            result != -ESTALE) {
                controller_log(c, LOG_WARNING, "job-claim", "claim=%s what=%s error=\"%s\"", write->key,
                               write->what, sentence);
                write_not_made(record, result, sentence);
        }
        free(write);
}

/* Return: NULL = not now. */
static struct claim_write *begin(struct record *record, struct claim_plan *plan, const char *what)
{
        struct claim_write *write =
                plan->asked || !controller_leads(record->controller) ? NULL : calloc(1, sizeof(*write));

        if (write == NULL)
                return NULL;
        write->record = record;
        write->what = what;
        (void) text_copy(write->key, sizeof(write->key), plan->entry.key);
        plan->asked = true;
        plan->shown = false;
        record->calls++;
        return write;
}

static struct store *store_of(const struct record *record)
{
        return cluster_store(record->controller->options.cluster);
}

static void create(struct record *record, struct claim_plan *plan, const struct job_group *group)
{
        struct job_pods_owner owner = write_owner(record);
        json_t *object = planned_claim_object(group, &owner);
        struct claim_write *write = object == NULL ? NULL : begin(record, plan, "create");

        if (write != NULL) {
                store_create(store_of(record), STORE_RESOURCE_CLAIM, record->namespace_, object, on_written,
                             write);
        }
        json_decref(object);
}

static void give_up(struct record *record, struct claim_plan *plan)
{
        struct claim_write *write = begin(record, plan, "delete");

        if (write == NULL)
                return;
        store_delete(store_of(record), STORE_RESOURCE_CLAIM, record->namespace_,
                     strchr(plan->entry.key, '/') + 1, plan->seen.uid, 0, on_written, write);
}

/* Whose picks are not in the store yet, on which node, and for whom. */
struct picking {
        const struct claim_plan_list *list;
        const struct claim_plan *own;
        const char *node;
};

static bool is_picked(void *userdata, const char *device)
{
        const struct picking *picking = userdata;

        return claim_plan_picked(picking->list, picking->own, picking->node, device);
}

static void allocate(struct record *record, struct claim_plan *plan, const struct job_group *group)
{
        struct picking picking = { .list = list_of(record), .own = plan, .node = group->node };
        const char *devices[JOB_CLAIM_CHIPS_MAX];
        size_t count = claims_planned_free(cluster_claims(record->controller->options.cluster), group->node,
                                           group->group, is_picked, &picking, devices, group->chips);
        struct claim_write *write;
        char sentence[300];
        json_t *patch;

        if (count < group->chips) {
                (void) text_format(sentence, sizeof(sentence),
                                   "claim %.120s: of group %s of node %.60s %zu devices are free, not %u",
                                   plan->entry.key, group->group, group->node, count, group->chips);
                write_not_made(record, -ENOSPC, sentence);
                return;
        }
        patch = planned_claim_allocation(&plan->seen, group->node, devices, count,
                                         controller_now(record->controller));
        write = patch == NULL ? NULL : begin(record, plan, ALLOCATE);
        if (write != NULL) {
                (void) text_copy(plan->node, sizeof(plan->node), group->node);
                plan->pick_count = count;
                for (size_t i = 0; i < count; i++)
                        (void) text_copy(plan->picks[i], sizeof(plan->picks[i]), devices[i]);
                store_patch(store_of(record), STORE_RESOURCE_CLAIM, record->namespace_,
                            strchr(plan->entry.key, '/') + 1, patch, on_written, write);
        }
        json_decref(patch);
}

static bool pod_has_ended(const struct record *record, const char *key)
{
        const struct job_pod *pod = record_find_pod((struct record *) record, strchr(key, '/') + 1);

        return pod != NULL && !pod->asked && job_pod_has_ended(pod);
}

static void say_taken(struct record *record, const char *key)
{
        char sentence[400];

        (void) text_format(sentence, sizeof(sentence),
                           "ResourceClaim %.300s is there already and not this job's: delete it", key);
        write_not_made(record, -EEXIST, sentence);
}

bool claim_plans_ready(struct record *record, const struct job_group *group)
{
        char key[KEY_BYTES];
        struct claim_plan *plan;

        if (!group->planned)
                return true;
        if (!key_of(record, group, key))
                return false;
        plan = claim_plan_make(list_of(record), key);
        if (plan == NULL || plan->asked || controller_monotonic(record->controller) < plan->again_usec)
                return false;
        plan->again_usec = 0;
        switch (planned_claim_step(&plan->seen, group, record->uid, pod_has_ended(record, key))) {
        case PLANNED_CLAIM_READY:
                return true;
        case PLANNED_CLAIM_CREATE:
                create(record, plan, group);
                break;
        case PLANNED_CLAIM_ALLOCATE:
                allocate(record, plan, group);
                break;
        case PLANNED_CLAIM_DELETE:
                give_up(record, plan);
                break;
        case PLANNED_CLAIM_TAKEN:
                say_taken(record, key);
                break;
        case PLANNED_CLAIM_WAIT:
                break;
        }
        claim_plan_settle(list_of(record), plan);
        return false;
}

static bool has_started(const struct record *record, const char *key)
{
        const struct job_pod *pod =
                record == NULL ? NULL : record_find_pod((struct record *) record, strchr(key, '/') + 1);

        return pod != NULL && pod->started;
}

static struct record *record_of(struct controller *c, const char *key, const struct planned_claim *claim)
{
        char job[KEY_BYTES];

        return text_format(job, sizeof(job), "%.*s/%s", (int) strcspn(key, "/"), key, claim->job)
                       ? controller_find(c, job)
                       : NULL;
}

bool claim_plans_yields(struct record *record, const struct job_group *group)
{
        struct controller *c = record->controller;
        const struct claim_plan *other;
        const char *rival;
        char key[KEY_BYTES];
        bool yields;

        if (!group->planned || !key_of(record, group, key))
                return false;
        rival = claims_planned_rival(cluster_claims(c->options.cluster), key);
        if (rival == NULL)
                return false;
        other = claim_plan_find(&c->claim_plans, rival);
        yields = planned_claim_yields(key, has_started(record, key), other == NULL ? NULL : rival,
                                      other != NULL && has_started(record_of(c, rival, &other->seen), rival));
        c->claim_plans.given_up += yields;
        return yields;
}

static bool is_wanted(struct record *record, const char *key)
{
        const struct job_state *state = &record->state;
        char own[KEY_BYTES];

        if (record->gone || record->deleting || job_phase_ended(state->phase) || suspend_holds(record))
                return false;
        for (size_t i = 0; i < state->group_count; i++)
                if (state->groups[i].planned && state->groups[i].node[0] != '\0' &&
                    key_of(record, &state->groups[i], own) && strcmp(own, key) == 0)
                        return true;
        return false;
}

void claim_plans_sweep(struct controller *c)
{
        for (struct name_map_entry *e = name_map_first(&c->claim_plans.claims), *next; e != NULL; e = next) {
                struct claim_plan *plan = (struct claim_plan *) e;
                struct record *record = record_of(c, plan->entry.key, &plan->seen);

                next = name_map_next(&c->claim_plans.claims, e);
                if (!plan->asked && plan->again_usec <= controller_monotonic(c))
                        plan->again_usec = 0;
                /* of a job that is gone it is the garbage collector's */
                if (plan->seen.there && !plan->seen.deleting && record != NULL &&
                    controller_may_look(record) && strcmp(plan->seen.owner, record->uid) == 0 &&
                    !record->dirty && !record->writing && plan->again_usec == 0 &&
                    !is_wanted(record, plan->entry.key))
                        give_up(record, plan);
                claim_plan_settle(&c->claim_plans, plan);
        }
}

void claim_plans_observe(struct controller *c, const char *key, const json_t *object)
{
        struct claim_plan *plan = claim_plan_find(&c->claim_plans, key);
        struct record *record = plan == NULL ? NULL : record_of(c, key, &plan->seen);
        struct planned_claim seen;

        if (record != NULL)
                controller_queue(record);
        if (!planned_claim_decode(object, &seen) && plan == NULL)
                return;
        if (plan == NULL)
                plan = claim_plan_make(&c->claim_plans, key);
        if (plan == NULL)
                return; /* without memory: it is asked for again, and found to be there */
        claim_plan_see(plan, &seen);
        record = record_of(c, key, &seen);
        if (record != NULL)
                controller_queue(record);
        claim_plan_settle(&c->claim_plans, plan);
}

void claim_plans_metrics(const struct controller *c, struct text *page)
{
        metrics_counter(page, "remuda_job_claims_allocated_total",
                        "Planned claims that chips were written into", c->claim_plans.allocated);
        metrics_counter(page, "remuda_job_claims_given_up_total",
                        "Planned claims that were given up since another one had a device of theirs",
                        c->claim_plans.given_up);
}
