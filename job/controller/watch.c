/* The groups and the manager of a planned job as they are now: its phase, its faults, and what is done about
 * them: the world starts anew in place, what lost its chips gets others, or the job ends. */
#include "job/controller/watch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/controller/claims/job_claim.h"
#include "job/controller/controller_internal.h"
#include "job/controller/launchers/progress.h"
#include "job/controller/write.h"
#include "job/spec/job_arguments.h"
#include "job/world/pods.h"
#include "job/world/restarts.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_sick.h"

#define SECRET_USEC 30000000u /* after the pod has its node: images are pulled in less, mostly */

static const struct ledger_node *find_node(const struct record *record, const char *name)
{
        return ledger_nodes_find(controller_ledger(record->controller), name, strlen(name));
}

bool watch_node_given_up(const struct record *record, const char *name)
{
        const struct ledger_node *node = find_node(record, name);

        return node == NULL || !ledger_node_known(node) || node->out_of_service ||
               ledger_seen_usec(controller_ledger(record->controller), node) == LIVENESS_REMOVED;
}

bool watch_node_is_lost(const struct record *record, const char *name)
{
        const struct ledger *ledger = controller_ledger(record->controller);

        return watch_node_given_up(record, name) ||
               liveness_lost(&ledger->liveness, ledger_seen_usec(ledger, find_node(record, name)));
}

/* A node that is silent as most are is not left: that is said once, and nothing is done. */
static void note_silence(struct record *record)
{
        const struct ledger *ledger = controller_ledger(record->controller);
        const struct job_pod *silent = NULL;

        for (const struct job_pod *pod = record->pods; pod != NULL && silent == NULL; pod = pod->next)
                if (pod->node[0] != '\0' && !watch_node_is_lost(record, pod->node) &&
                    liveness_silent(&ledger->liveness,
                                    ledger_seen_usec(ledger, find_node(record, pod->node))))
                        silent = pod;
        if (silent != NULL && !record->silence_said)
                write_event(record, true, "NodesSilent",
                            "node %s is silent, but so are %u of %u nodes: the job stays where it is",
                            silent->node, ledger->liveness.doubtful, ledger->liveness.judged);
        record->silence_said = silent != NULL;
}

/* A pod that is deleted from outside is given its grace time: a checkpoint may be written in it. */
static bool is_leaving(const struct job_pod *pod)
{
        return pod->deleting && !pod->delete_asked && !job_pod_has_ended(pod);
}

/* Two say so: the node's inventory, on any cluster, and the kubelet, where it has ResourceHealthStatus. */
static bool has_lost_chip(const struct record *record, const struct job_pod *pod,
                          char device[DEVICE_ID_BYTES])
{
        const struct ledger_pod *known = ledger_pods_find(cluster_ledger(record->controller->options.cluster),
                                                          record->namespace_, pod->name);

        device[0] = '\0';
        return (known != NULL && strcmp(known->uid, pod->uid) == 0 && ledger_sick_of_pod(known, device)) ||
               pod->sick;
}

static enum job_group_state state_of(const struct job_pod *pod)
{
        if (pod != NULL && pod->phase == JOB_POD_SUCCEEDED)
                return JOB_GROUP_SUCCEEDED;
        return pod != NULL && pod->started ? JOB_GROUP_RUNNING : JOB_GROUP_WAITING;
}

/* As pods_judge() sees it; @device has room for the lost chip's id. */
static struct pods_pod look_at(const struct record *record, const struct job_pod *pod, const char *node,
                               char device[DEVICE_ID_BYTES])
{
        struct pods_pod seen = { .node = node,
                                 .node_lost = node[0] != '\0' && watch_node_is_lost(record, node) };

        device[0] = '\0';
        seen.device = device;
        if (pod == NULL)
                return seen;
        seen.there = true;
        seen.leaving = is_leaving(pod);
        seen.chip_lost = !job_pod_has_ended(pod) && has_lost_chip(record, pod, device);
        seen.phase = (enum pods_phase) pod->phase;
        seen.exit_code = pod->exit_code;
        seen.reason = pod->reason;
        seen.words = pod->message;
        return seen;
}

/* All that is seen of a job at one look; the index of each group that has a place. */
struct collected {
        struct pods_look look;
        struct pods_pod groups[JOB_GROUPS_MAX];
        size_t index[JOB_GROUPS_MAX];
        char names[JOB_GROUPS_MAX][JOB_POD_NAME_BYTES], devices[JOB_GROUPS_MAX][DEVICE_ID_BYTES];
        bool lost[JOB_GROUPS_MAX];
        char manager_name[JOB_POD_NAME_BYTES], manager_device[DEVICE_ID_BYTES];
        struct job_report report;
};

static void collect_groups(struct record *record, struct collected *all)
{
        for (size_t i = 0; i < record->state.group_count; i++) {
                const struct job_group *group = &record->state.groups[i];
                size_t n = all->look.group_count;
                const struct job_pod *pod;

                if (group->node[0] == '\0')
                        continue;
                job_group_pod_name(record->name, group, all->names[n]);
                pod = record_find_pod(record, all->names[n]);
                all->groups[n] = look_at(record, pod, group->node, all->devices[n]);
                all->groups[n].group = group->name;
                all->groups[n].name = all->names[n];
                all->groups[n].ran = group->state == JOB_GROUP_RUNNING;
                all->index[n] = i;
                all->look.group_count++;
                if (all->groups[n].leaving && record->job.preemptible && !record->yielding) {
                        record->yielding = true;
                        record->restarts_before = record->state.restarts;
                }
        }
}

/* What the manager did since it was asked last is in its last words. */
static void take_result(struct record *record, const struct job_report *report)
{
        struct job_progress *progress = &record->state.progress;

        progress->time_usec = controller_now(record->controller);
        if (report->samples > 0)
                progress->samples = report->samples;
        if (report->samples_per_s > 0)
                progress->samples_per_s = report->samples_per_s;
        record->state.restarts = record->base_restarts + report->restarts;
        record->state.reshards = record->base_reshards + report->reshards;
        (void) progress_take_crashes(record, report);
        progress_take_shares(record, report);
        if (!isnan(report->loss))
                progress->loss = report->loss;
        if (!isnan(report->accuracy))
                progress->accuracy = report->accuracy;
        if (report->step > 0)
                progress->step = report->step;
        progress->seconds_left = 0;
        progress_pass_events(record, report);
        progress_take_ranks(record, report);
        progress_count_samples(record);
        if (progress->samples_total == 0)
                progress->samples_total = progress->samples;
        progress_note_moment(record);
}

static void succeed(struct record *record)
{
        struct controller *c = record->controller;

        if (job_arguments_epochs(&record->job) > 0)
                record->state.progress.epoch = record->job.epochs;
        for (size_t i = 0; i < record->state.group_count; i++)
                record->state.groups[i].state = JOB_GROUP_SUCCEEDED;
        job_state_set(&record->state, JOB_SUCCEEDED, controller_now(c), "Completed", "every rank ended well");
        record->dirty = true;
        c->metrics.ended[JOB_SUCCEEDED]++;
        write_event(record, false, "Succeeded", "every rank ended well");
        controller_want_plan(c);
}

/* Why a container waits, where waiting alone does not help. */
static bool is_bad(const struct job_pod *pod)
{
        static const char *const bad[] = {
                "ErrImagePull",      "ImagePullBackOff",           "InvalidImageName",
                "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError",
                "RunContainerError"
        };

        for (size_t i = 0; !pod->started && i < sizeof(bad) / sizeof(bad[0]); i++)
                if (strcmp(pod->reason, bad[i]) == 0)
                        return true;
        return false;
}

/* A pod that mounts a Secret which is not there waits for it, and only its own events say so. */
static bool waits_for_secret(const struct record *record, const struct job_pod *pod)
{
        return record->job.tls.secret[0] != '\0' && !pod->started && pod->bound_usec > 0 &&
               !job_pod_has_ended(pod) &&
               controller_monotonic(record->controller) - pod->bound_usec >= SECRET_USEC;
}

static bool has_place(const struct record *record)
{
        for (size_t i = 0; i < record->state.group_count; i++)
                if (record->state.groups[i].node[0] == '\0')
                        return false;
        return true;
}

static void say_trouble(struct record *record, const char *reason, const char *message)
{
        job_state_set(&record->state, record->state.phase, controller_now(record->controller), reason, "%s",
                      message);
        write_event(record, true, reason, "%s", message);
        record->dirty = true;
}

/* What a person should know of pods that do not start: one thing at a time, and that as long as it holds for
 * any of them; each pod in its turn would be written for ever. A group without chips speaks for itself. */
static void note_waiting(struct record *record)
{
        const struct job_pod *bad = NULL, *late = NULL;
        const char *reason = record->state.reason;
        char message[400];

        if (!has_place(record))
                return;
        for (const struct job_pod *pod = record->pods; pod != NULL; pod = pod->next) {
                if (is_bad(pod) && strcmp(pod->reason, reason) == 0)
                        return;
                bad = bad == NULL && is_bad(pod) ? pod : bad;
                late = late == NULL && waits_for_secret(record, pod) ? pod : late;
        }
        if (bad != NULL) {
                (void) text_format(message, sizeof(message), "pod %.80s: %.300s", bad->name, bad->message);
                say_trouble(record, bad->reason, message);
        } else if (late != NULL && strcmp(reason, "PodNotStarted") != 0) {
                (void) text_format(message, sizeof(message),
                                   "pod %.80s has not started yet; if its events say that Secret '%.80s' or "
                                   "'%.80s' is not found, make it with tls.crt, tls.key and ca.crt "
                                   "(spec.tls)",
                                   late->name, record->job.tls.secret, record->job.tls.group_secret);
                say_trouble(record, "PodNotStarted", message);
        }
}

static bool all_run(const struct record *record)
{
        for (size_t i = 0; i < record->state.group_count; i++)
                if (record->state.groups[i].state != JOB_GROUP_RUNNING)
                        return false;
        return true;
}

/* Its last words count before it is judged: they say how often it has started the world anew. */
static void collect_manager(struct record *record, const struct job_pod *pod, struct collected *all)
{
        bool asked = pod != NULL && pod->asked;

        all->look.manager =
                look_at(record, asked ? NULL : pod, pod == NULL ? "" : pod->node, all->manager_device);
        all->look.manager.name = all->manager_name;
        all->look.manager.ran = !asked && record->state.address[0] != '\0';
        if (pod != NULL && pod->restarts >= 0) {
                record->base_restarts = (uint64_t) pod->restarts;
        } else if (pod != NULL && pod->restart_max >= 0) { /* of an older controller */
                uint64_t max = job_restart_max(&record->job), left = (uint64_t) pod->restart_max;

                record->base_restarts = max > left ? max - left : 0;
        }
        if (pod != NULL && job_pod_has_ended(pod) && job_report_parse(pod->message, &all->report) == 0)
                take_result(record, &all->report);
        all->look.state = all->report.state;
        all->look.state_reason = all->report.reason;
        all->look.state_message = all->report.message;
}

/* Where the manager can be asked. */
static void note_address(struct record *record, const struct job_pod *manager)
{
        struct job_state *state = &record->state;

        if (manager == NULL || manager->asked || job_pod_has_ended(manager) || !manager->started ||
            manager->ip[0] == '\0' || state->address[0] != '\0')
                return;
        (void) text_format(state->address, sizeof(state->address),
                           strchr(manager->ip, ':') != NULL ? "[%s]:%d" : "%s:%d", manager->ip,
                           JOB_MANAGER_PORT);
        record->dirty = true;
}

/* Does all of the job run by now? */
static void note_running(struct record *record, const struct job_pod *manager)
{
        struct job_state *state = &record->state;

        if (manager == NULL || manager->asked || !manager->started || state->phase == JOB_RUNNING ||
            !all_run(record))
                return;
        job_state_set(state, JOB_RUNNING, controller_now(record->controller), "Running",
                      "%u ranks in world %llu", job_state_world_size(state),
                      (unsigned long long) state->world);
        write_event(record, false, state->world == 0 ? "Running" : "Resumed", "%u ranks in world %llu",
                    job_state_world_size(state), (unsigned long long) state->world);
        record->dirty = true;
}

/* Its chips were taken back: everything is given up, and the job waits for chips like a new one. */
static void give_way(struct record *record, const struct pods_verdict *v)
{
        char sentence[JOB_MESSAGE_BYTES];

        record->state.restarts =
                record->restarts_before; /* the manager took the end of its ranks for a fault */
        (void) text_format(sentence, sizeof(sentence),
                           "%.400s; the job goes on from its last checkpoint when there are chips",
                           v->message);
        record_give_up(record, "Evicted", sentence);
}

/* Lost groups get another place (plan_queue_run() finds it); the manager holds the job together meanwhile,
 * and starts the next world when they have joined. Without a manager there is a new one, too. */
static void start_anew(struct record *record, const struct pods_verdict *v, const struct collected *all)
{
        struct job_state *state = &record->state;
        struct controller *c = record->controller;
        uint64_t pause = 0;

        if (v->world || state->phase == JOB_RUNNING) {
                pause = restarts_pause(&record->pace, controller_monotonic(c));
                state->restarts++;
                c->metrics.restarts++;
        }
        if (v->world) {
                state->world++;
                state->address[0] = state->last_event[0] = '\0';
                record->base_restarts = state->restarts;
                record->base_reshards = state->reshards;
                record->base_recuts = state->recuts;
                for (size_t i = 0; i < state->rank_count; i++)
                        state->ranks[i].before = ++state->ranks[i].restarts;
        }
        for (size_t i = 0; i < state->group_count; i++)
                state->groups[i].restarts++;
        for (size_t n = 0; n < all->look.group_count; n++) {
                if (all->lost[n])
                        job_group_lose(&state->groups[all->index[n]]);
        }
        job_state_set(state, JOB_RESTARTING, controller_now(c), v->reason, "%s; %s", v->message,
                      restarts_words(state->restarts, job_restart_max(&record->job),
                                     record->job.checkpoint.given, pause)
                              .text);
}

static void repair(struct record *record, const struct pods_verdict *v, const struct collected *all)
{
        struct controller *c = record->controller;

        c->metrics.faults++;
        write_event(record, true, v->reason, "%s", v->message);
        record->dirty = true;
        controller_want_plan(c);
        if (v->kind == PODS_GIVE_WAY) {
                record->yielding = false;
                give_way(record, v);
        } else if (v->kind == PODS_END) {
                job_state_set(&record->state, JOB_FAILED, controller_now(c), v->reason, "%s%s", v->message,
                              v->no_more_left ? RESTARTS_NO_MORE : "");
                c->metrics.ended[JOB_FAILED]++;
        } else {
                start_anew(record, v, all);
        }
}

/* As many names as a status holds, none of them cut. */
static void note_devices(struct record *record, struct job_group *group, const char *pod)
{
        CLEANUP(text_free) struct text got = { 0 };
        char devices[JOB_GROUP_DEVICES_BYTES] = "";

        if (job_claim_class(&record->job, group) == NULL ||
            !cluster_claims_got(record->controller->options.cluster, record->namespace_, pod, &got) ||
            got.data == NULL)
                return; /* one that has ended had them */
        while (!text_copy(devices, sizeof(devices), got.data) && strchr(got.data, ',') != NULL)
                *strrchr(got.data, ',') = '\0';
        record->dirty = record->dirty || strcmp(devices, group->devices) != 0;
        (void) text_copy(group->devices, sizeof(group->devices), devices);
}

static void note_groups(struct record *record, const struct collected *all)
{
        for (size_t n = 0; n < all->look.group_count; n++) {
                struct job_group *group = &record->state.groups[all->index[n]];
                enum job_group_state state = state_of(record_find_pod(record, all->names[n]));

                if (all->lost[n] || all->groups[n].leaving)
                        continue;
                record->dirty = record->dirty || state != group->state;
                group->state = state;
                note_devices(record, group, all->names[n]);
        }
}

static void act(struct record *record, struct collected *all)
{
        const struct job_pod *manager;
        struct pods_verdict v;

        job_state_manager_pod_name(record->name, record->state.world, all->manager_name);
        manager = record_find_pod(record, all->manager_name);
        collect_groups(record, all);
        collect_manager(record, manager, all);
        all->look.groups = all->groups;
        all->look.runs = record->state.phase == JOB_RUNNING;
        all->look.yielding = record->yielding;
        all->look.restarts = record->state.restarts;
        all->look.restart_max = job_restart_max(&record->job);
        v = pods_judge(&all->look, all->lost);
        note_groups(record, all);
        note_address(record, manager);
        if (manager != NULL && !manager->asked && manager->phase == JOB_POD_SUCCEEDED) {
                succeed(record);
        } else if (v.kind != PODS_GO_ON) {
                repair(record, &v, all);
        } else {
                note_running(record, manager);
                note_waiting(record);
                note_silence(record);
        }
}

bool watch_has_succeeded(struct record *record)
{
        struct collected *all;
        const struct job_pod *manager;
        char name[JOB_POD_NAME_BYTES];

        job_state_manager_pod_name(record->name, record->state.world, name);
        manager = record_find_pod(record, name);
        if (manager == NULL || manager->asked || manager->phase != JOB_POD_SUCCEEDED ||
            (all = calloc(1, sizeof(*all))) == NULL)
                return false;
        collect_manager(record, manager, all);
        succeed(record);
        job_report_free(&all->report);
        free(all);
        return true;
}

void watch_job(struct record *record)
{
        struct collected *all = calloc(1, sizeof(*all));

        if (all == NULL)
                return; /* the next look has memory, or the one after */
        act(record, all);
        job_report_free(&all->report);
        free(all);
}
