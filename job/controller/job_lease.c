/* The slots of a job's lease: one for each group that has a place and no pod on it. */
#include "job/controller/job_lease.h"

#include <string.h>

#include "job/controller/controller_internal.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"

#define LEASE_USEC 5000000u /* at least: leases are renewed every second */

void job_lease_release(struct record *record)
{
        struct ledger_job *job =
                ledger_jobs_find(controller_ledger(record->controller), record->namespace_, record->name);

        if (job != NULL && job->slots != NULL)
                ledger_jobs_drop_lease(controller_ledger(record->controller), job);
}

/* A group's place that no pod holds yet. Return: the node, or NULL. */
static struct ledger_node *open_place(const struct record *record, const struct job_group *group,
                                      struct request *request)
{
        struct ledger *ledger = controller_ledger(record->controller);
        struct ledger_node *node = ledger_nodes_find(ledger, group->node, strlen(group->node));
        const struct ledger_pod *pod;
        char name[JOB_POD_NAME_BYTES];

        job_group_pod_name(record->name, group, name);
        pod = ledger_pods_find(ledger, record->namespace_, name);
        if (node == NULL || group->node[0] == '\0' || (pod != NULL && (pod->node != NULL || pod->ended)))
                return NULL;
        *request = (struct request){ .items = { { .resource = symbols_find(&ledger->symbols, group->resource,
                                                                           strlen(group->resource)),
                                                  .chips = group->chips } },
                                     .item_count = 1,
                                     .emergency = record->emergency,
                                     .preemptible = record->job.preemptible,
                                     .gang_size = (uint32_t) record->state.group_count,
                                     .serves = group->server,
                                     .class_chips = job_worker_chips(&record->job) +
                                                    job_server_chips(&record->job) };
        if (group->model[0] != '\0') {
                request->models[0] = symbols_find(&ledger->symbols, group->model, strlen(group->model));
                request->model_count = 1;
        }
        return node;
}

static bool lease_is_right(const struct record *record, const struct ledger_job *job)
{
        size_t wanted = 0, there = 0;

        for (const struct ledger_job_slot *slot = job == NULL ? NULL : job->slots; slot != NULL;
             slot = slot->next_in_job)
                there++;
        for (size_t i = 0; i < record->state.group_count; i++) {
                struct request request;
                const struct ledger_node *node = open_place(record, &record->state.groups[i], &request);
                bool found = false;

                if (node == NULL)
                        continue;
                wanted++;
                for (const struct ledger_job_slot *slot = job == NULL ? NULL : job->slots;
                     slot != NULL && !found; slot = slot->next_in_job)
                        found = slot->node == node &&
                                slot->request.items[0].resource == request.items[0].resource &&
                                slot->request.items[0].chips == request.items[0].chips;
                if (!found)
                        return false;
        }
        return wanted == there;
}

void job_lease_sync(struct record *record)
{
        struct ledger *ledger = controller_ledger(record->controller);
        struct ledger_job *job = ledger_jobs_find(ledger, record->namespace_, record->name);
        uint64_t lease = cluster_rules(record->controller->options.cluster)->lease_usec;

        if (record->deleting || record->gone || !record->valid || job_phase_ended(record->state.phase)) {
                job_lease_release(record);
                return;
        }
        if (record->state.group_count == 0)
                return;
        if (!lease_is_right(record, job)) {
                job_lease_release(record);
                job = ledger_jobs_refer(ledger, record->namespace_, record->name);
                for (size_t i = 0; job != NULL && i < record->state.group_count; i++) {
                        struct request request;
                        struct ledger_node *node = open_place(record, &record->state.groups[i], &request);

                        if (node != NULL)
                                (void) ledger_jobs_add_slot(ledger, job, node, &request);
                }
                if (job != NULL)
                        ledger_jobs_release(ledger, job);
                job = ledger_jobs_find(ledger, record->namespace_, record->name);
        }
        if (job != NULL && job->slots != NULL)
                job->lease_ends_usec =
                        controller_now(record->controller) + (lease > LEASE_USEC ? lease : LEASE_USEC);
}
