/* A shard for every rank of a job, by the one kind of figure that all its chips have. */
#include "scheduler-extender/decide/batch_cut.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/speeds/speed_cut.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

struct ranks {
        struct chip_speed_member *members;
        struct shard_worker *workers;
        struct speed_cut_place *places;
        struct shard *shards;
        size_t *groups; /* whose each is */
        size_t count;
        struct chip_speed_verdict verdict;
};

/* Of the group's chips, whoever else is there. */
static double ranks_a_chip(const struct batch_cut_group *groups, size_t count,
                           const struct batch_cut_group *of)
{
        double ranks = 0, chips = 0;

        if (of->group == NULL)
                return (double) of->ranks / (of->chips > 0 ? of->chips : 1);
        for (size_t i = 0; i < count; i++)
                if (groups[i].group == of->group) {
                        ranks += groups[i].ranks;
                        chips += groups[i].chips;
                }
        return ranks / (chips > 0 ? chips : 1);
}

static void ranks_free(struct ranks *ranks)
{
        free(ranks->members);
        free(ranks->workers);
        free(ranks->places);
        free(ranks->shards);
        free(ranks->groups);
}

static int ranks_make(const struct batch_cut_group *groups, size_t count, struct ranks *ret)
{
        size_t ranks = 1;

        *ret = (struct ranks){ .count = 0 };
        for (size_t i = 0; i < count; i++)
                ranks += groups[i].server ? 0 : groups[i].ranks;
        ret->members = calloc(ranks, sizeof(*ret->members));
        ret->workers = calloc(ranks, sizeof(*ret->workers));
        ret->places = calloc(ranks, sizeof(*ret->places));
        ret->shards = calloc(ranks, sizeof(*ret->shards));
        ret->groups = calloc(ranks, sizeof(*ret->groups));
        return ret->members == NULL || ret->workers == NULL || ret->places == NULL || ret->shards == NULL ||
                               ret->groups == NULL
                       ? -ENOMEM
                       : 0;
}

static int collect(const struct batch_cut_job *job, const struct batch_cut_group *groups, size_t count,
                   struct ranks *ret)
{
        struct ledger_speeds_programs programs = { .ledger = job->ledger,
                                                   .job = job->job,
                                                   .table = job->programs,
                                                   .table_count = job->program_count };

        if (ranks_make(groups, count, ret) < 0)
                return -ENOMEM;
        ledger_speeds_collect(&programs);
        for (size_t i = 0; i < count; i++) {
                struct chip_speed_member member = { .program = ledger_speeds_program(&programs,
                                                                                     groups[i].runtime),
                                                    .device = groups[i].device,
                                                    .ranks_a_chip = ranks_a_chip(groups, count, &groups[i]) };

                if (groups[i].group != NULL)
                        member.figures = groups[i].group->figures;
                for (uint32_t k = 0; k < groups[i].ranks && !groups[i].server; k++) {
                        ret->groups[ret->count] = i;
                        ret->places[ret->count] =
                                (struct speed_cut_place){ groups[i].entry, groups[i].node, groups[i].name };
                        ret->members[ret->count++] = member;
                }
        }
        ret->verdict = chip_speed_find(&job->ledger->speeds, job->job->model, ret->members, ret->count,
                                       ret->workers);
        return 0;
}

/* Return: the length of a step in ms; negative errno as a negative number. */
static double cut(const struct job *job, struct ranks *ranks, struct err *err)
{
        double step_ms = 0;
        int r = speed_cut(ranks->workers, ranks->places, ranks->count, job->global_batch,
                          job_shares_follow_speeds(job), ranks->shards, &step_ms, err);

        return r < 0 ? r : step_ms;
}

static void leave_out(struct ranks *ranks, size_t of, uint32_t without)
{
        size_t end = ranks->count;

        while (end > 0 && ranks->groups[end - 1] != of)
                end--;
        memmove(&ranks->workers[end - without], &ranks->workers[end],
                (ranks->count - end) * sizeof(*ranks->workers));
        memmove(&ranks->places[end - without], &ranks->places[end],
                (ranks->count - end) * sizeof(*ranks->places));
        ranks->count -= without;
}

double batch_cut_step_ms(const struct batch_cut_job *job, const struct batch_cut_group *groups, size_t count,
                         size_t of, uint32_t without, struct chip_speed_verdict *ret_verdict)
{
        struct ranks ranks;
        double step = -1;

        if (collect(job, groups, count, &ranks) == 0) {
                if (without > 0)
                        leave_out(&ranks, of, without);
                step = cut(job->job, &ranks, NULL);
                /* one that gets nothing does not shorten the step, even if it does not lengthen it */
                for (size_t i = 0; i < ranks.count && step >= 0; i++)
                        step = ranks.shards[i].idle ? -1 : step;
        }
        if (ret_verdict != NULL)
                *ret_verdict = ranks.verdict;
        ranks_free(&ranks);
        return step < 0 ? INFINITY : step;
}

static void add_up(const struct ranks *ranks, struct batch_cut_share *ret_shares)
{
        for (size_t n = 0; n < ranks->count; n++) {
                struct batch_cut_share *share = &ret_shares[ranks->groups[n]];
                double batch = (double) ranks->shards[n].batch, ms = shards_ms(&ranks->workers[n], batch);

                share->batch += ranks->shards[n].batch;
                share->speed = chip_speed_samples_per_s(&ranks->workers[n]);
                if (ranks->verdict.source == CHIP_SPEED_MEASURED && ms > 0)
                        share->samples_per_s += batch * 1000 / ms;
        }
}

int batch_cut(const struct batch_cut_job *job, const struct batch_cut_group *groups, size_t count,
              struct batch_cut_share *ret_shares, struct chip_speed_verdict *ret_verdict, struct err *err)
{
        struct ranks ranks;
        double step = collect(job, groups, count, &ranks);

        for (size_t i = 0; i < count; i++)
                ret_shares[i] = (struct batch_cut_share){ 0 };
        *ret_verdict = ranks.verdict;
        if (step < 0)
                (void) err_set(err, -ENOMEM, "no memory");
        else if (ranks.count > 0)
                step = cut(job->job, &ranks, err);
        if (step >= 0 && ranks.count > 0) {
                ret_verdict->lacking = ranks.groups[ranks.verdict.lacking % ranks.count];
                add_up(&ranks, ret_shares);
        }
        ranks_free(&ranks);
        return step < 0 ? err_wrap(err, (int) step, "shares") : 0;
}
