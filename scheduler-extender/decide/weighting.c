/* A row a kind of chips: the share of one more member there, and how long a step would be. */
#include "scheduler-extender/decide/weighting.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

static bool better(const struct ledger_group *a, const struct ledger_group *b, uint32_t chips, bool fastest)
{
        bool a_fits = ledger_group_open(a) >= chips, b_fits = ledger_group_open(b) >= chips;

        if (a_fits != b_fits)
                return a_fits;
        if (!a_fits)
                return false; /* neither has room: the first accepted one stands for them */
        if (fastest && a->tflops != b->tflops)
                return a->tflops > b->tflops;
        return ledger_group_open(a) < ledger_group_open(b);
}

const struct ledger_group *weighting_group(const struct ledger_group *groups, size_t group_count,
                                           const struct request *request, bool fastest)
{
        const struct ledger_group *best = NULL;

        if (request->item_count == 0)
                return NULL;
        for (size_t i = 0; i < group_count; i++)
                if (groups[i].resource == request->items[0].resource &&
                    request_accepts(request, groups[i].model) &&
                    (best == NULL || better(&groups[i], best, request->items[0].chips, fastest)))
                        best = &groups[i];
        return best;
}

const struct weighting_row *weighting_row(const struct weighting *weighting, const struct ledger_group *group)
{
        if (weighting == NULL || group == NULL)
                return NULL;
        for (size_t i = 0; i < weighting->row_count; i++)
                if (weighting->rows[i].runtime == group->runtime && weighting->rows[i].model == group->model)
                        return &weighting->rows[i];
        return NULL;
}

static const struct ledger_program *program_of(const struct ledger_program *programs, size_t count,
                                               uint32_t runtime)
{
        for (size_t i = 0; i < count; i++)
                if (programs[i].runtime == runtime)
                        return &programs[i];
        return NULL;
}

static bool has_own_command(const struct job *job, const char *runtime)
{
        for (size_t i = 0; job != NULL && i < job->program_count; i++)
                if (job->programs[i].command_count > 0 && strcmp(job->programs[i].runtime, runtime) == 0)
                        return true;
        return false;
}

/* A program of the job or of the table that runs on chips of this runtime. */
static bool has_any_program(const struct weighting *w, const char *runtime)
{
        for (size_t i = 0; w->job != NULL && i < w->job->program_count; i++)
                if (vendor_serves(runtime, w->job->programs[i].runtime))
                        return true;
        for (size_t i = 0; i < w->table_count; i++)
                if (vendor_serves(runtime, symbols_name(&w->ledger->symbols, w->table[i].runtime)))
                        return true;
        return false;
}

bool weighting_has_program(const struct weighting *weighting, const struct request *request,
                           const struct ledger_node *node, const struct ledger_group *groups)
{
        const struct ledger_group *group = weighting_group(groups, node->group_count, request, false);
        const struct ledger_program *wanted, *reported;

        if (!weighting->of_training_job || group == NULL || group->runtime == 0)
                return true;
        reported = program_of(node->programs, node->program_count, group->runtime);
        wanted = program_of(weighting->table, weighting->table_count, group->runtime);
        if (wanted != NULL && reported != NULL && wanted->sha256[0] != '\0' && reported->sha256[0] != '\0')
                return strcmp(wanted->sha256, reported->sha256) == 0;
        return reported != NULL ||
               has_any_program(weighting, symbols_name(&weighting->ledger->symbols, group->runtime));
}

enum reason weighting_judge(const struct weighting *weighting, const struct request *request,
                            const struct ledger_node *node, const struct ledger_group *groups)
{
        const struct weighting_row *row =
                weighting_row(weighting, weighting_group(groups, node->group_count, request, false));

        return row == NULL || request->share_given ? REASON_NONE : row->verdict;
}

/* Chips of one kind among the members. */
struct kind {
        uint32_t runtime, model;
        double tflops;
        uint64_t memory_bytes;
        size_t chips;
};

struct members {
        struct kind kinds[WEIGHTING_ROWS_MAX];
        size_t kind_count, chips;
};

static void add_member(struct members *members, const struct ledger_group *group, size_t chips)
{
        size_t i = 0;

        if (group == NULL)
                return;
        while (i < members->kind_count &&
               (members->kinds[i].runtime != group->runtime || members->kinds[i].model != group->model))
                i++;
        if (i == WEIGHTING_ROWS_MAX)
                return;
        if (i == members->kind_count)
                members->kinds[members->kind_count++] = (struct kind){ .runtime = group->runtime,
                                                                       .model = group->model,
                                                                       .tflops = group->tflops,
                                                                       .memory_bytes = group->memory_bytes };
        members->kinds[i].chips += chips;
        members->chips += chips;
}

static const struct ledger_group *group_named(const struct ledger_node *node, uint32_t name)
{
        for (uint32_t i = 0; i < node->group_count; i++)
                if (node->groups[i].name == name)
                        return &node->groups[i];
        return NULL;
}

static void add_pod(struct members *members, const struct ledger_pod *pod)
{
        for (size_t i = 0; i < pod->part_count; i++)
                add_member(members, group_named(pod->node, pod->parts[i].group), pod->parts[i].chips);
        if (pod->part_count == 0)
                add_member(members,
                           weighting_group(pod->node->groups, pod->node->group_count, &pod->request, false),
                           request_chips(&pod->request));
}

/* Bound members, and the slots of the lease but for one that is the pod's own. */
static void collect_members(const struct ledger_job *job, const struct ledger_pod *self,
                            const struct request *request, struct members *ret)
{
        bool own = true;

        for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                if (pod != self && pod->node != NULL && !pod->request.serves)
                        add_pod(ret, pod);
        for (const struct ledger_job_slot *slot = job->slots; slot != NULL; slot = slot->next_in_job) {
                if (slot->request.serves)
                        continue;
                if (own && slot->request.items[0].resource == request->items[0].resource &&
                    slot->request.items[0].chips == request->items[0].chips) {
                        own = false;
                        continue;
                }
                add_member(ret,
                           weighting_group(slot->node->groups, slot->node->group_count, &slot->request, true),
                           request_chips(&slot->request));
        }
}

/* Which program the nodes start for each runtime: what one says, unless another says something else. */
static void note_reported(struct weighting *w, const struct ledger_node *node)
{
        for (uint32_t i = 0; i < node->program_count; i++) {
                const struct ledger_program *said = &node->programs[i];
                size_t k = 0;

                while (k < w->reported_count && w->reported[k].runtime != said->runtime)
                        k++;
                if (k == w->reported_count && k < WEIGHTING_PROGRAMS_MAX)
                        w->reported[w->reported_count++] = *said;
                else if (k < w->reported_count && strcmp(w->reported[k].sha256, said->sha256) != 0)
                        w->reported[k].sha256[0] = '\0';
        }
}

/* Kinds of chips that could serve the pod: a row each. */
static void collect_rows(struct weighting *w, const struct request *request, struct members *ret)
{
        const struct ledger *ledger = w->ledger;

        w->reported_count = 0;
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                if (ledger->speed_count > 0)
                        note_reported(w, ledger->nodes[i]);
                for (uint32_t g = 0; g < ledger->nodes[i]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[i]->groups[g];

                        if (group->resource == request->items[0].resource &&
                            request_accepts(request, group->model))
                                add_member(ret, group, 1);
                }
        }
}

static const struct ledger_speed *measured_speed(const struct weighting *w, uint32_t runtime, uint32_t model)
{
        const char *name = symbols_name(&w->ledger->symbols, runtime), *program;
        const struct ledger_program *said = program_of(w->reported, w->reported_count, runtime);

        if (w->ledger->speed_count == 0)
                return NULL;
        program = ledger_speeds_program(w->ledger, w->job, w->table, w->table_count, name);
        if (program[0] == '\0' && said != NULL && program_of(w->table, w->table_count, runtime) == NULL &&
            !has_own_command(w->job, name))
                program = said->sha256;
        return ledger_speeds_find(w->ledger, program, w->job == NULL ? "" : w->job->model, model);
}

static unsigned known_speeds(const struct weighting *w, const struct members *members)
{
        unsigned known = members->kind_count > 0 ? ~0U : 0;

        for (size_t i = 0; i < members->kind_count; i++)
                known &= chip_speed_known(
                        measured_speed(w, members->kinds[i].runtime, members->kinds[i].model),
                        members->kinds[i].tflops);
        return known;
}

static struct shard_worker worker_of(const struct weighting *w, const struct kind *kind)
{
        return chip_speed_worker(w->source, measured_speed(w, kind->runtime, kind->model), kind->tflops);
}

static void judge_share(const struct weighting *w, const struct kind *kind, const struct shard *shards,
                        size_t first, size_t count, struct weighting_row *row)
{
        row->verdict = REASON_NONE;
        for (size_t i = first; i < count; i++) {
                row->batch += shards[i].batch;
                if (w->equal)
                        continue;
                if (shards[i].batch == 0)
                        row->verdict = REASON_SHARE_TOO_SMALL;
                else if (row->verdict == REASON_NONE && kind->memory_bytes > 0 && w->sample_bytes > 0 &&
                         w->fixed_bytes + w->sample_bytes * shards[i].batch > kind->memory_bytes)
                        row->verdict = REASON_SHARE_TOO_LARGE;
        }
        row->weight = (double) row->batch / (double) w->batch;
}

/* The exact plan: whoever would get nothing is to be told so, not given a sample. */
static int cut(const struct weighting *w, const struct shard_worker *workers, size_t count,
               struct shard *shards, double *ret_step_ms)
{
        struct shards_plan plan;
        int r;

        if (w->equal)
                return shards_cut(workers, count, w->batch, false, shards, ret_step_ms, NULL);
        r = shards_plan(workers, count, w->batch, shards, &plan, NULL);
        if (r == 0)
                *ret_step_ms = plan.step_ms;
        return r;
}

static int plan_row(const struct weighting *w, const struct members *members, const struct kind *kind,
                    uint32_t chips, struct weighting_row *row)
{
        size_t count = members->chips + chips, n = 0;
        CLEANUP(free_p) struct shard_worker *workers = calloc(count, sizeof(*workers));
        CLEANUP(free_p) struct shard *shards = calloc(count, sizeof(*shards));
        double step_ms = 0;

        if (workers == NULL || shards == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < members->kind_count; i++)
                for (size_t k = 0; k < members->kinds[i].chips; k++)
                        workers[n++] = worker_of(w, &members->kinds[i]);
        while (n < count)
                workers[n++] = worker_of(w, kind);
        if (cut(w, workers, count, shards, &step_ms) < 0)
                return 0; /* no plan: nothing is said about this kind */
        judge_share(w, kind, shards, members->chips, count, row);
        row->step_nsec = (uint64_t) (step_ms * 1e6);
        return 0;
}

static int fill_rows(struct weighting *w, const struct members *members, const struct members *rows,
                     const struct request *request)
{
        struct members together = *rows;

        for (size_t i = 0; i < members->kind_count && together.kind_count < WEIGHTING_ROWS_MAX; i++)
                together.kinds[together.kind_count++] = members->kinds[i];
        w->source = chip_speed_best(known_speeds(w, &together));
        for (size_t i = 0; i < rows->kind_count; i++) {
                const struct kind *kind = &rows->kinds[i];
                const struct ledger_speed *measured = measured_speed(w, kind->runtime, kind->model);
                struct weighting_row *row = &w->rows[w->row_count++];

                *row = (struct weighting_row){ .runtime = kind->runtime, .model = kind->model };
                if (w->source == CHIP_SPEED_MEASURED && measured->beta_ms > 0)
                        row->speed = 1000 / measured->beta_ms;
                if (w->batch > 0 && members->chips + request_chips(request) <= WEIGHTING_CHIPS_MAX &&
                    plan_row(w, members, kind, request_chips(request), row) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int weighting_build(const struct ledger *ledger, const struct ledger_job *job, const struct ledger_pod *self,
                    const struct request *request, struct weighting *ret)
{
        struct members members = { .chips = 0 }, rows = { .chips = 0 };
        const struct job *training = job == NULL ? NULL : job->training;

        if (request->item_count == 0 || (training == NULL && request->batch == 0))
                return 1;
        ret->ledger = ledger;
        ret->job = training;
        ret->of_training_job = training != NULL;
        ret->batch = request->batch > 0 ? request->batch : training->global_batch;
        if (request->serves || (training != NULL && training->strategy == JOB_STRATEGY_SPLIT))
                ret->batch = 0; /* it has none of the samples, or all of them */
        ret->equal = request->batch == 0 && !job_shares_follow_speeds(training);
        ret->source = CHIP_SPEED_ASSUMED;
        ret->fixed_bytes = request->fixed_bytes;
        ret->sample_bytes = request->sample_bytes;
        ret->row_count = 0;
        if (job != NULL)
                collect_members(job, self, request, &members);
        collect_rows(ret, request, &rows);
        return fill_rows(ret, &members, &rows, request);
}

void weighting_note_kind(struct weighting *w, const struct ledger_group *group, bool first)
{
        enum chip_speed best = chip_speed_best(
                chip_speed_known(measured_speed(w, group->runtime, group->model), group->tflops));

        if (!first && w->source < best)
                best = w->source;
        if (best == CHIP_SPEED_TABLE && !(group->tflops > 0))
                best = CHIP_SPEED_ASSUMED;
        w->source = best;
}

int weighting_step(const struct weighting *w, const struct ledger_job *job, const struct ledger_pod *self,
                   const struct weighting_choice *choices, size_t count, double *ret_step_ms)
{
        struct members members = { .chips = 0 };
        CLEANUP(free_p) struct shard_worker *workers = NULL;
        CLEANUP(free_p) struct shard *shards = NULL;
        size_t n = 0;

        for (const struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                if (pod != self && pod->node != NULL && !pod->request.serves)
                        add_pod(&members, pod);
        for (size_t i = 0; i < count; i++)
                add_member(&members, choices[i].group, choices[i].chips);
        if (members.chips == 0 || members.chips > WEIGHTING_CHIPS_MAX)
                return 1;
        workers = calloc(members.chips, sizeof(*workers));
        shards = calloc(members.chips, sizeof(*shards));
        if (workers == NULL || shards == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < members.kind_count; i++)
                for (size_t k = 0; k < members.kinds[i].chips; k++)
                        workers[n++] = worker_of(w, &members.kinds[i]);
        return cut(w, workers, n, shards, ret_step_ms) < 0;
}
