/* A record from its first object to its last. */
#include "job/controller/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "job/controller/claims/template_list.h"
#include "job/controller/controller_internal.h"
#include "job/plan/job_lease.h"

struct job_pod *record_find_pod(struct record *record, const char *name)
{
        struct job_pod *pod = record->pods;

        while (pod != NULL && strcmp(pod->name, name) != 0)
                pod = pod->next;
        return pod;
}

void record_drop_pod(struct record *record, struct job_pod *pod)
{
        struct job_pod **place = &record->pods;

        while (*place != pod)
                place = &(*place)->next;
        *place = pod->next;
        free(pod);
}

bool record_uses_chips(const struct record *record)
{
        for (const struct job_pod *pod = record->pods; pod != NULL; pod = pod->next)
                if (!job_pod_has_ended(pod))
                        return true;
        return false;
}

bool record_was_planned(const struct record *record)
{
        return record->state.start_usec != 0;
}

void record_lease(struct record *record)
{
        bool stays = record->uid[0] != '\0' && !record->gone && !record->deleting && record->valid &&
                     record->bad_status[0] == '\0';
        struct job_lease lease = { .namespace_ = record->namespace_,
                                   .name = record->name,
                                   .job = stays ? &record->job : NULL,
                                   .state = &record->state,
                                   .emergency = record->emergency };

        (void) job_lease_set(controller_ledger(record->controller),
                             &lease); /* no memory: the next look has */
}

void record_drop_plan(struct record *record, const char *reason, const char *sentence)
{
        template_list_forget(&record->claim_templates);
        job_state_clear_plan(&record->state);
        job_state_set(&record->state, JOB_PENDING, controller_now(record->controller), reason, "%s",
                      sentence);
        record->dirty = true;
        record_lease(record);
        controller_want_plan(record->controller);
        controller_queue(record);
}

void record_give_up(struct record *record, const char *reason, const char *sentence)
{
        record->state.world++;
        record->state.address[0] = record->state.last_event[0] = '\0';
        record_drop_plan(record, reason, sentence);
}

void record_set_keys(struct record *record, char *keys)
{
        if (record->keys != NULL)
                explicit_bzero(record->keys, strlen(record->keys));
        free(record->keys);
        record->keys = keys;
}

void record_free(struct record *record)
{
        while (record->pods != NULL)
                record_drop_pod(record, record->pods);
        template_list_forget(&record->claim_templates);
        json_decref(record->finalizers);
        json_decref(record->fixed);
        json_decref(record->ignored);
        job_free(&record->job);
        job_state_free(&record->state);
        record_set_keys(record, NULL);
        free(record->key);
        free(record);
}

struct record *record_new(struct controller *c, const char *key)
{
        struct record *record = calloc(1, sizeof(*record));

        if (record == NULL || (record->key = strdup(key)) == NULL) {
                free(record);
                return NULL;
        }
        record->controller = c;
        record->entry.key = record->key;
        (void) text_copy(record->name, sizeof(record->name), store_key_split(key, record->namespace_));
        job_init(&record->job);
        if (name_map_insert(&c->records, &record->entry) < 0) {
                record_free(record);
                return NULL;
        }
        return record;
}

void record_forget_budget(struct record *record)
{
        record->budget.pods = BUDGET_UNKNOWN;
        record->budget.refused = false;
        record->budget.after_usec = 0;
}

void record_start_again(struct record *record, const char *uid)
{
        job_state_free(&record->state);
        template_list_forget(&record->claim_templates);
        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                if (strcmp(pod->owner, uid) != 0)
                        record_drop_pod(record, pod);
        }
        (void) text_copy(record->uid, sizeof(record->uid), uid);
        /* pods may be listed before their job: their keys are its own then */
        if (strcmp(record->keys_uid, uid) != 0) {
                record_set_keys(record, NULL);
                record->secret_made = false;
                for (struct job_pod *pod = record->pods; pod != NULL; pod = pod->next)
                        pod->secret[0] = '\0';
        }
        record->dirty = record->writing = record->secret_asked = record->pods_counted = record->unbound =
                false;
        record->gone = false;
        record->taken[0] = '\0';
        record_forget_budget(record);
        record->budget.under_way = false;
        record->queue = (struct record_queue){ .label = "" };
        record->rate = (struct job_rate){ .count = 0 };
        record->stragglers = 0;
        record->retry_usec = record->accepted_usec = record->ended_usec = record->end_age_usec = 0;
        record->removal_usec = 0;
        record->removal_refused[0] = '\0';
        record->refused_usec = record->unanswered_usec = record->plan_after_usec = record->unbound_usec = 0;
        record->refusals = record->unbound_times = 0;
        record->pace = (struct restarts_pace){ 0 };
        memset(&record->profile, 0, sizeof(record->profile));
}

struct job_pod *record_add_pod(struct record *record, const char *name)
{
        struct job_pod *pod = calloc(1, sizeof(*pod));

        if (pod == NULL)
                return NULL;
        (void) text_copy(pod->name, sizeof(pod->name), name);
        pod->next = record->pods;
        record->pods = pod;
        return pod;
}
