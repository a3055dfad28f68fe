/* How far training is: the manager of a running world is asked every few seconds, over its gRPC port, with a
 * token that lets one look and nothing else. Where the pods' network does not reach here, the status shows
 * phases alone. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/text.h"
#include "io/grpc/grpc_client.h"
#include "io/tls/tls.h"
#include "job/controller/job_speeds.h"
#include "job/controller/record.h"
#include "job/launcher/rendezvous_pb.h"
#include "store/speed_store.h"

#define ASK_USEC       2000000u
#define YOUNG_USEC     1000000u /* the same of a job that has not said much yet */
#define YOUNG          30
#define ANSWER_USEC    5000000u
#define LEARN_USEC     30000000u /* how often the SpeedTable is refined by a job */
#define LEARN_ALL_USEC 5000000u  /* and by all jobs together */
#define LEARN_MAX      256       /* ranks of a job that are learnt from */
#define WRITE_USEC     5000000u  /* figures that grow all the time are written this often */

void progress_close(struct job_record *record)
{
        grpc_client_free(record->asking.client);
        tls_free(record->asking.tls);
        record->asking = (struct job_asking){ 0 };
}

/* --- what it says
 * ------------------------------------------------------------------------------------------------ */

static uint64_t number_of(const json_t *state, const char *name)
{
        json_int_t number = json_integer_value(json_object_get(state, name));

        return number > 0 ? (uint64_t) number : 0;
}

/* Events of this world's manager that are newer than the last one that was passed on, by whichever
 * controller. Return: were there any? */
bool progress_pass_events(struct job_record *record, const json_t *answer)
{
        const json_t *events = json_object_get(answer, "events");
        char last[JOB_TIME_BYTES];
        bool any = false;

        (void) text_copy(last, sizeof(last), record->state.last_event);
        for (size_t i = 0; i < json_array_size(events); i++) {
                const json_t *event = json_array_get(events, i);
                const char *time = json_string_value(json_object_get(event, "time"));
                const char *reason = json_string_value(json_object_get(event, "reason"));
                const char *message = json_string_value(json_object_get(event, "message"));

                if (time == NULL || reason == NULL || message == NULL || strlen(reason) >= 48 ||
                    strcmp(time, last) <= 0) /* two of one moment are both new */
                        continue;
                (void) text_copy(record->state.last_event, sizeof(record->state.last_event), time);
                any = true;
                if (strcmp(reason, "Joined") != 0)
                        record_event(record,
                                     strcmp(reason, "Started") != 0 && strcmp(reason, "Resumed") != 0 &&
                                             strcmp(reason, "Completed") != 0,
                                     reason, "%.500s", message);
        }
        return any;
}

static bool take_counts(struct job_record *record, const json_t *answer)
{
        struct job_state *state = &record->state;
        uint64_t restarts = record->base_restarts + number_of(answer, "restarts");
        uint64_t reshards = record->base_reshards + number_of(answer, "reshards");
        bool changed = restarts > state->restarts || reshards > state->reshards;

        if (restarts > state->restarts) {
                record->controller->metrics.restarts += restarts - state->restarts;
                record->controller->metrics.faults += restarts - state->restarts;
                state->restarts = restarts;
        }
        if (reshards > state->reshards)
                state->reshards = reshards;
        return changed;
}

static uint64_t samples_total(const struct job_record *record)
{
        return record->state.samples < UINT64_MAX / 1000001 ? record->state.samples * record->job.epochs : 0;
}

/* Ranks count what they did in their own world; steps go on from the checkpoint. */
void progress_count_samples(struct job_record *record)
{
        struct job_progress *progress = &record->state.progress;
        uint64_t by_steps = progress->step < UINT32_MAX ? progress->step * record->job.global_batch : 0;

        progress->samples_total = samples_total(record);
        if (record->state.restarts == 0 && record->state.reshards == 0 && record->state.world == 0)
                return;
        if (progress->samples_total > 0 && by_steps > progress->samples_total)
                by_steps = progress->samples_total;
        if (by_steps > progress->samples)
                progress->samples = by_steps;
}

static void take_figures(struct job_record *record, const json_t *answer)
{
        struct job_progress *progress = &record->state.progress;
        const json_t *loss = json_object_get(answer, "loss"), *accuracy = json_object_get(answer, "accuracy");

        progress->time_usec = controller_now(record->controller);
        progress->epoch = number_of(answer, "epoch");
        progress->step = number_of(answer, "step");
        progress->samples = number_of(answer, "samples");
        progress->samples_per_s = json_number_value(json_object_get(answer, "samples_per_s"));
        if (json_number_value(loss) > 0 && isfinite(json_number_value(loss))) {
                progress->has_loss = true;
                progress->loss = json_number_value(loss);
        }
        if (json_is_number(accuracy)) {
                progress->has_accuracy = true;
                progress->accuracy = json_number_value(accuracy);
        }
        progress_count_samples(record);
        progress->seconds_left =
                progress->samples_total > progress->samples && progress->samples_per_s > 0 &&
                                isfinite(progress->samples_per_s)
                        ? (double) (progress->samples_total - progress->samples) / progress->samples_per_s
                        : 0;
}

/* --- the ranks
 * ------------------------------------------------------------------------------------------------------- */

static struct job_group *find_group(const struct job_state *state, const char *name)
{
        for (size_t i = 0; i < state->group_count; i++)
                if (strcmp(state->groups[i].name, name) == 0)
                        return &state->groups[i];
        return NULL;
}

/* The manager counts from its own start; what was before is ours to add. */
static void take_rank(struct job_record *record, const json_t *answer, struct job_group *group,
                      uint32_t index)
{
        uint64_t told = number_of(answer, "restarts"), samples = number_of(answer, "samples");
        const json_t *exit_code = json_object_get(answer, "exit_code");
        double speed = json_number_value(json_object_get(answer, "samples_per_s")),
               busy = json_number_value(json_object_get(answer, "busy_seconds"));
        struct job_rank *rank = job_state_make_rank(&record->state, group->name, index);

        if (rank == NULL)
                return;
        if (rank->before + told > rank->restarts)
                rank->restarts = rank->before + told;
        rank->samples = samples;
        rank->busy_sec = busy > 0 && isfinite(busy)     ? busy
                         : speed > 0 && isfinite(speed) ? (double) samples / speed
                                                        : 0;
        rank->exit_code = json_is_integer(exit_code) ? (int) (json_integer_value(exit_code) & 255) : -1;
        if (rank->exit_code > 0 && group->exit_code < 0)
                group->exit_code = rank->exit_code;
}

/* Ranks of a group follow each other; their numbers in the manager's world need not be the plan's. */
void progress_take_ranks(struct job_record *record, const json_t *answer)
{
        json_int_t epoch_samples = json_integer_value(json_object_get(answer, "epoch_samples"));
        const char *last = "";
        uint32_t index = 0;
        const json_t *entry;
        size_t i;

        if (epoch_samples > 0 && epoch_samples < INT64_MAX / 2)
                record->state.samples = (uint64_t) epoch_samples;
        json_array_foreach(json_object_get(answer, "ranks"), i, entry)
        {
                const char *name = json_string_value(json_object_get(entry, "group"));
                struct job_group *group = name == NULL ? NULL : find_group(&record->state, name);

                if (group == NULL)
                        continue;
                index = strcmp(name, last) == 0 ? index + 1 : 0;
                last = name;
                if (index < group->ranks)
                        take_rank(record, entry, group, index);
        }
}

/* A moment for the report: what each rank computed since the last one, by its own word. */
void progress_note_moment(struct job_record *record)
{
        struct job_state *state = &record->state;
        struct job_asking *asking = &record->asking;
        uint64_t now = controller_monotonic(record->controller);
        double elapsed = asking->noted_usec > 0 ? (double) (now - asking->noted_usec) / 1e6 : 0;
        struct job_point point = {
                .seconds = (double) (controller_now(record->controller) - state->start_usec) / 1e6,
                .world = state->world + state->restarts + state->reshards,
                .step = state->progress.step,
                .samples = state->progress.samples,
                .loss = state->progress.has_loss ? state->progress.loss : NAN
        };

        if (state->start_usec == 0 || state->progress.time_usec == 0)
                return;
        for (size_t i = 0; i < state->group_count; i++)
                for (uint32_t n = 0; n < state->groups[i].ranks && point.busy_count < JOB_POINT_RANKS; n++) {
                        const struct job_rank *rank = job_state_rank(state, state->groups[i].name, n);
                        double busy = rank == NULL ? 0 : rank->busy_sec,
                               since = busy - asking->busy_sec[point.busy_count];

                        asking->busy_sec[point.busy_count] = busy;
                        if (since < 0) /* another process */
                                since = busy;
                        point.busy[point.busy_count++] = (uint8_t) fmin(
                                100, ceil(100 * since / fmax(elapsed, 1e-3))); /* 0 = not at all */
                }
        if (elapsed <= 0)
                point.busy_count = 0; /* nothing to compare with */
        asking->noted_usec = now;
        job_state_add_point(state, &point);
}

/* A table that cannot be written costs no job anything; it is said once, until it works again. */
static void on_learnt(void *userdata, int result, const char *sentence)
{
        struct controller *c = userdata;
        bool unreadable = result == -EBADMSG || result == -EINVAL;

        if (result == -ECANCELED) /* the end of this process says nothing of the table */
                return;
        if (result < 0 && !c->learning_failed)
                controller_log(c, LOG_WARNING, "speed-table",
                               "error=\"%s\" remedy=\"look at the SpeedTable '" SPEED_TABLE_NAME
                               "'%s; jobs go on without\"",
                               sentence == NULL ? "it cannot be written" : sentence,
                               unreadable ? ", or delete it: it is learnt anew" : "");
        c->learning_failed = result < 0;
}

/* Records answer in much the same order each time: without this the first ones alone would be learnt from.
 * One that is silent holds nobody back. */
static bool is_others_turn(const struct job_record *record, uint64_t now)
{
        const struct controller *c = record->controller;

        for (const struct name_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e)) {
                const struct job_asking *other = &((const struct job_record *) e)->asking;

                if (other->client != NULL && other->learnt_usec < record->asking.learnt_usec &&
                    other->heard_usec > 0 && now - other->heard_usec < 2 * ASK_USEC)
                        return true;
        }
        return false;
}

/* Its steps refine the SpeedTable, by which the next job is planned. One write for a job in half a minute,
 * and one of all jobs in some seconds: who comes in between is heard later. */
static void learn_speeds(struct job_record *record, const json_t *answer, uint64_t now)
{
        struct job_speed speeds[LEARN_MAX];
        struct speed_table_observation seen[LEARN_MAX];
        struct controller *c = record->controller;
        size_t count;

        if (now - record->asking.learnt_usec < LEARN_USEC || now - c->learnt_usec < LEARN_ALL_USEC ||
            !controller_leads(c) || is_others_turn(record, now))
                return;
        record->asking.learnt_usec = now;
        count = job_speeds_read(&record->job, &record->state, answer, speeds, LEARN_MAX);
        for (size_t i = 0; i < count; i++)
                seen[i] = (struct speed_table_observation){ .program = speeds[i].program,
                                                            .model = record->job.model,
                                                            .device = speeds[i].device,
                                                            .batch = speeds[i].batch,
                                                            .step_ms = speeds[i].step_ms,
                                                            .weight = speeds[i].weight };
        if (count == 0)
                return;
        c->learnt_usec = now;
        speed_store_refine(cluster_store(c->options.cluster), seen, count, on_learnt, c);
}

static void take_answer(struct job_record *record, const json_t *answer)
{
        uint64_t now = controller_monotonic(record->controller);
        bool changed = take_counts(record, answer);

        record->asking.heard_usec = now;
        changed = progress_pass_events(record, answer) || changed;
        progress_take_ranks(record, answer);
        learn_speeds(record, answer, now);
        if (number_of(answer, "samples") > 0 || number_of(answer, "step") > 0)
                take_figures(record, answer);
        progress_note_moment(record);
        if (!changed && now - record->asking.written_usec < WRITE_USEC)
                return;
        record->asking.written_usec = now;
        record->dirty = true;
        controller_queue(record);
}

/* --- the call
 * ---------------------------------------------------------------------------------------------------- */

static void on_message(void *userdata, const uint8_t *message, size_t size_bytes)
{
        struct job_record *record = userdata;
        struct err err = { 0 };
        char *text = NULL;
        json_t *answer;

        if (rendezvous_state_decode(message, size_bytes, &text, &err) < 0)
                return;
        answer = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(answer) && !job_phase_ended(record->state.phase) && !record->deleting)
                take_answer(record, answer);
        json_decref(answer);
        free(text);
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct job_record *record = userdata;

        (void) status;
        (void) sentence;
        record->asking.under_way = false;
}

static struct job_pod *running_manager(struct job_record *record)
{
        char name[JOB_POD_NAME_BYTES];
        struct job_pod *pod;

        job_manager_pod_name(record->name, record->state.world, name);
        pod = record_find_pod(record, name);
        return pod != NULL && pod->started && pod->phase == POD_RUNNING && pod->status_token[0] != '\0'
                       ? pod
                       : NULL;
}

static struct tls *open_tls(const struct job_record *record)
{
        json_t *keys = record->keys == NULL ? NULL : json_loads(record->keys, JSON_REJECT_DUPLICATES, NULL);
        const char *ca = json_string_value(json_object_get(keys, "ca")),
                   *certificate = json_string_value(json_object_get(keys, "certificate")),
                   *key = json_string_value(json_object_get(keys, "key"));
        const struct tls_options options = {
                .identity = { { certificate, "the certificate" }, { key, "the key" }, { ca, "the CA" } },
                .name = job_tls_name(&record->job),
                .peer = "manager"
        };
        struct tls *tls = NULL;

        if (ca == NULL || certificate == NULL || key == NULL || tls_new(&options, &tls, NULL) < 0)
                tls = NULL;
        json_decref(keys);
        return tls;
}

static bool open_client(struct job_record *record)
{
        struct grpc_client_options options = { .address = record->state.address, .wrap = tls_wrap };

        if (record->asking.client != NULL && strcmp(record->asking.address, record->state.address) == 0)
                return true;
        progress_close(record);
        (void) text_copy(record->asking.address, sizeof(record->asking.address), record->state.address);
        options.wrap_userdata = record->asking.tls = open_tls(record);
        return record->asking.tls != NULL &&
               grpc_client_new(record->controller->loop, &options, &record->asking.client, NULL) == 0;
}

void progress_ask(struct job_record *record)
{
        const struct grpc_client_handlers handlers = { .on_message = on_message,
                                                       .on_done = on_done,
                                                       .userdata = record };
        struct rendezvous_ask ask = { .version = RENDEZVOUS_VERSION };
        const struct job_pod *manager = running_manager(record);
        uint64_t now = controller_monotonic(record->controller),
                 pause = record->state.point_count < YOUNG ? YOUNG_USEC - YOUNG_USEC / 10 : ASK_USEC;
        uint8_t *bytes;
        size_t size;

        if (manager == NULL || record->state.address[0] == '\0') {
                progress_close(record);
                return;
        }
        if (record->asking.under_way || now - record->asking.asked_usec < pause || !open_client(record))
                return;
        record->asking.asked_usec = now;
        (void) text_copy(ask.token, sizeof(ask.token), manager->status_token);
        bytes = rendezvous_ask_encode(&ask, &size);
        record->asking.under_way =
                bytes != NULL && grpc_client_call(record->asking.client, RENDEZVOUS_STATUS, bytes, size,
                                                  ANSWER_USEC, &handlers, NULL) == 0;
        free(bytes);
}
