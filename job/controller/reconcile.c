/* One job looked at as a whole, and the next thing done that is missing. Nothing here remembers what it did:
 * what is there is looked at again each time. */
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "job/controller/record.h"

#define UNSEEN_USEC 5000000u /* a pod that was made should be seen within */
#define FAREWELL_USEC                                                                                        \
        20000000u           /* in which the groups of an ended job end by themselves, so that logs stay      \
                             */
#define LEASE_USEC 5000000u /* at least: leases are renewed every second */

static struct ledger *ledger_of(const struct job_record *record)
{
        return cluster_ledger(record->controller->options.cluster);
}

void record_release_lease(struct job_record *record)
{
        struct ledger_job *job = ledger_find_job(ledger_of(record), record->namespace_, record->name);

        if (job != NULL && job->slots != NULL)
                ledger_drop_lease(ledger_of(record), job);
}

/* A group's place that no pod holds yet. Return: the node, or NULL. */
static struct ledger_node *open_place(const struct job_record *record, const struct job_group *group,
                                      struct request *request)
{
        struct ledger *ledger = ledger_of(record);
        struct ledger_node *node = ledger_find_node(ledger, group->node, strlen(group->node));
        const struct ledger_pod *pod;
        char name[JOB_POD_NAME_BYTES];

        job_group_pod_name(record->name, group, name);
        pod = ledger_find_pod(ledger, record->namespace_, name);
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

static bool lease_is_right(const struct job_record *record, const struct ledger_job *job)
{
        size_t wanted = 0, there = 0;

        for (const struct lease_slot *slot = job == NULL ? NULL : job->slots; slot != NULL;
             slot = slot->next_in_job)
                there++;
        for (size_t i = 0; i < record->state.group_count; i++) {
                struct request request;
                const struct ledger_node *node = open_place(record, &record->state.groups[i], &request);
                bool found = false;

                if (node == NULL)
                        continue;
                wanted++;
                for (const struct lease_slot *slot = job == NULL ? NULL : job->slots; slot != NULL && !found;
                     slot = slot->next_in_job)
                        found = slot->node == node &&
                                slot->request.items[0].resource == request.items[0].resource &&
                                slot->request.items[0].chips == request.items[0].chips;
                if (!found)
                        return false;
        }
        return wanted == there;
}

void record_sync_lease(struct job_record *record)
{
        struct ledger *ledger = ledger_of(record);
        struct ledger_job *job = ledger_find_job(ledger, record->namespace_, record->name);
        uint64_t lease = cluster_rules(record->controller->options.cluster)->lease_usec;

        if (record->deleting || record->gone || !record->valid || job_phase_ended(record->state.phase)) {
                record_release_lease(record);
                return;
        }
        if (record->state.group_count == 0)
                return;
        if (!lease_is_right(record, job)) {
                record_release_lease(record);
                job = ledger_hold_job(ledger, record->namespace_, record->name);
                for (size_t i = 0; job != NULL && i < record->state.group_count; i++) {
                        struct request request;
                        struct ledger_node *node = open_place(record, &record->state.groups[i], &request);

                        if (node != NULL)
                                (void) ledger_add_slot(ledger, job, node, &request);
                }
                if (job != NULL)
                        ledger_release_job(ledger, job);
                job = ledger_find_job(ledger, record->namespace_, record->name);
        }
        if (job != NULL && job->slots != NULL)
                job->lease_ends_usec =
                        controller_now(record->controller) + (lease > LEASE_USEC ? lease : LEASE_USEC);
}

static bool is_expected(const struct job_record *record, const struct job_pod *pod)
{
        char name[JOB_POD_NAME_BYTES];

        job_manager_pod_name(record->name, record->state.world, name);
        if (strcmp(pod->name, name) == 0)
                return true;
        for (size_t i = 0; i < record->state.group_count; i++) {
                job_group_pod_name(record->name, &record->state.groups[i], name);
                if (record->state.groups[i].node[0] != '\0' && strcmp(pod->name, name) == 0)
                        return true;
        }
        return false;
}

/* The kubelet of a lost node answers nobody: its pods are deleted without it. And a pod on no node is deleted
 * by the API server in two writes: if the controller that asked was killed between them, nobody does the
 * second. */
static unsigned grace_for(const struct job_record *record, const struct job_pod *pod)
{
        if (pod->node[0] == '\0' ? pod->deleting : record_node_lost(record, pod->node))
                return 0;
        return pod->started ? record->controller->options.pods.grace_sec : 1;
}

/* Made by a controller that was killed just then, with keys that the others do not have. */
static bool has_other_keys(const struct job_record *record, const struct job_pod *pod)
{
        char secret[JOB_POD_NAME_BYTES];

        if (pod->asked || pod->secret[0] == '\0' || record->keys == NULL)
                return false;
        job_keys_secret(record->keys, secret);
        return strcmp(secret, pod->secret) != 0;
}

static void remove_unexpected(struct job_record *record)
{
        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                if (!job_pod_has_ended(pod) && (!is_expected(record, pod) || has_other_keys(record, pod)))
                        delete_pod(record, pod, grace_for(record, pod));
        }
}

/* One that was made and not seen for long: it is asked for again, and found if it is there. */
static void forget_unseen(struct job_record *record)
{
        uint64_t now = controller_monotonic(record->controller);

        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                if (pod->asked && pod->asked_usec != UINT64_MAX && now - pod->asked_usec > UNSEEN_USEC)
                        record_drop_pod(record, pod);
        }
}

/* Return: is the pod there, as far as is known? */
static bool make_group(struct job_record *record, const struct job_group *group)
{
        const struct job_pod *pod;
        struct job_owner owner;
        char name[JOB_POD_NAME_BYTES];

        job_group_pod_name(record->name, group, name);
        pod = record_find_pod(record, name);
        if (pod != NULL)
                return !pod->asked || pod->asked_usec != UINT64_MAX;
        record_owner(record, &owner);
        write_pod(record, name, group->name,
                  job_group_pod(&record->job, &record->state, group, &owner,
                                &record->controller->options.pods, record->keys));
        return false;
}

static bool make_manager(struct job_record *record)
{
        const struct job_pod *pod;
        struct job_owner owner;
        char name[JOB_POD_NAME_BYTES], token[49];

        job_manager_pod_name(record->name, record->state.world, name);
        pod = record_find_pod(record, name);
        if (pod != NULL)
                return !pod->asked || pod->asked_usec != UINT64_MAX;
        if (!record_make_token(token))
                return false;
        record_owner(record, &owner);
        write_pod(record, name, "",
                  job_manager_pod(&record->job, &record->state, &owner, &record->controller->options.pods,
                                  record->keys, token));
        return false;
}

/* The groups learn where the manager of this world is. */
static void tell_groups(struct job_record *record)
{
        char value[128], name[JOB_POD_NAME_BYTES];

        if (record->state.address[0] == '\0')
                return;
        (void) text_format(value, sizeof(value), "%llu %s", (unsigned long long) record->state.world + 1,
                           record->state.address);
        for (size_t i = 0; i < record->state.group_count; i++) {
                struct job_pod *pod;

                job_group_pod_name(record->name, &record->state.groups[i], name);
                pod = record_find_pod(record, name);
                if (pod != NULL && !pod->asked && !pod->deleting && !job_pod_has_ended(pod))
                        write_manager(record, pod, value);
        }
}

static void make_pods(struct job_record *record)
{
        struct controller *c = record->controller;
        bool all = true, placed = true;

        if (controller_monotonic(c) < record->retry_usec)
                return;
        forget_unseen(record);
        remove_unexpected(record);
        if (!write_secret(record))
                return; /* pods name it, and a pod that does not find it is tried again late */
        for (size_t i = 0; i < record->state.group_count; i++) {
                bool has_place = record->state.groups[i].node[0] != '\0';

                placed = placed && has_place;
                all = has_place && make_group(record, &record->state.groups[i]) && all;
        }
        all = placed && make_manager(record) && all;
        tell_groups(record);
        if (all && !record->pods_counted) {
                record->pods_counted = true;
                controller_want_plan(c);
                if (record->accepted_usec > 0) { /* accepted by this process */
                        double seconds = (double) (controller_monotonic(c) - record->accepted_usec) / 1e6;

                        histogram_observe(&c->metrics.accepted_to_pods, seconds);
                        controller_log(c, LOG_INFO, "job-pods", "job=%s pods=%zu seconds=%.4f", record->key,
                                       record->state.group_count + 1, seconds);
                }
        }
}

/* Groups are told to end, so that their pods do, with their logs; what does not is deleted. */
static void release_pods(struct job_record *record)
{
        uint64_t since = controller_now(record->controller) - record->state.completion_usec;
        bool keep = since < (uint64_t) record->controller->options.keep_pods_sec * 1000000;

        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                if (job_pod_has_ended(pod) && keep)
                        continue;
                if (!job_pod_has_ended(pod) && pod->started && !pod->manager && !pod->deleting &&
                    since < FAREWELL_USEC)
                        write_manager(record, pod, "end");
                else
                        delete_pod(record, pod, grace_for(record, pod));
        }
}

static void remove_all(struct job_record *record)
{
        record_release_lease(record);
        forget_unseen(record);
        for (struct job_pod *pod = record->pods, *next; pod != NULL; pod = next) {
                next = pod->next;
                delete_pod(record, pod, grace_for(record, pod));
        }
        if (record->pods == NULL && !record->gone)
                write_finalizer(record, false);
}

static void end_early(struct job_record *record, enum job_phase phase, const char *reason,
                      const char *sentence)
{
        struct controller *c = record->controller;

        job_state_set(&record->state, phase, controller_now(c), reason, "%s", sentence);
        record->dirty = true;
        c->metrics.ended[phase]++;
        record_event(record, phase == JOB_FAILED, reason, "%s", sentence);
        controller_want_plan(c);
}

void reconcile(struct job_record *record)
{
        struct controller *c = record->controller;

        if (record->gone || record->deleting) {
                remove_all(record);
                return;
        }
        if (!job_phase_ended(record->state.phase) && !record->valid) {
                job_state_condition(&record->state, JOB_CONDITION_ACCEPTED, false, controller_now(c),
                                    "InvalidSpec", record->why);
                end_early(record, JOB_FAILED, "InvalidSpec", record->why);
        }
        if (!job_phase_ended(record->state.phase) && record->bad_status[0] != '\0') {
                job_state_clear_plan(&record->state);
                end_early(record, JOB_FAILED, "BadStatus", record->bad_status);
        }
        if (!job_phase_ended(record->state.phase) && record->cancel)
                end_early(record, JOB_CANCELLED, "Cancelled",
                          "cancelled by its annotation " JOB_ANNOTATION_CANCEL);
        if (job_phase_ended(record->state.phase)) {
                record_release_lease(record);
                progress_close(record);
                write_status(record);
                release_pods(record);
                return;
        }
        write_finalizer(record, true);
        if (!record->has_finalizer)
                return;
        if (record->state.group_count > 0) {
                record_sync_lease(record);
                watch_job(record);
                progress_ask(record);
        } else {
                remove_unexpected(record);
                controller_want_plan(c);
        }
        write_status(record);
        /* nothing is made from what is not written */
        if (!record->dirty && !record->writing && record->state.group_count > 0 &&
            !job_phase_ended(record->state.phase))
                make_pods(record);
}
