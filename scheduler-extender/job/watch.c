/* The groups and the manager of a planned job as they are now: its phase, its faults, and what is done about
 * them: the world starts anew in place, what lost its chips gets others, or the job ends. */
#include <jansson.h>
#include <string.h>

#include "core/exit_code.h"
#include "core/text.h"
#include "scheduler-extender/job/record.h"

/* What is wrong with a job, all of it that was seen at one look. */
struct fault {
        char reason[JOB_REASON_BYTES], message[400];
        bool final;   /* would happen again: the program refuses its options, is not there ... */
        bool evicted; /* its chips were taken back: it waits for others, and that is no fault of its own */
        bool counts;  /* uses up one of spec.restart.max */
        bool lost[JOB_GROUPS_MAX]; /* groups that need other chips, or a new pod */
};

static void blame(struct fault *fault, const char *reason, bool counts, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
static void blame(struct fault *fault, const char *reason, bool counts, const char *fmt, ...)
{
        va_list values;

        fault->counts = fault->counts || counts;
        if (fault->reason[0] != '\0')
                return; /* the first one speaks for all */
        (void) text_copy(fault->reason, sizeof(fault->reason), reason);
        va_start(values, fmt);
        (void) vsnprintf(fault->message, sizeof(fault->message), fmt, values); /* NOLINT: cut to its field */
        va_end(values);
}

/* --- groups
 * ----------------------------------------------------------------------------------------------------- */

static bool node_is_lost(const struct job_record *record, const struct job_group *group)
{
        struct cluster *cluster = record->controller->options.cluster;
        const struct ledger_node *node =
                ledger_find_node(cluster_ledger(cluster), group->node, strlen(group->node));
        const struct question question = { .rules = cluster_rules(cluster),
                                           .now_usec = controller_now(record->controller) };

        return node == NULL || !ledger_node_known(node) ||
               rules_too_old(&question, ledger_seen_usec(cluster_ledger(cluster), node));
}

static void judge_group(struct job_record *record, size_t index, const struct job_pod *pod,
                        struct fault *fault)
{
        struct job_group *group = &record->state.groups[index];
        bool ran = group->state == JOB_GROUP_RUNNING;
        enum job_group_state now = JOB_GROUP_WAITING;

        if (node_is_lost(record, group)) {
                blame(fault, "NodeLost", ran, "node %s of %s is lost", group->node, group->name);
                fault->lost[index] = true;
                now = JOB_GROUP_LOST;
        } else if (pod == NULL && ran) {
                blame(fault, "PodGone", true, "the pod of %s is gone", group->name);
                fault->lost[index] = true;
        } else if (pod != NULL && pod->deleting && !pod->delete_asked) {
                fault->evicted = fault->evicted || record->job.preemptible;
                blame(fault, record->job.preemptible ? "Evicted" : "PodDeleted", ran,
                      "pod %s is being deleted from outside", pod->name);
                fault->lost[index] = true;
        } else if (pod != NULL && pod->phase == POD_FAILED) {
                blame(fault, "GroupFailed", true, "pod %s ended with exit code %d (%.60s) %.200s", pod->name,
                      pod->exit_code, pod->reason, pod->message);
                fault->lost[index] = true;
                now = JOB_GROUP_FAILED;
        } else if (pod != NULL && pod->sick) {
                blame(fault, "DeviceUnhealthy", true, "a chip of %s on %s cannot be used any more",
                      group->name, group->node);
                fault->lost[index] = true;
        } else if (pod != NULL && pod->phase == POD_SUCCEEDED) {
                now = JOB_GROUP_SUCCEEDED;
        } else if (pod != NULL && pod->started) {
                now = JOB_GROUP_RUNNING;
        }
        if (now != group->state)
                record->dirty = true;
        group->state = now;
}

static void judge_groups(struct job_record *record, struct fault *fault)
{
        for (size_t i = 0; i < record->state.group_count; i++) {
                char name[JOB_POD_NAME_BYTES];

                job_group_pod_name(record->name, &record->state.groups[i], name);
                if (record->state.groups[i].node[0] != '\0')
                        judge_group(record, i, record_find_pod(record, name), fault);
        }
}

/* --- the manager
 * ------------------------------------------------------------------------------------------------ */

/* The manager's last words: {"reason", "message", "exit_code", "group", "rank", "samples", "loss", ...}. */
static json_t *last_words(const struct job_pod *pod)
{
        return json_loads(pod->message, JSON_REJECT_DUPLICATES, NULL);
}

static void take_result(struct job_record *record, const json_t *result)
{
        struct job_progress *progress = &record->state.progress;
        const json_t *loss = json_object_get(result, "loss"), *accuracy = json_object_get(result, "accuracy");
        json_int_t samples = json_integer_value(json_object_get(result, "samples"));

        if (!json_is_object(result))
                return;
        progress->time_usec = controller_now(record->controller);
        if (samples > 0)
                progress->samples = progress->samples_total = (uint64_t) samples;
        if (json_is_number(json_object_get(result, "samples_per_s")))
                progress->samples_per_s = json_number_value(json_object_get(result, "samples_per_s"));
        if (json_is_number(loss)) {
                progress->has_loss = true;
                progress->loss = json_number_value(loss);
        }
        if (json_is_number(accuracy)) {
                progress->has_accuracy = true;
                progress->accuracy = json_number_value(accuracy);
        }
        progress->epoch = record->job.epochs;
        progress->seconds_left = 0;
}

static void succeed(struct job_record *record, const struct job_pod *manager)
{
        struct controller *c = record->controller;
        json_t *result = last_words(manager);

        take_result(record, result);
        json_decref(result);
        job_state_set(&record->state, JOB_SUCCEEDED, controller_now(c), "Completed", "every rank ended well");
        record->dirty = true;
        c->metrics.ended[JOB_SUCCEEDED]++;
        record_event(record, false, "Succeeded", "every rank ended well");
        controller_want_plan(c);
}

static bool is_final(int exit_code)
{
        return exit_code == EXIT_USAGE || exit_code == EXIT_NOT_FOUND || exit_code == EXIT_NO_PERMISSION ||
               exit_code == 126 || exit_code == 127;
}

static void blame_manager(struct job_record *record, const struct job_pod *pod, struct fault *fault)
{
        json_t *result = last_words(pod);
        const char *reason = json_string_value(json_object_get(result, "reason"));
        const char *message = json_string_value(json_object_get(result, "message"));
        const char *group = json_string_value(json_object_get(result, "group"));
        int exit_code = pod->exit_code;

        if (json_is_integer(json_object_get(result, "exit_code")))
                exit_code = (int) json_integer_value(json_object_get(result, "exit_code"));
        for (size_t i = 0; group != NULL && i < record->state.group_count; i++)
                if (strcmp(record->state.groups[i].name, group) == 0)
                        record->state.groups[i].exit_code = exit_code & 255;
        if (fault->reason[0] == '\0')
                fault->final = is_final(exit_code);
        blame(fault,
              reason != NULL && reason[0] != '\0' ? reason
              : exit_code > 128                   ? "RankKilled"
                                                  : "RankFailed",
              true, "%.300s",
              message != NULL && message[0] != '\0' ? message
              : pod->message[0] != '\0'             ? pod->message
                                                    : "the manager ended; its log says why");
        json_decref(result);
}

/* What a person should know of a pod that does not start. */
static void note_waiting(struct job_record *record)
{
        static const char *const bad[] = {
                "ErrImagePull",      "ImagePullBackOff",           "InvalidImageName",
                "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError",
                "RunContainerError"
        };

        for (const struct job_pod *pod = record->pods; pod != NULL; pod = pod->next)
                for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                        if (!pod->started && strcmp(pod->reason, bad[i]) == 0 &&
                            strcmp(record->state.reason, bad[i]) != 0) {
                                job_state_set(&record->state, record->state.phase,
                                              controller_now(record->controller), bad[i], "pod %s: %.300s",
                                              pod->name, pod->message);
                                record_event(record, true, bad[i], "pod %s: %.300s", pod->name, pod->message);
                                record->dirty = true;
                        }
}

static bool all_run(const struct job_record *record)
{
        for (size_t i = 0; i < record->state.group_count; i++)
                if (record->state.groups[i].state != JOB_GROUP_RUNNING)
                        return false;
        return true;
}

static void watch_manager(struct job_record *record, struct fault *fault)
{
        struct job_state *state = &record->state;
        const struct job_pod *pod;
        char name[JOB_POD_NAME_BYTES];

        job_manager_pod_name(record->name, state->world, name);
        pod = record_find_pod(record, name);
        if (pod == NULL || pod->asked) {
                if (pod == NULL && state->address[0] != '\0')
                        blame(fault, "ManagerGone", true, "the manager's pod %s is gone", name);
                return;
        }
        if (pod->phase == POD_SUCCEEDED) {
                succeed(record, pod);
        } else if (pod->phase == POD_FAILED) {
                blame_manager(record, pod, fault);
        } else if (pod->deleting && !pod->delete_asked) {
                blame(fault, "ManagerGone", true, "the manager's pod %s is being deleted from outside", name);
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
                record_event(record, false, state->world == 0 ? "Running" : "Resumed",
                             "%u ranks in world %llu", job_state_world_size(state),
                             (unsigned long long) state->world);
                record->dirty = true;
        }
}

/* --- repair
 * ----------------------------------------------------------------------------------------------------- */

/* Its chips were taken back: everything is given up, and the job waits for chips like a new one. */
static void give_way(struct job_record *record, const struct fault *fault)
{
        struct job_state *state = &record->state;

        job_state_clear_plan(state);
        state->world++;
        state->address[0] = '\0';
        job_state_set(state, JOB_PENDING, controller_now(record->controller), "Evicted",
                      "%s; the job goes on from its last checkpoint when there are chips", fault->message);
}

static void start_anew(struct job_record *record, const struct fault *fault)
{
        struct job_state *state = &record->state;
        struct controller *c = record->controller;

        if (fault->counts) {
                state->restarts++;
                c->metrics.restarts++;
        }
        state->world++;
        state->address[0] = '\0';
        for (size_t i = 0; i < state->group_count; i++) {
                struct job_group *group = &state->groups[i];

                group->restarts++;
                if (!fault->lost[i])
                        continue;
                group->node[0] = '\0'; /* plan_waiting() finds another place */
                group->incarnation++;
                group->state = JOB_GROUP_LOST;
        }
        job_state_set(state, JOB_RESTARTING, controller_now(c), fault->reason,
                      "%s; restart %llu of %llu, from %s", fault->message,
                      (unsigned long long) state->restarts,
                      (unsigned long long) job_restart_max(&record->job),
                      record->job.checkpoint.given ? "the last valid checkpoint" : "the beginning");
}

static void repair(struct job_record *record, const struct fault *fault)
{
        struct controller *c = record->controller;
        uint64_t max = job_restart_max(&record->job);

        c->metrics.faults++;
        record_event(record, true, fault->reason, "%s", fault->message);
        record->dirty = true;
        controller_want_plan(c);
        if (fault->evicted) {
                give_way(record, fault);
                return;
        }
        if (fault->final || (fault->counts && record->state.restarts >= max)) {
                job_state_set(&record->state, JOB_FAILED, controller_now(c), fault->reason, "%s%s",
                              fault->message, fault->final || max == 0 ? "" : "; no restart is left");
                c->metrics.ended[JOB_FAILED]++;
                return;
        }
        start_anew(record, fault);
}

void watch_job(struct job_record *record)
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
