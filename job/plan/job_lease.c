/* A plan's groups as places in the ledger. */
#include "job/plan/job_lease.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "job/plan/job_status.h"
#include "job/spec/held.h"
#include "job/spec/labels.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

/* two floors name one length. NOLINTNEXTLINE(misc-redundant-expression) */
static_assert((int) LEDGER_JOB_POD_BYTES == (int) JOB_POD_NAME_BYTES, "a place is called like its pod");

static void make_place(struct ledger *ledger, const struct job_lease *lease, const struct job_group *group,
                       struct ledger_job_place *place)
{
        place->request =
                (struct request){ .items = { { .resource = symbols_add(&ledger->symbols, group->resource),
                                               .chips = group->chips } },
                                  .item_count = 1,
                                  .emergency = lease->emergency,
                                  .preemptible = lease->job->preemptible,
                                  .gang_size = (uint32_t) lease->state->group_count,
                                  .serves = group->server,
                                  .class_chips =
                                          job_worker_chips(lease->job) + job_server_chips(lease->job) };
        if (group->model[0] != '\0') {
                place->request.models[0] = symbols_add(&ledger->symbols, group->model);
                place->request.model_count = 1;
        }
        job_group_pod_name(lease->name, group, place->pod);
        (void) text_copy(place->node, sizeof(place->node), group->node);
}

int job_lease_set(struct ledger *ledger, const struct job_lease *lease)
{
        const struct job_state *state = lease->state;
        bool holds = lease->job != NULL && !job_phase_ended(state->phase) && state->group_count > 0 &&
                     !job_state_is_refused(state); /* what it cannot use others may have meanwhile */
        CLEANUP(free_p)
        struct ledger_job_place *places = holds ? calloc(state->group_count, sizeof(*places)) : NULL;
        size_t count = 0;

        if (holds && places == NULL)
                return -ENOMEM;
        for (size_t i = 0; holds && i < state->group_count; i++)
                if (state->groups[i].node[0] != '\0')
                        make_place(ledger, lease, &state->groups[i], &places[count++]);
        return ledger_jobs_set_plan(ledger, lease->namespace_, lease->name, places, count);
}

static bool is_leaving(const json_t *object)
{
        return json_object_get(json_object_get(object, "metadata"), "deletionTimestamp") != NULL;
}

/* Of one that has its chips, its pods tell more. */
static void note_words(const json_t *object, const struct job_state *state, struct ledger_job *known)
{
        const json_t *labels = json_object_get(json_object_get(object, "metadata"), "labels");
        struct ledger_job_words words = { .phase = "" };

        if (state->group_count > 0 && strcmp(state->reason, HELD_LEAVING) != 0)
                return;
        (void) text_copy(words.phase, sizeof(words.phase), job_phase_names[state->phase]);
        (void) text_copy(words.reason, sizeof(words.reason), state->reason);
        (void) text_copy(words.message, sizeof(words.message), state->message);
        (void) text_copy(words.queue, sizeof(words.queue), json_read_word(labels, LABELS_QUEUE));
        text_harmless(words.message, 0); /* it may be cut within a letter */
        ledger_jobs_set_words(known, &words);
}

/* A TrainingJob as the store shows it. */
struct shown {
        char namespace_[256];
        struct ledger_job *known;
        struct job_state state;
        struct job_lease lease; /* its job is NULL if it is gone, or goes */
};

/* Return: is its status one of the job, or the job gone? The state is released in any case. */
static bool show(struct cluster *cluster, const char *key, const json_t *object, struct shown *ret)
{
        const json_t *status = json_object_get(object, "status");

        ret->state = job_state_new();
        ret->lease = (struct job_lease){ .namespace_ = ret->namespace_,
                                         .name = store_key_split(key, ret->namespace_),
                                         .state = &ret->state };
        ret->known = ledger_jobs_find(cluster_ledger(cluster), ret->namespace_, ret->lease.name);
        if (object != NULL && !is_leaving(object) && ret->known != NULL)
                ret->lease.job = ret->known->training;
        ret->lease.emergency =
                ret->lease.job != NULL && cluster_is_emergency(cluster, ret->namespace_, ret->lease.job);
        return ret->lease.job == NULL || (job_status_decode(status, &ret->state) == 0 &&
                                          job_status_check(status, ret->lease.job, &ret->state, NULL) == 0);
}

static void note(const struct shown *shown, const json_t *object)
{
        if (shown->lease.job == NULL)
                return;
        shown->known->saved_usec = job_state_saved_usec(shown->lease.job, &shown->state);
        note_words(object, &shown->state, shown->known);
}

void job_lease_note(struct cluster *cluster, const char *key, const json_t *object)
{
        struct shown shown;

        if (show(cluster, key, object, &shown))
                note(&shown, object);
        job_state_free(&shown.state);
}

void job_lease_observe(struct cluster *cluster, const char *key, const json_t *object)
{
        struct shown shown;

        if (show(cluster, key, object, &shown)) {
                note(&shown, object);
                (void) job_lease_set(cluster_ledger(cluster),
                                     &shown.lease); /* no memory: the next look has some */
        }
        job_state_free(&shown.state);
}

bool job_lease_fits(const struct open_groups_claim *claim, const char *namespace_,
                    const struct job_group *group)
{
        const struct ledger *ledger = claim->job.ledger;
        const struct ledger_node *node = ledger_nodes_find(ledger, group->node, strlen(group->node));
        uint32_t resource = symbols_find(&ledger->symbols, group->resource, strlen(group->resource));
        char name[JOB_POD_NAME_BYTES];
        const struct ledger_pod *pod;
        uint64_t leased = 0, room = 0;

        job_group_pod_name(claim->job.job->name, group, name);
        pod = ledger_pods_find(ledger, namespace_, name);
        if (node == NULL || (pod != NULL && (pod->node != NULL || pod->ended || pod->claimed)))
                return true;
        for (uint32_t g = 0; g < node->group_count; g++)
                if (node->groups[g].resource == resource) {
                        leased += node->groups[g].leased;
                        room += ledger_group_free(&node->groups[g]) +
                                open_groups_lent(node, &node->groups[g], claim->takes);
                }
        return leased <= room;
}
