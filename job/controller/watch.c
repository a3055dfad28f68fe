/* The groups and the manager of a planned job as they are now: its phase, its faults, and what is done about
 * them: the world starts anew in place, what lost its chips gets others, or the job ends. */
#include "job/controller/watch.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "job/controller/controller_internal.h"
#include "job/controller/progress.h"
#include "job/controller/write.h"
#include "job/world/verdict.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_sick.h"

#define SECRET_USEC 30000000u /* after the pod has its node: images are pulled in less, mostly */

/* What is wrong with a job, all of it that was seen at one look. A world that breaks within its manager's
 * reach is started anew by the manager; what is found here are pods, chips and nodes. */
struct fault {
        char reason[JOB_REASON_BYTES], message[400];
        bool final;   /* the job ends: the manager has tried what there was to try */
        bool world;   /* the manager is gone: the next world has another one */
        bool evicted; /* its chips were taken back: it waits for others, and that is no fault of its own */
        bool lost[JOB_GROUPS_MAX]; /* groups that need other chips, or a new pod */
};

static void blame(struct fault *fault, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void blame(struct fault *fault, const char *reason, const char *fmt, ...)
{
        va_list values;

        if (fault->reason[0] != '\0')
                return; /* the first one speaks for all */
        (void) text_copy(fault->reason, sizeof(fault->reason), reason);
        va_start(values, fmt);
        (void) vsnprintf(fault->message, sizeof(fault->message), fmt, values); /* NOLINT: cut to its field */
        va_end(values);
}

bool watch_node_lost(const struct record *record, const char *name)
{
        struct cluster *cluster = record->controller->options.cluster;
        const struct ledger_node *node = ledger_nodes_find(cluster_ledger(cluster), name, strlen(name));
        const struct rules_context question = { .rules = cluster_rules(cluster),
                                                .now_usec = controller_now(record->controller) };

        return node == NULL || !ledger_node_known(node) ||
               rules_too_old(&question, ledger_seen_usec(cluster_ledger(cluster), node));
}

/* A pod that is deleted from outside is given its grace time: a checkpoint may be written in it. */
static bool is_leaving(const struct job_pod *pod)
{
        return pod != NULL && pod->deleting && !pod->delete_asked && !job_pod_has_ended(pod);
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

/* Of what a container wrote, or of the end of its log, the last line says why it ended. */
static const char *last_line(const char *message)
{
        size_t end = strlen(message), begin;

        while (end > 0 && message[end - 1] == '\n')
                end--;
        begin = end;
        while (begin > 0 && message[begin - 1] != '\n')
                begin--;
        return message + begin;
}

/* Return: why the group needs other chips or a new pod; NULL = it does not. */
static const char *trouble_of(const struct record *record, const struct job_group *group,
                              const struct job_pod *pod, char message[400])
{
        bool ran = group->state == JOB_GROUP_RUNNING;
        char device[DEVICE_ID_BYTES];

        if (watch_node_lost(record, group->node)) {
                (void) text_format(message, 400, "node %s of %s is lost", group->node, group->name);
                return "NodeLost";
        }
        if (pod == NULL) {
                (void) text_format(message, 400, "the pod of %s is gone", group->name);
                return ran ? "PodGone" : NULL;
        }
        if (!job_pod_has_ended(pod) && has_lost_chip(record, pod, device)) {
                (void) text_format(message, 400, "%s%s of %s on %s cannot be used any more",
                                   device[0] == '\0' ? "a chip" : "chip ", device, group->name, group->node);
                return "DeviceUnhealthy";
        }
        if (pod->phase == JOB_POD_FAILED) {
                (void) text_format(message, 400, "pod %.70s ended with exit code %d (%.30s) %.240s",
                                   pod->name, pod->exit_code, pod->reason, last_line(pod->message));
                return "GroupFailed";
        }
        if (pod->phase == JOB_POD_SUCCEEDED && record->state.phase != JOB_RUNNING) {
                (void) text_format(message, 400, "pod %.100s has ended, and the job has not", pod->name);
                return "GroupEnded";
        }
        return NULL;
}

static enum job_group_state state_of(const struct job_pod *pod)
{
        if (pod != NULL && pod->phase == JOB_POD_SUCCEEDED)
                return JOB_GROUP_SUCCEEDED;
        return pod != NULL && pod->started ? JOB_GROUP_RUNNING : JOB_GROUP_WAITING;
}

static void judge_group(struct record *record, size_t index, const struct job_pod *pod, struct fault *fault)
{
        struct job_group *group = &record->state.groups[index];
        const char *reason;
        char message[400];

        if (is_leaving(pod)) {
                if (record->job.preemptible && !record->yielding) {
                        record->yielding = true;
                        record->restarts_before = record->state.restarts;
                }
                return;
        }
        reason = trouble_of(record, group, pod, message);
        if (reason != NULL) {
                fault->evicted = record->yielding && (pod == NULL || job_pod_has_ended(pod));
                blame(fault, fault->evicted ? "Evicted" : reason, "%s", message);
                fault->lost[index] = true;
                return;
        }
        record->dirty = record->dirty || state_of(pod) != group->state;
        group->state = state_of(pod);
}

static void judge_groups(struct record *record, struct fault *fault)
{
        for (size_t i = 0; i < record->state.group_count; i++) {
                char name[JOB_POD_NAME_BYTES];

                job_group_pod_name(record->name, &record->state.groups[i], name);
                if (record->state.groups[i].node[0] != '\0')
                        judge_group(record, i, record_find_pod(record, name), fault);
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

static void succeed(struct record *record, const struct job_pod *manager)
{
        struct controller *c = record->controller;
        struct job_report report;

        if (job_report_parse(manager->message, &report) == 0)
                take_result(record, &report);
        record->state.progress.epoch = record->job.epochs;
        for (size_t i = 0; i < record->state.group_count; i++)
                record->state.groups[i].state = JOB_GROUP_SUCCEEDED;
        job_report_free(&report);
        job_state_set(&record->state, JOB_SUCCEEDED, controller_now(c), "Completed", "every rank ended well");
        record->dirty = true;
        c->metrics.ended[JOB_SUCCEEDED]++;
        write_event(record, false, "Succeeded", "every rank ended well");
        controller_want_plan(c);
}

/* It tells how the job ended; if it could not, the next world has another manager. */
static void blame_manager(struct record *record, const struct job_pod *pod, struct fault *fault)
{
        struct job_report report;

        if (job_report_parse(pod->message, &report) == 0)
                take_result(record, &report);
        fault->reason[0] = '\0'; /* what the manager says comes before what is seen of its groups */
        if (strcmp(report.state, "Failed") == 0) {
                fault->final = true;
                blame(fault, report.reason[0] != '\0' ? report.reason : "Failed", "%.390s",
                      report.message[0] != '\0' ? report.message : "its log says why");
        } else {
                fault->final = verdict_is_final(pod->exit_code);
                fault->world = !fault->final;
                blame(fault, fault->final ? "RankFailed" : "ManagerFailed",
                      "the manager's pod %.70s ended with exit code %d (%.30s) %.220s", pod->name,
                      pod->exit_code, pod->reason, last_line(pod->message));
        }
        job_report_free(&report);
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
                                   "pod %.80s has not started yet; if its events say that Secret '%.100s' is "
                                   "not found, make it with tls.crt, tls.key and ca.crt "
                                   "(spec.tls.secretName)",
                                   late->name, record->job.tls.secret);
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

static void watch_manager(struct record *record, struct fault *fault)
{
        struct job_state *state = &record->state;
        const struct job_pod *pod;
        char name[JOB_POD_NAME_BYTES];

        job_manager_pod_name(record->name, state->world, name);
        pod = record_find_pod(record, name);
        if (pod == NULL || pod->asked) {
                if (pod == NULL && state->address[0] != '\0') {
                        fault->world = true;
                        blame(fault, "ManagerGone", "the manager's pod %s is gone", name);
                }
                return;
        }
        if (pod->restart_max >= 0) {
                uint64_t max = job_restart_max(&record->job), left = (uint64_t) pod->restart_max;

                record->base_restarts = max > left ? max - left : 0;
        }
        if (pod->phase == JOB_POD_SUCCEEDED) {
                succeed(record, pod);
        } else if (!job_pod_has_ended(pod) && pod->node[0] != '\0' && watch_node_lost(record, pod->node)) {
                fault->world = true;
                blame(fault, "NodeLost", "node %s of the manager is lost", pod->node);
        } else if (pod->phase == JOB_POD_FAILED) {
                blame_manager(record, pod, fault);
        } else if (pod->started && pod->ip[0] != '\0' && state->address[0] == '\0') {
                (void) text_format(state->address, sizeof(state->address),
                                   strchr(pod->ip, ':') != NULL ? "[%s]:%d" : "%s:%d", pod->ip,
                                   JOB_MANAGER_PORT);
                record->dirty = true;
        }
        if (pod->started && state->phase != JOB_RUNNING && !job_phase_ended(state->phase) &&
            fault->reason[0] == '\0' && all_run(record)) {
                job_state_set(state, JOB_RUNNING, controller_now(record->controller), "Running",
                              "%u ranks in world %llu", job_state_world_size(state),
                              (unsigned long long) state->world);
                write_event(record, false, state->world == 0 ? "Running" : "Resumed",
                            "%u ranks in world %llu", job_state_world_size(state),
                            (unsigned long long) state->world);
                record->dirty = true;
        }
}

/* Its chips were taken back: everything is given up, and the job waits for chips like a new one. */
static void give_way(struct record *record, const struct fault *fault)
{
        struct job_state *state = &record->state;

        job_state_clear_plan(state);
        state->restarts = record->restarts_before; /* the manager took the end of its ranks for a fault */
        state->world++;
        state->address[0] = state->last_event[0] = '\0';
        job_state_set(state, JOB_PENDING, controller_now(record->controller), "Evicted",
                      "%s; the job goes on from its last checkpoint when there are chips", fault->message);
}

/* Lost groups get another place (plan_queue_run() finds it); the manager holds the job together meanwhile,
 * and starts the next world when they have joined. Without a manager there is a new one, too. */
static void start_anew(struct record *record, const struct fault *fault)
{
        struct job_state *state = &record->state;
        struct controller *c = record->controller;

        if (fault->world || state->phase == JOB_RUNNING) {
                state->restarts++;
                c->metrics.restarts++;
        }
        if (fault->world) {
                state->world++;
                state->address[0] = state->last_event[0] = '\0';
                record->base_restarts = state->restarts;
                record->base_reshards = state->reshards;
                for (size_t i = 0; i < state->rank_count; i++)
                        state->ranks[i].before = ++state->ranks[i].restarts;
        }
        for (size_t i = 0; i < state->group_count; i++) {
                struct job_group *group = &state->groups[i];

                group->restarts++;
                if (!fault->lost[i])
                        continue;
                group->node[0] = '\0';
                group->incarnation++;
                group->state = JOB_GROUP_LOST;
        }
        job_state_set(state, JOB_RESTARTING, controller_now(c), fault->reason,
                      "%s; restart %llu of %llu, from %s", fault->message,
                      (unsigned long long) state->restarts,
                      (unsigned long long) job_restart_max(&record->job),
                      record->job.checkpoint.given ? "the last valid checkpoint" : "the beginning");
}

static void repair(struct record *record, const struct fault *fault)
{
        struct controller *c = record->controller;
        uint64_t max = job_restart_max(&record->job);
        bool runs = fault->world || record->state.phase == JOB_RUNNING;

        c->metrics.faults++;
        write_event(record, true, fault->reason, "%s", fault->message);
        record->dirty = true;
        controller_want_plan(c);
        if (fault->evicted) {
                record->yielding = false;
                give_way(record, fault);
        } else if (fault->final || (runs && record->state.restarts >= max)) {
                job_state_set(&record->state, JOB_FAILED, controller_now(c), fault->reason, "%s%s",
                              fault->message, fault->final || max == 0 ? "" : "; no restart is left");
                c->metrics.ended[JOB_FAILED]++;
        } else {
                start_anew(record, fault);
        }
}

void watch_job(struct record *record)
{
        struct fault fault = { .reason = "" };

        judge_groups(record, &fault);
        watch_manager(record, &fault);
        if (job_phase_ended(record->state.phase))
                return;
        if (fault.reason[0] != '\0')
                repair(record, &fault);
        else
                note_waiting(record);
}
