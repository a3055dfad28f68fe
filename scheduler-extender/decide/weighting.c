/* A row a kind of chips: the share of one more member there, and how long a step would be. */
#include "scheduler-extender/decide/weighting.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "planner/shards/shards.h"
#include "scheduler-extender/decide/weighting_members.h"

static double speed_of(const struct weighting *w, const struct ledger_group *group)
{
        const struct weighting_row *row = weighting_row(w, group);

        return row == NULL ? 0 : row->speed;
}

static bool better(const struct ledger_group *a, const struct ledger_group *b, uint32_t chips,
                   const struct weighting *fastest)
{
        bool a_fits = ledger_group_open(a) >= chips, b_fits = ledger_group_open(b) >= chips;

        if (a_fits != b_fits)
                return a_fits;
        if (!a_fits)
                return false; /* neither has room: the first accepted one stands for them */
        if (speed_of(fastest, a) != speed_of(fastest, b))
                return speed_of(fastest, a) > speed_of(fastest, b);
        return ledger_group_open(a) < ledger_group_open(b);
}

const struct ledger_group *weighting_group(const struct ledger_group *groups, size_t group_count,
                                           const struct request *request, const struct weighting *fastest)
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

/* A program of the job or of the table that runs on chips of this runtime. */
static bool has_any_program(const struct weighting *w, const char *runtime)
{
        const struct ledger_speeds_programs *p = &w->programs;

        for (size_t i = 0; p->job != NULL && i < p->job->program_count; i++)
                if (vendor_serves(runtime, p->job->programs[i].runtime))
                        return true;
        for (size_t i = 0; i < p->table_count; i++)
                if (vendor_serves(runtime, symbols_name(&p->ledger->symbols, p->table[i].runtime)))
                        return true;
        return false;
}

bool weighting_has_program(const struct weighting *weighting, const struct request *request,
                           const struct ledger_node *node, const struct ledger_group *groups)
{
        const struct ledger_group *group = weighting_group(groups, node->group_count, request, NULL);
        const struct ledger_speeds_programs *p = &weighting->programs;
        const struct ledger_program *wanted, *reported;

        if (!weighting->of_training_job || group == NULL || group->runtime == 0)
                return true;
        reported = ledger_speeds_program_of(node->programs, node->program_count, group->runtime);
        wanted = ledger_speeds_program_of(p->table, p->table_count, group->runtime);
        if (wanted != NULL && reported != NULL && wanted->sha256[0] != '\0' && reported->sha256[0] != '\0')
                return strcmp(wanted->sha256, reported->sha256) == 0;
        return reported != NULL ||
               has_any_program(weighting, symbols_name(&p->ledger->symbols, group->runtime));
}

enum reason weighting_judge(const struct weighting *weighting, const struct request *request,
                            const struct ledger_node *node, const struct ledger_group *groups)
{
        const struct weighting_row *row =
                weighting_row(weighting, weighting_group(groups, node->group_count, request, NULL));

        return row == NULL || request->share_given ? REASON_NONE : row->verdict;
}

static void add_kind(void *userdata, const struct ledger_node *node, const struct ledger_group *group,
                     size_t chips)
{
        struct weighting_kinds *kinds = userdata;
        size_t i = 0;

        (void) node;
        while (i < kinds->count && (kinds->items[i].group->runtime != group->runtime ||
                                    kinds->items[i].group->model != group->model))
                i++;
        if (i == WEIGHTING_ROWS_MAX)
                return;
        if (i == kinds->count)
                kinds->items[kinds->count++] = (struct weighting_kind){ .group = group };
        kinds->items[i].chips += chips;
        kinds->chips += chips;
}

static void collect_members(const struct weighting *w, const struct weighting_members_of *self,
                            struct weighting_kinds *ret)
{
        ret->count = ret->chips = 0;
        weighting_members(w, self, add_kind, ret);
}

/* Kinds of chips that could serve the pod. */
static void collect_kinds(const struct ledger *ledger, const struct request *request,
                          struct weighting_kinds *ret)
{
        ret->count = ret->chips = 0;
        for (uint32_t i = 0; i < ledger->node_count; i++)
                for (uint32_t g = 0; g < ledger->nodes[i]->group_count; g++) {
                        const struct ledger_group *group = &ledger->nodes[i]->groups[g];

                        if (group->resource == request->items[0].resource &&
                            request_accepts(request, group->model))
                                add_kind(ret, ledger->nodes[i], group, 1);
                }
}

/* The speeds of these kinds among each other. @rank: those without a figure come last, and change nothing. */
static void find_speeds(const struct weighting *w, struct weighting_kinds *kinds, bool rank)
{
        const struct symbols *symbols = &w->programs.ledger->symbols;
        const struct speed_table *table = &w->programs.ledger->speeds;
        const char *model = w->programs.job == NULL ? "" : w->programs.job->model;
        struct chip_speed_member members[WEIGHTING_ROWS_MAX];
        struct shard_worker workers[WEIGHTING_ROWS_MAX] = { { .name = NULL } };

        for (size_t i = 0; i < kinds->count; i++)
                members[i] = ledger_speeds_member(&w->programs,
                                                  symbols_name(symbols, kinds->items[i].group->runtime),
                                                  kinds->items[i].group);
        if (rank)
                chip_speed_rank(table, model, members, kinds->count, workers);
        else
                kinds->verdict = chip_speed_find(table, model, members, kinds->count, workers);
        for (size_t i = 0; i < kinds->count; i++)
                kinds->items[i].worker = workers[i];
}

/* Of a kind in other company: as fast as it is there. */
static const struct shard_worker *worker_in(const struct weighting_kinds *kinds,
                                            const struct ledger_group *group)
{
        for (size_t i = 0; i < kinds->count; i++)
                if (kinds->items[i].group->runtime == group->runtime &&
                    kinds->items[i].group->model == group->model)
                        return &kinds->items[i].worker;
        return NULL;
}

static void judge_share(const struct weighting *w, const struct ledger_group *group,
                        const struct shard *shards, size_t first, size_t count, struct weighting_row *row)
{
        row->verdict = REASON_NONE;
        for (size_t i = first; i < count; i++) {
                row->batch += shards[i].batch;
                if (w->equal)
                        continue;
                if (shards[i].batch == 0)
                        row->verdict = REASON_SHARE_TOO_SMALL;
                else if (row->verdict == REASON_NONE && group->memory_bytes > 0 && w->sample_bytes > 0 &&
                         w->fixed_bytes + w->sample_bytes * shards[i].batch > group->memory_bytes)
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

/* All chips, kind by kind. @by: whose speeds; those of the kinds themselves if it is the same */
static int cut_kinds(const struct weighting *w, const struct weighting_kinds *kinds,
                     const struct weighting_kinds *by, struct shard *shards, double *ret_step_ms)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(kinds->chips + 1, sizeof(*workers));
        size_t n = 0;

        if (workers == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < kinds->count; i++) {
                const struct shard_worker *worker = worker_in(by, kinds->items[i].group);

                for (size_t k = 0; k < kinds->items[i].chips && worker != NULL; k++)
                        workers[n++] = *worker;
        }
        return n < kinds->chips ? 1 : cut(w, workers, n, shards, ret_step_ms) < 0;
}

/* The members, and then this kind's own chips, even where members have such ones. */
static int plan_row(const struct weighting *w, const struct ledger_group *group, uint32_t chips,
                    struct weighting_kinds *kinds, struct weighting_row *row)
{
        CLEANUP(free_p) struct shard *shards = calloc(kinds->chips + chips, sizeof(*shards));
        size_t members = kinds->chips;
        double step_ms = 0;
        int r;

        if (shards == NULL)
                return -ENOMEM;
        if (kinds->count == WEIGHTING_ROWS_MAX)
                return 0;
        kinds->items[kinds->count++] = (struct weighting_kind){ .group = group, .chips = chips };
        kinds->chips += chips;
        find_speeds(w, kinds, false);
        row->speeds = kinds->verdict;
        r = cut_kinds(w, kinds, kinds, shards, &step_ms);
        if (r != 0)
                return r < 0 ? r : 0; /* no plan: nothing is said about this kind */
        judge_share(w, group, shards, members, kinds->chips, row);
        if (!chip_speed_same_kind(&kinds->verdict, &w->compared.verdict))
                r = cut_kinds(w, kinds, &w->compared, shards, &step_ms);
        row->step_nsec = r == 0 ? (uint64_t) (step_ms * 1e6) : 0;
        return r < 0 ? r : 0;
}

static int fill_rows(struct weighting *w, const struct ledger_job *job, const struct ledger_pod *self,
                     const struct request *request)
{
        CLEANUP(free_p) struct weighting_kinds *members = calloc(1, sizeof(*members));
        struct weighting_members_of of = { .job = job, .pod = self, .slots_too = true };
        size_t chips = request_chips(request);
        int r = members == NULL ? -ENOMEM : 0;

        for (size_t i = 0; r == 0 && w->batch > 0 && i < w->row_count; i++) {
                const struct ledger_group *group = w->compared.items[i].group;

                of.slot = weighting_members_own_slot(w, job, request, NULL, group);
                collect_members(w, &of, members);
                if (members->chips + chips <= WEIGHTING_CHIPS_MAX)
                        r = plan_row(w, group, (uint32_t) chips, members, &w->rows[i]);
        }
        return r;
}

int weighting_build(const struct ledger *ledger, const struct ledger_job *job, const struct ledger_pod *self,
                    const struct request *request, struct weighting *ret)
{
        const struct job *training = job == NULL ? NULL : job->training;

        if (request->item_count == 0 || (training == NULL && request->batch == 0 && !ret->fastest))
                return 1;
        ret->programs.ledger = ledger;
        ret->programs.job = training;
        ledger_speeds_collect(&ret->programs);
        ret->of_training_job = training != NULL;
        ret->batch = request->batch > 0 ? request->batch : training == NULL ? 0 : training->global_batch;
        if (request->serves || (training != NULL && training->strategy == JOB_STRATEGY_SPLIT))
                ret->batch = 0; /* it has none of the samples, or all of them */
        ret->equal = request->batch == 0 && training != NULL && !job_shares_follow_speeds(training);
        ret->fixed_bytes = request->fixed_bytes;
        ret->sample_bytes = request->sample_bytes;
        collect_kinds(ledger, request, &ret->compared);
        find_speeds(ret, &ret->compared, true);
        ret->row_count = ret->compared.count;
        for (size_t i = 0; i < ret->row_count; i++)
                ret->rows[i] = (struct weighting_row){
                        .runtime = ret->compared.items[i].group->runtime,
                        .model = ret->compared.items[i].group->model,
                        .speed = chip_speed_samples_per_s(&ret->compared.items[i].worker),
                };
        weighting_members(ret, &(struct weighting_members_of){ .job = job, .pod = self, .slots_too = true },
                          add_kind, &ret->compared);
        find_speeds(ret, &ret->compared, false);
        return fill_rows(ret, job, self, request);
}

void weighting_compare(struct weighting *w, const struct ledger_job *job, const struct ledger_pod *self,
                       const struct weighting_choice *choices, size_t count)
{
        collect_members(w, &(struct weighting_members_of){ .job = job, .pod = self }, &w->compared);
        for (size_t i = 0; i < count; i++)
                add_kind(&w->compared, NULL, choices[i].group, 1);
        find_speeds(w, &w->compared, false);
}

int weighting_step(const struct weighting *w, const struct ledger_job *job, const struct ledger_pod *self,
                   const struct weighting_choice *choices, size_t count, double *ret_step_ms)
{
        struct weighting_kinds members;
        CLEANUP(free_p) struct shard *shards = NULL;

        collect_members(w, &(struct weighting_members_of){ .job = job, .pod = self }, &members);
        for (size_t i = 0; i < count; i++)
                add_kind(&members, NULL, choices[i].group, choices[i].chips);
        if (members.chips == 0 || members.chips > WEIGHTING_CHIPS_MAX)
                return 1;
        shards = calloc(members.chips, sizeof(*shards));
        return shards == NULL ? -ENOMEM : cut_kinds(w, &members, &w->compared, shards, ret_step_ms);
}
