/* How far training is: the manager of a running world is asked every few seconds, over its gRPC port, with a
 * token that lets one look and nothing else. Where the pods' network does not reach here, the status shows
 * phases alone. */
#include "job/controller/launchers/progress.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/text.h"
#include "io/grpc/grpc_client.h"
#include "io/tls/tls.h"
#include "job/controller/controller_internal.h"
#include "job/controller/job_keys.h"
#include "job/controller/job_speeds.h"
#include "job/controller/write.h"
#include "job/launcher/message.h"
#include "job/plan/progress/job_left.h"
#include "job/spec/job_arguments.h"
#include "job/world/staleness.h"
#include "store/speed_store.h"

#define ASK_USEC       UINT64_C(2000000)
#define YOUNG_USEC     1000000u /* the same of a job that has not said much yet */
#define YOUNG          30
#define ANSWER_USEC    5000000u
#define LEARN_USEC     30000000u /* how often the SpeedTable is refined by a job */
#define LEARN_ALL_USEC 5000000u  /* and by all jobs together */
#define LEARN_MAX      256       /* ranks of a job that are learnt from */
#define WRITE_USEC     5000000u  /* figures that grow all the time are written this often */

void progress_close(struct record *record)
{
        grpc_client_free(record->asking.client);
        tls_free(record->asking.tls);
        record->asking = (struct record_asking){ 0 };
}

/* Events of this world's manager that are newer than the last one that was passed on, by whichever
 * controller. Return: were there any? */
bool progress_pass_events(struct record *record, const struct job_report *report)
{
        char last[JOB_TIME_BYTES];
        bool any = false, slow;

        (void) text_copy(last, sizeof(last), record->state.last_event);
        for (size_t i = 0; i < report->event_count; i++) {
                const struct job_report_event *event = &report->events[i];

                if (event->time[0] == '\0' || event->reason[0] == '\0' ||
                    strcmp(event->time, last) <= 0) /* two of one moment are both new */
                        continue;
                (void) text_copy(record->state.last_event, sizeof(record->state.last_event), event->time);
                any = true;
                slow = strcmp(event->reason, "Straggler") == 0;
                record->stragglers += slow;
                record->controller->metrics.stragglers += slow;
                if (strcmp(event->reason, "Joined") != 0)
                        write_event(record,
                                    strcmp(event->reason, "Started") != 0 &&
                                            strcmp(event->reason, "Resumed") != 0 &&
                                            strcmp(event->reason, "SharesChanged") != 0 &&
                                            strcmp(event->reason, "RestartsAllowed") != 0 &&
                                            strcmp(event->reason, "Completed") != 0,
                                    event->reason, "%.500s", event->message);
        }
        return any;
}

/* Ranks of a group follow each other. */
static uint32_t index_after(const struct job_report *report, size_t i, uint32_t index)
{
        return i > 0 && strcmp(report->ranks[i].group, report->ranks[i - 1].group) == 0 ? index + 1 : 0;
}

/* New shares go by what the ranks were seen to do. */
static void take_speeds(struct job_state *state, const struct job_report *report)
{
        for (size_t i = 0; i < report->rank_count; i++)
                if (report->ranks[i].batch > 0 && !(report->ranks[i].samples_per_s > 0))
                        return;
        for (size_t i = 0; i < report->rank_count; i++) {
                struct job_group *group = job_state_group(state, report->ranks[i].group);

                if (group == NULL || report->ranks[i].batch == 0)
                        continue;
                if (index_after(report, i, 0) == 0)
                        group->samples_per_s = 0;
                group->samples_per_s += report->ranks[i].samples_per_s;
                group->source = CHIP_SPEED_MEASURED;
                group->precision[0] = '\0';
        }
}

/* Has this rank of a group another share than is known? Of more ranks than a status lists, the group alone is
 * looked at. */
static bool is_other_share(const struct job_state *state, const struct job_group *group, uint32_t index,
                           uint64_t batch)
{
        if (index >= group->ranks ||
            (state->rank_count == JOB_STATUS_RANKS_MAX && job_state_rank(state, group->name, index) == NULL))
                return false;
        return job_state_rank_batch(state, group, index) != batch;
}

static bool are_other_shares(const struct job_state *state, const struct job_report *report)
{
        uint64_t part = 0;
        uint32_t index = 0;

        for (size_t i = 0; i < report->rank_count; i++) {
                const struct job_group *group = job_state_group(state, report->ranks[i].group);
                bool last = i + 1 == report->rank_count || index_after(report, i + 1, 0) == 0;

                index = index_after(report, i, index);
                part = index == 0 ? report->ranks[i].batch : part + report->ranks[i].batch;
                if (group != NULL && (is_other_share(state, group, index, report->ranks[i].batch) ||
                                      (last && part != group->batch)))
                        return true;
        }
        return false;
}

static void take_batches(struct job_state *state, const struct job_report *report, uint64_t sum)
{
        uint32_t index = 0;

        for (size_t i = 0; i < state->group_count; i++)
                state->groups[i].batch = 0;
        for (size_t i = 0; i < state->rank_count; i++) /* those that its world is without have none */
                state->ranks[i].batch = -1;
        for (size_t i = 0; i < report->rank_count; i++) {
                struct job_group *group = job_state_group(state, report->ranks[i].group);
                struct job_progress_rank *rank = NULL;

                index = index_after(report, i, index);
                if (group != NULL && index < group->ranks)
                        rank = job_state_make_rank(state, group->name, index);
                if (group != NULL)
                        group->batch += report->ranks[i].batch;
                if (rank != NULL)
                        rank->batch = (int64_t) report->ranks[i].batch;
        }
        for (size_t i = 0; i < state->group_count; i++)
                state->groups[i].weight = (double) state->groups[i].batch / (double) sum;
}

/* What groups and ranks take of each batch, if the report has all of it: new shares while a world ran, those
 * of one that is cut anew, or that goes on without some. Return: are they others? */
static bool take_shares(struct record *record, const struct job_report *report)
{
        struct job_state *state = &record->state;
        uint64_t sum = 0;
        bool others;

        for (size_t i = 0; i < report->rank_count; i++)
                sum += job_state_group(state, report->ranks[i].group) != NULL ? report->ranks[i].batch : 0;
        if (sum != record->job.global_batch)
                return false;
        others = are_other_shares(state, report);
        if (others)
                take_batches(state, report, sum);
        if (state->recuts + state->reshards > 0)
                take_speeds(state, report);
        return others;
}

bool progress_take_shares(struct record *record, const struct job_report *report)
{
        uint64_t recuts = record->base_recuts + report->recuts;
        bool more = recuts > record->state.recuts;

        if (more) {
                record->controller->metrics.recuts += recuts - record->state.recuts;
                record->state.recuts = recuts;
        }
        return take_shares(record, report) || more;
}

bool progress_take_crashes(struct record *record, const struct job_report *report)
{
        struct job_state *state = &record->state;

        if (report->launcher_crashes <= state->launcher_crashes)
                return false;
        record->controller->metrics.launcher_crashes += report->launcher_crashes - state->launcher_crashes;
        state->launcher_crashes = report->launcher_crashes;
        return true;
}

static bool take_counts(struct record *record, const struct job_report *report)
{
        struct job_state *state = &record->state;
        uint64_t restarts = record->base_restarts + report->restarts;
        uint64_t reshards = record->base_reshards + report->reshards;
        bool changed = restarts > state->restarts || reshards > state->reshards;

        if (restarts > state->restarts) {
                record->controller->metrics.restarts += restarts - state->restarts;
                record->controller->metrics.faults += restarts - state->restarts;
                state->restarts = restarts;
        }
        if (reshards > state->reshards)
                state->reshards = reshards;
        changed = progress_take_crashes(record, report) || changed;
        return progress_take_shares(record, report) || changed;
}

static uint64_t samples_total(const struct record *record)
{
        return record->state.samples < UINT64_MAX / 1000001
                       ? record->state.samples * job_arguments_epochs(&record->job)
                       : 0;
}

/* Steps are told when they are done, from 0; the last of an epoch takes what is left of it. Example: steps 0
 * to 234 of 256 are an epoch of 60,000. */
static uint64_t samples_of_steps(const struct record *record)
{
        uint64_t done = record->state.progress.step + 1, batch = record->job.global_batch,
                 epoch = record->state.samples, steps;

        if (record->state.progress.step >= UINT32_MAX ||
            (done == 1 && record->state.progress.samples == 0)) /* none is done yet */
                return 0;
        steps = epoch / batch + (epoch % batch > 0);
        return steps > 0 ? done / steps * epoch + done % steps * batch : done * batch;
}

/* Ranks count what they did in their own world; steps go on from the checkpoint. */
void progress_count_samples(struct record *record)
{
        struct job_progress *progress = &record->state.progress;
        uint64_t by_steps = samples_of_steps(record);

        progress->samples_total = samples_total(record);
        if (record->state.restarts == 0 && record->state.reshards == 0 && record->state.world == 0)
                return;
        if (progress->samples_total > 0 && by_steps > progress->samples_total)
                by_steps = progress->samples_total;
        if (by_steps > progress->samples)
                progress->samples = by_steps;
}

static void take_figures(struct record *record, const struct job_report *report)
{
        struct job_progress *progress = &record->state.progress;

        progress->time_usec = controller_now(record->controller);
        progress->epoch = report->epoch;
        progress->step = report->step;
        progress->samples = report->samples;
        progress->samples_per_s = report->samples_per_s;
        if (isnormal(report->loss)) /* 0: a manager of before says none */
                progress->loss = report->loss;
        if (!isnan(report->accuracy))
                progress->accuracy = report->accuracy;
        progress_count_samples(record);
        job_rate_add(&record->rate, (struct job_rate_point){ .usec = controller_monotonic(record->controller),
                                                             .samples = progress->samples,
                                                             .steps = progress->step });
        progress->seconds_left =
                progress->samples_total > progress->samples && progress->samples_per_s > 0
                        ? (double) (progress->samples_total - progress->samples) / progress->samples_per_s
                        : 0;
}

/* The manager counts from its own start; what was before is ours to add. */
static void take_rank(struct record *record, const struct job_report_rank *said, struct job_group *group,
                      uint32_t index)
{
        struct job_progress_rank *rank = job_state_make_rank(&record->state, group->name, index);

        if (rank == NULL)
                return;
        if (rank->before + said->restarts > rank->restarts)
                rank->restarts = rank->before + said->restarts;
        rank->samples = said->samples;
        rank->samples_per_s = round(100 * said->samples_per_s) / 100;
        rank->busy_sec = said->busy_seconds > 0    ? said->busy_seconds
                         : said->samples_per_s > 0 ? (double) said->samples / said->samples_per_s
                                                   : 0;
        rank->exit_code = said->exit_code;
        if (rank->exit_code > 0 && group->exit_code < 0)
                group->exit_code = rank->exit_code;
}

static bool has_steps(const struct job_group *group, const struct job_report_rank *said)
{
        return group != NULL && !group->server && staleness_counts(said->step, said->samples);
}

/* Of workers that do not go in step: how far they are apart. */
static void take_staleness(struct record *record, const struct job_report *report)
{
        struct job_state *state = &record->state;
        struct staleness staleness = { .workers = 0 };
        uint32_t index = 0;

        if (!staleness_is_told(job_strategy_names[record->job.strategy]))
                return;
        for (size_t i = 0; i < report->rank_count; i++)
                if (has_steps(job_state_group(state, report->ranks[i].group), &report->ranks[i]))
                        staleness_add(&staleness, report->ranks[i].step);
        for (size_t i = 0; i < report->rank_count; i++) {
                struct job_progress_rank *rank;

                index = index_after(report, i, index);
                if (!has_steps(job_state_group(state, report->ranks[i].group), &report->ranks[i]))
                        continue;
                rank = job_state_rank(state, report->ranks[i].group, index);
                if (rank != NULL)
                        rank->steps_behind = (int64_t) staleness_behind(&staleness, report->ranks[i].step);
        }
        if (staleness.workers == 0)
                return;
        state->progress.steps_behind_mean = staleness_mean(&staleness);
        state->progress.steps_behind_max = (int64_t) staleness_max(&staleness);
}

/* Their numbers in the manager's world need not be the plan's. */
void progress_take_ranks(struct record *record, const struct job_report *report)
{
        uint32_t index = 0;

        if (report->epoch_samples > 0)
                record->state.samples = report->epoch_samples;
        for (size_t i = 0; i < report->rank_count; i++) {
                const struct job_report_rank *rank = &report->ranks[i];
                struct job_group *group = job_state_group(&record->state, rank->group);

                index = index_after(report, i, index);
                if (group != NULL && index < group->ranks)
                        take_rank(record, rank, group, index);
        }
        take_staleness(record, report);
}

/* By the moments that its report has. */
static void take_spread(struct job_state *state)
{
        struct job_progress *progress = &state->progress;
        double least, most;

        progress->seconds_left_least = progress->seconds_left_most = 0;
        if (!job_left_spread(state->points, state->point_count,
                             (double) progress->samples_total - (double) progress->samples,
                             progress->seconds_left, &least, &most))
                return;
        progress->seconds_left_least = round(10 * least) / 10;
        progress->seconds_left_most = round(10 * most) / 10;
}

/* A moment for the report: what each rank computed since the last one, by its own word. */
void progress_note_moment(struct record *record)
{
        struct job_state *state = &record->state;
        struct record_asking *asking = &record->asking;
        uint64_t now = controller_monotonic(record->controller), real = controller_now(record->controller);
        uint64_t running =
                real > state->start_usec ? real - state->start_usec : 0; /* a clock may be set back */
        double elapsed = asking->noted_usec > 0 ? (double) (now - asking->noted_usec) / 1e6 : 0;
        struct job_progress_point point = { /* short numbers: the status is written again with every look */
                                            .seconds = round((double) running / 1e4) / 1e2,
                                            .world = state->world + state->restarts + state->reshards,
                                            .step = state->progress.step,
                                            .samples = state->progress.samples,
                                            .loss = round(state->progress.loss * 1e6) / 1e6
        };

        if (state->start_usec == 0 || state->progress.time_usec == 0)
                return;
        for (size_t i = 0; i < state->group_count; i++)
                for (uint32_t n = 0;
                     n < state->groups[i].ranks && point.busy_count < JOB_PROGRESS_POINT_RANKS; n++) {
                        const struct job_progress_rank *rank =
                                job_state_rank(state, state->groups[i].name, n);
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
        take_spread(state);
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
                               sentence, unreadable ? ", or delete it: it is learnt anew" : "");
        c->learning_failed = result < 0;
}

/* Records answer in much the same order each time: without this the first ones alone would be learnt from.
 * One that is silent holds nobody back. */
static bool is_others_turn(const struct record *record, uint64_t now)
{
        const struct controller *c = record->controller;

        for (const struct name_map_entry *e = name_map_first(&c->records); e != NULL;
             e = name_map_next(&c->records, e)) {
                const struct record_asking *other = &((const struct record *) e)->asking;

                if (other->client != NULL && other->learnt_usec < record->asking.learnt_usec &&
                    other->last_seen_usec > 0 && now - other->last_seen_usec < 2 * ASK_USEC)
                        return true;
        }
        return false;
}

/* Its steps refine the SpeedTable, by which the next job is planned. One write for a job in half a minute,
 * and one of all jobs in some seconds: who comes in between is seen later. */
static void learn_speeds(struct record *record, const struct job_report *report, uint64_t now)
{
        struct job_speed speeds[LEARN_MAX];
        struct speed_table_observation seen[LEARN_MAX];
        struct controller *c = record->controller;
        struct ledger_speeds_programs programs = { .ledger = controller_ledger(c),
                                                   .job = &record->job,
                                                   .learning = true };
        size_t count;

        if (now - record->asking.learnt_usec < LEARN_USEC || now - c->learnt_usec < LEARN_ALL_USEC ||
            !controller_leads(c) || is_others_turn(record, now))
                return;
        record->asking.learnt_usec = now;
        programs.table = cluster_programs(c->options.cluster, &programs.table_count);
        ledger_speeds_collect(&programs);
        count = job_speeds_read(&programs, &record->state, report, speeds, LEARN_MAX);
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

static void take_answer(struct record *record, const struct job_report *report)
{
        uint64_t now = controller_monotonic(record->controller);
        bool changed = take_counts(record, report);

        record->asking.last_seen_usec = now;
        record->asking.waits = strcmp(report->state, "Waiting") == 0;
        changed = progress_pass_events(record, report) || changed;
        progress_take_ranks(record, report);
        learn_speeds(record, report, now);
        if (report->samples > 0 || report->step > 0)
                take_figures(record, report);
        progress_note_moment(record);
        if (!changed && now - record->asking.written_usec < WRITE_USEC)
                return;
        record->asking.written_usec = now;
        record->dirty = true;
        controller_queue(record);
}

static void on_message(void *userdata, const uint8_t *message, size_t size_bytes)
{
        struct record *record = userdata;
        struct job_report report = { .state = "" };
        struct pb_arena arena;
        const Rendezvous__State *state =
                message_read(&arena, &rendezvous__state__descriptor, message, size_bytes, NULL);

        if (state != NULL && job_report_parse(state->json, &report) == 0 &&
            !job_phase_ended(record->state.phase) && !record->deleting &&
            strcmp(record->asking.address, record->state.address) == 0) /* not the one before it */
                take_answer(record, &report);
        job_report_free(&report);
        pb_arena_free(&arena);
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct record *record = userdata;

        (void) status;
        (void) sentence;
        record->asking.under_way = false;
}

static struct job_pod *running_manager(struct record *record)
{
        char name[JOB_POD_NAME_BYTES];
        struct job_pod *pod;

        job_state_manager_pod_name(record->name, record->state.world, name);
        pod = record_find_pod(record, name);
        return pod != NULL && pod->started && pod->phase == JOB_POD_RUNNING && pod->status_token[0] != '\0'
                       ? pod
                       : NULL;
}

static struct tls *open_tls(const struct record *record)
{
        struct job_keys keys = job_keys_read(record->keys == NULL ? "" : record->keys);
        const struct tls_options options = { .identity = { .ca = { keys.ca, "the CA" } },
                                             .name = JOB_TLS_STATUS_NAME,
                                             .peer = "manager" };
        struct tls *tls = NULL;

        if (keys.ca == NULL || tls_new(&options, &tls, NULL) < 0)
                tls = NULL;
        job_keys_free(&keys);
        return tls;
}

static bool open_client(struct record *record)
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

static void send_ask(void *userdata)
{
        struct record *record = userdata;
        const struct grpc_client_handlers handlers = { .on_message = on_message,
                                                       .on_done = on_done,
                                                       .userdata = record };
        Rendezvous__Proof proof = proof_message(&record->asking.proof);
        Rendezvous__Ask ask = RENDEZVOUS__ASK__INIT;

        ask.proof = &proof;
        record->asking.under_way =
                message_call(record->asking.client, MESSAGE_STATUS, &ask, ANSWER_USEC, &handlers, NULL) == 0;
}

void progress_ask(struct record *record)
{
        static const struct proof_asker asker = { PROOF_STATUS, ANSWER_USEC, send_ask, on_done };
        const struct job_pod *manager = running_manager(record);
        uint64_t now = controller_monotonic(record->controller),
                 pause = record->state.point_count < YOUNG ? YOUNG_USEC - YOUNG_USEC / 10 : ASK_USEC;

        if (manager == NULL || record->state.address[0] == '\0') {
                progress_close(record);
                return;
        }
        if (record->asking.under_way || now - record->asking.asked_usec < pause || !open_client(record))
                return;
        record->asking.asked_usec = now;
        (void) text_copy(record->asking.token, sizeof(record->asking.token), manager->status_token);
        record->asking.under_way = proof_greet(&record->asking.proof, &asker, record->asking.client,
                                               record->asking.token, record) == 0;
}
