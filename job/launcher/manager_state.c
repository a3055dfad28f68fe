/* What the job's people are told: events, the state, the result. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "job/launcher/manager.h"
#include "job/plan/event_json.h"

#define RESULT_MAX_BYTES 4096 /* of a container's termination message */

static const char *const state_names[] = {
        [MANAGER_WAITING] = "Waiting",       [MANAGER_STARTING] = "Starting",   [MANAGER_RUNNING] = "Running",
        [MANAGER_RESTARTING] = "Restarting", [MANAGER_SUCCEEDED] = "Succeeded", [MANAGER_FAILED] = "Failed",
        [MANAGER_CANCELLED] = "Cancelled",
};

void manager_event(struct manager *manager, const char *reason, const char *fmt, ...)
{
        char message[512];
        va_list values;

        va_start(values, fmt);
        (void) vsnprintf(message, sizeof(message), fmt, values); /* NOLINT: cut to its field */
        va_end(values);
        manager_say("%s: %s", reason, message);
        (void) event_list_add(manager->events, MEMBER_EVENTS, clock_realtime_usec(), reason, message);
}

static const char *group_state(const struct manager *manager, const struct member *member)
{
        if (member->join == NULL)
                return member->was_there ? "lost" : "absent";
        if (!member->plan->used)
                return member->plan->spare ? "spare" : "joined";
        return manager->state == MANAGER_RUNNING ? "running" : member->ready ? "ready" : "joined";
}

static json_t *groups_json(const struct manager *manager)
{
        json_t *groups = json_array();

        for (size_t i = 0; i < manager->plan->n_groups; i++) {
                const Subtask__Group *group = manager->plan->groups[i];
                bool used = group->used && manager->worlds > 0;

                (void) json_array_append_new(
                        groups,
                        json_pack("{s:s, s:s, s:s, s:I, s:s, s:I, s:I, s:[I,I]}", "name", group->name,
                                  "state", group_state(manager, &manager->members[i]), "runtime",
                                  group->runtime, "chips", (json_int_t) group->chips, "address",
                                  group->address, "first_rank", (json_int_t) (used ? group->first_rank : 0),
                                  "batch", (json_int_t) (used ? group->batch : 0), "shard",
                                  (json_int_t) (used ? group->begin : 0),
                                  (json_int_t) (used ? group->end : 0)));
        }
        return groups;
}

static json_t *ranks_json(const struct manager *manager)
{
        json_t *ranks = json_array();

        for (size_t i = 0; i < manager->rank_count; i++) {
                const struct manager_rank *rank = &manager->ranks[i];

                (void) json_array_append_new(
                        ranks, json_pack("{s:I, s:s, s:I, s:I, s:I, s:f, s:f, s:I, s:o}", "rank",
                                         (json_int_t) i, "group", rank->member->plan->name, "batch",
                                         (json_int_t) rank->batch, "step", (json_int_t) rank->seen.step,
                                         "samples", (json_int_t) rank->seen.samples, "samples_per_s",
                                         rank->seen.samples_per_s, "busy_seconds", rank->seen.busy_seconds,
                                         "restarts", (json_int_t) rank->restarts, "exit_code",
                                         rank->ended ? json_integer(rank->exit_code) : json_null()));
        }
        return ranks;
}

/* By group: the SpeedTable is kept by program. */
static json_t *programs_json(const struct manager *manager)
{
        json_t *programs = json_object();

        for (size_t i = 0; i < manager->plan->n_groups; i++)
                if (manager->members[i].program_sha256[0] != '\0')
                        (void) json_object_set_new(programs, manager->plan->groups[i]->name,
                                                   json_string(manager->members[i].program_sha256));
        return programs;
}

static json_t *state_json(const struct manager *manager)
{
        uint64_t samples = 0, step = 0, epoch = 0, batch = 0, epoch_samples = manager->plan->samples;
        double loss = 0, seconds = (double) (manager_now_usec() - manager->world_began_usec) / 1e6;
        json_t *state;

        for (size_t i = 0; i < manager->rank_count; i++) {
                const struct manager_rank *rank = &manager->ranks[i];

                samples += rank->seen.samples;
                step = rank->seen.step > step ? rank->seen.step : step;
                epoch = rank->seen.epoch > epoch ? rank->seen.epoch : epoch;
                if (rank->seen.epoch_samples > 0)
                        epoch_samples = rank->seen.epoch_samples;
                loss += rank->seen.loss * (double) rank->batch;
                batch += rank->batch;
        }
        state = json_pack(
                "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:i}", "job",
                manager->plan->job, "state", state_names[manager->state], "reason", manager->reason,
                "message", manager->message, "world", (json_int_t) manager->plan->world, "restarts",
                (json_int_t) manager->plan->restarts, "reshards", (json_int_t) manager->reshards,
                "world_size", (json_int_t) manager->plan->world_size, "epoch", (json_int_t) epoch, "step",
                (json_int_t) step, "samples", (json_int_t) samples, "samples_per_s",
                manager->worlds > 0 && seconds > 0 ? (double) samples / seconds : 0.0, "loss",
                batch > 0 ? loss / (double) batch : 0.0, "seconds",
                (double) (manager_now_usec() - manager->began_usec) / 1e6, "exit_code", manager->exit_code);
        if (manager->has_accuracy)
                (void) json_object_set_new(state, "accuracy", json_real(manager->accuracy));
        if (epoch_samples > 0)
                (void) json_object_set_new(state, "epoch_samples", json_integer((json_int_t) epoch_samples));
        (void) json_object_set_new(state, "groups", groups_json(manager));
        (void) json_object_set_new(state, "ranks", ranks_json(manager));
        (void) json_object_set_new(state, "programs", programs_json(manager));
        (void) json_object_set(state, "events", manager->events);
        return state;
}

/* What does not fit is left out, the least wanted first. */
char *manager_state_text(const struct manager *manager, size_t max_bytes)
{
        static const char *const parts[] = { "programs", "events", "ranks", "groups", "message" };
        json_t *state = state_json(manager);
        char *text = NULL;

        for (size_t i = 0; state != NULL && i <= ARRAY_SIZE(parts); i++) {
                free(text);
                text = json_dumps(state, JSON_COMPACT | JSON_REAL_PRECISION(9));
                if (text == NULL || strlen(text) < max_bytes || i == ARRAY_SIZE(parts))
                        break;
                (void) json_object_del(state, parts[i]);
        }
        json_decref(state);
        return text;
}

void manager_write_status(const struct manager *manager)
{
        CLEANUP(free_p) char *text = NULL;
        char next[PATH_MAX];
        FILE *f;

        if (manager->options->status == NULL ||
            !text_format(next, sizeof(next), "%s.next", manager->options->status))
                return;
        text = manager_state_text(manager, (size_t) 64 << 20);
        f = text == NULL ? NULL : fopen(next, "we");
        if (f != NULL && fputs(text, f) >= 0 && fputc('\n', f) == '\n' && fclose(f) == 0)
                (void) rename(next, manager->options->status);
        else if (f == NULL)
                manager_say("--status: '%s': %s", next, strerror(errno));
}

/* In place: a container's termination message is a mounted file that nothing may be renamed to. */
void manager_write_result(const struct manager *manager)
{
        CLEANUP(free_p) char *text = NULL;
        CLEANUP(close_p) int fd = -1;

        if (manager->options->result == NULL)
                return;
        text = manager_state_text(manager, RESULT_MAX_BYTES);
        fd = open(manager->options->result, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (text == NULL || fd < 0 || write(fd, text, strlen(text)) != (ssize_t) strlen(text))
                manager_say("--result: '%s': %s", manager->options->result, strerror(errno));
}
