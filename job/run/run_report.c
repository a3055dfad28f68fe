/* What a run says: its events, its end, its summary. */
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "job/plan/event_json.h"
#include "job/run/run.h"
#include "job/run/run_folder.h"
#include "job/run/run_split.h"
#include "job/spec/job_role.h"
#include "planner/shards/shards.h"

#define EVENTS_MAX 10000

/* For `remuda jobs`, while the job runs. */
static void keep_event(const struct run *run, const json_t *event)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        char path[RUN_PATH_BYTES];

        if (run->lock < 0 || !run_folder_path(run, path, "events.jsonl"))
                return;
        f = fopen(path, "ae");
        if (f != NULL && json_dumpf(event, f, JSON_COMPACT) == 0)
                (void) fputc('\n', f);
}

void run_events_keep(const struct run *run)
{
        const json_t *event;
        size_t i;

        json_array_foreach(run->events, i, event) keep_event(run, event);
}

void run_event(struct run *run, const char *reason, const char *fmt, ...)
{
        const json_t *event;
        char message[512];
        va_list values;

        va_start(values, fmt);
        (void) vsnprintf(message, sizeof(message), fmt, values); /* cut to its field */
        va_end(values);
        (void) fprintf(stderr, "%s: %s: %s\n", run->job.name, reason, message);
        event = event_json_add(run->events, EVENTS_MAX, clock_realtime_usec(), reason, message);
        if (event != NULL)
                keep_event(run, event);
}

void run_finish(struct run *run, const char *phase, const char *reason, const char *fmt, ...)
{
        va_list values;

        va_start(values, fmt);
        (void) vsnprintf(run->message, sizeof(run->message), fmt, values); /* cut to its field */
        va_end(values);
        run->phase = phase;
        (void) text_copy(run->reason, sizeof(run->reason), reason);
        run_event(run, reason, "%s", run->message);
}

static json_t *number_or_null(const json_t *value)
{
        return json_is_number(value) ? json_incref((json_t *) value) : json_null();
}

static double speed_of(const struct run_rank *rank)
{
        double batch = (double) rank->batch;

        return rank->batch == 0 ? 0 : batch * 1000 / shards_ms(&rank->speed, batch);
}

/* The program's own. One that was running when all were killed died of that; one that was never started has
 * none. */
static json_t *exit_code_of_rank(const struct run *run, size_t rank)
{
        if (rank < run->world.rank_count && run->world.ranks[rank].ended)
                return json_integer(run->world.ranks[rank].exit_code);
        return run->ranks[rank].pid > 0 ? json_integer(128 + SIGKILL) : json_null();
}

static json_t *ranks_json(const struct run *run)
{
        json_t *ranks = json_array();

        /* a job that ended before its batch was cut has none */
        for (size_t i = 0; run->planned && i < run->rank_count; i++) {
                const struct run_rank *rank = &run->ranks[i];
                json_t *entry = json_pack(
                        "{s:I, s:s, s:s, s:s, s:s, s:s, s:f, s:I, s:I, s:o, s:I, s:s}", "rank",
                        (json_int_t) i, "role", job_role_names[rank->server], "runtime", rank->runtime,
                        "device", rank->device, "program", rank->program == NULL ? "" : rank->program->path,
                        "program_sha256", rank->sha256, "weight", rank->weight, "samples",
                        (json_int_t) rank->used_samples, "restarts", (json_int_t) rank->restarts, "exit_code",
                        exit_code_of_rank(run, i), "batch", (json_int_t) rank->batch, "speed_source",
                        chip_speed_names[rank->speed_source]);

                run_split_add_layers(run, i, entry);
                (void) json_object_set_new(entry, "node", json_string(rank->node));
                (void) json_object_set_new(entry, "group", json_string(rank->group));
                (void) json_object_set_new(entry, "device_model", json_string(rank->device_model));
                if (chip_speed_precision_names[rank->precision][0] != '\0')
                        (void) json_object_set_new(entry, "precision",
                                                   json_string(chip_speed_precision_names[rank->precision]));
                if (rank->speed_source == CHIP_SPEED_MEASURED)
                        (void) json_object_set_new(entry, "speed_samples_per_s", json_real(speed_of(rank)));
                (void) json_array_append_new(ranks, entry);
        }
        return ranks;
}

static uint64_t epochs_done(const struct run *run)
{
        uint64_t done = UINT64_MAX;

        if (run->phase != NULL && strcmp(run->phase, "Succeeded") == 0)
                return run->job.epochs;
        for (size_t i = run->server_count; i < run->world.rank_count; i++)
                done = run->world.seen[i].epoch < done ? run->world.seen[i].epoch : done;
        return done == UINT64_MAX ? 0 : done;
}

json_t *run_summary(struct run *run)
{
        bool succeeded = run->phase != NULL && strcmp(run->phase, "Succeeded") == 0;
        json_t *result = succeeded ? run_folder_last_line(run, "rank-0.out", "loss") : NULL;
        double seconds = (double) (clock_monotonic_usec() - run->started_usec) / 1e6;
        uint64_t used = run->left_samples;
        json_t *summary;

        for (size_t i = 0; i < run->rank_count; i++)
                used += run->ranks[i].used_samples;
        summary = json_pack(
                "{s:s, s:s, s:s, s:s, s:f, s:I, s:I, s:o, s:o, s:I, s:f, s:f, s:o, s:O}", "job",
                run->job.name, "phase", run->phase == NULL ? "Failed" : run->phase, "reason", run->reason,
                "message", run->message, "seconds", seconds, "epochs", (json_int_t) epochs_done(run),
                "samples_used", (json_int_t) used, "accuracy",
                number_or_null(json_object_get(result, "accuracy")), "loss",
                number_or_null(json_object_get(result, "loss")), "restarts", (json_int_t) run->world.restarts,
                "samples_per_s", run->training_seconds > 0 ? (double) used / run->training_seconds : 0.0,
                "training_seconds", run->training_seconds, "ranks", ranks_json(run), "events", run->events);
        json_decref(result);
        if (summary != NULL && run->segment_count > 0) {
                json_t *segments = json_array();

                for (size_t i = 0; i < run->segment_count; i++)
                        (void) json_array_append_new(segments, json_integer((json_int_t) run->segments[i]));
                (void) json_object_set_new(summary, "segments", segments);
        }
        return summary;
}

const char *run_summary_phase(const json_t *summary)
{
        const char *phase = json_string_value(json_object_get(summary, "phase"));

        return phase == NULL ? "unknown" : phase;
}

static void print_table(const struct run *run, const json_t *summary)
{
        const json_t *accuracy = json_object_get(summary, "accuracy"),
                     *loss = json_object_get(summary, "loss");
        int width = (int) strlen("DEVICE");

        for (size_t i = 0; i < run->rank_count; i++)
                if ((int) strlen(run->ranks[i].device) > width)
                        width = (int) strlen(run->ranks[i].device);
        (void) printf("%s: %s after %.1f s (%s)\n", run->job.name, run->phase == NULL ? "Failed" : run->phase,
                      json_number_value(json_object_get(summary, "seconds")), run->message);
        if (json_is_number(accuracy))
                (void) printf("accuracy %.4f, loss %.4f, %.0f samples/s (mean while its ranks ran)\n",
                              json_number_value(accuracy), json_number_value(loss),
                              json_number_value(json_object_get(summary, "samples_per_s")));
        (void) printf("%-5s %-7s %-10s %-*s %8s %12s %8s %5s\n", "RANK", "ROLE", "RUNTIME", width, "DEVICE",
                      "WEIGHT", "SAMPLES", "RESTARTS", "EXIT");
        for (size_t i = 0; i < run->rank_count; i++) {
                const struct run_rank *rank = &run->ranks[i];
                json_t *exit_code = exit_code_of_rank(run, i);
                CLEANUP(free_p) char *code = json_dumps(exit_code, JSON_ENCODE_ANY);

                (void) printf("%-5zu %-7s %-10s %-*s %8.4f %12llu %8llu %5s\n", i,
                              job_role_names[rank->server], rank->runtime, width, rank->device, rank->weight,
                              (unsigned long long) rank->used_samples, (unsigned long long) rank->restarts,
                              json_is_integer(exit_code) && code != NULL ? code : "-");
                json_decref(exit_code);
        }
        (void) printf("logs and plan: %s\n", run->folder);
}

int run_print_summary(struct run *run, const json_t *summary)
{
        if (strcmp(run->options->output, "json") == 0) {
                if (json_dumpf(summary, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17)) < 0)
                        return -1;
                (void) fputc('\n', stdout);
        } else {
                print_table(run, summary);
        }
        return fflush(stdout) == 0 ? 0 : -1;
}
