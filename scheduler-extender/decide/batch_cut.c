/* A shard for every rank of a job, by the one kind of figure that all its chips have. */
#include "scheduler-extender/decide/batch_cut.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/ledger/ledger_speeds.h"

struct ranks {
        struct shard_worker *workers;
        struct shard *shards;
        size_t count;
        enum chip_speed source;
};

static const struct ledger_speed *measured(const struct batch_cut_job *job, const char *runtime,
                                           uint32_t model)
{
        if (job->ledger->speed_count == 0)
                return NULL;
        return ledger_speeds_find(
                job->ledger,
                ledger_speeds_program(job->ledger, job->job, job->programs, job->program_count, runtime),
                job->job->model, model);
}

double batch_cut_speed(const struct batch_cut_job *job, const char *runtime, uint32_t model)
{
        const struct ledger_speed *row = measured(job, runtime, model);

        return row != NULL ? 1000 / row->beta_ms : 0;
}

static double ranks_a_chip(const struct batch_cut_group *group)
{
        return (double) group->ranks / (group->chips > 0 ? group->chips : 1);
}

/* Of a chip that this many ranks share, where that was seen; else of the chip, which they then divide.
 * @ret_part: by how much the row's time grows */
static const struct ledger_speed *measured_of(const struct batch_cut_job *job,
                                              const struct batch_cut_group *group, double *ret_part)
{
        const struct symbols *symbols = &job->ledger->symbols;
        uint32_t sharers = (uint32_t) ceil(ranks_a_chip(group));
        const struct ledger_speed *found = NULL;
        char device[DEVICE_MODEL_BYTES + 24];

        *ret_part = 1;
        if (sharers > 1 && group->model != 0 &&
            text_format(device, sizeof(device), "%s (shared by %u)", symbols_name(symbols, group->model),
                        sharers))
                found = measured(job, group->runtime, symbols_find(symbols, device, strlen(device)));
        if (found != NULL)
                return found;
        *ret_part = ranks_a_chip(group);
        return measured(job, group->runtime, group->model);
}

static enum chip_speed choose_source(const struct batch_cut_job *job, const struct batch_cut_group *groups,
                                     size_t count)
{
        unsigned known = ~0U;
        double part;

        for (size_t i = 0; i < count; i++)
                known &= chip_speed_known(measured_of(job, &groups[i], &part), groups[i].tflops);
        return chip_speed_best(known);
}

static struct shard_worker worker_of(const struct batch_cut_job *job, const struct batch_cut_group *group,
                                     enum chip_speed source)
{
        double part;
        const struct ledger_speed *row = measured_of(job, group, &part);
        struct shard_worker worker = chip_speed_worker(source, row, group->tflops);

        worker.beta_ms *= part;
        worker.speed /= ranks_a_chip(group);
        return worker;
}

static void ranks_free(struct ranks *ranks)
{
        free(ranks->workers);
        free(ranks->shards);
}

static int collect(const struct batch_cut_job *job, const struct batch_cut_group *groups, size_t count,
                   struct ranks *ret)
{
        *ret = (struct ranks){ .source = choose_source(job, groups, count) };
        for (size_t i = 0; i < count; i++)
                ret->count += groups[i].ranks;
        ret->workers = calloc(ret->count + 1, sizeof(*ret->workers));
        ret->shards = calloc(ret->count + 1, sizeof(*ret->shards));
        if (ret->workers == NULL || ret->shards == NULL)
                return -ENOMEM;
        for (size_t i = 0, n = 0; i < count; i++)
                for (uint32_t k = 0; k < groups[i].ranks; k++)
                        ret->workers[n++] = worker_of(job, &groups[i], ret->source);
        return 0;
}

/* Return: the length of a step in ms; negative errno as a negative number. */
static double cut(const struct job *job, struct ranks *ranks, struct err *err)
{
        double step_ms = 0;
        int r = shards_cut(ranks->workers, ranks->count, job->global_batch, job_shares_follow_speeds(job),
                           ranks->shards, &step_ms, err);

        return r < 0 ? r : step_ms;
}

double batch_cut_step_ms(const struct batch_cut_job *job, const struct batch_cut_group *groups, size_t count)
{
        struct ranks ranks;
        double step = -1;

        if (collect(job, groups, count, &ranks) == 0) {
                step = cut(job->job, &ranks, NULL);
                /* one that gets nothing does not shorten the step, even if it does not lengthen it */
                for (size_t i = 0; i < ranks.count && step >= 0; i++)
                        step = ranks.shards[i].idle ? -1 : step;
        }
        ranks_free(&ranks);
        return step < 0 ? INFINITY : step;
}

int batch_cut(const struct batch_cut_job *job, const struct batch_cut_group *groups, size_t count,
              struct batch_cut_share *ret_shares, enum chip_speed *ret_source, struct err *err)
{
        struct ranks ranks;
        double step = collect(job, groups, count, &ranks);

        if (step == 0 && ranks.count > 0)
                step = cut(job->job, &ranks, err);
        else if (step < 0)
                (void) err_set(err, -ENOMEM, "no memory");
        for (size_t i = 0, n = 0; i < count && step >= 0; i++) {
                ret_shares[i] = (struct batch_cut_share){ 0 };
                for (uint32_t k = 0; k < groups[i].ranks; k++, n++) {
                        double ms = shards_ms(&ranks.workers[n], (double) ranks.shards[n].batch);

                        ret_shares[i].batch += ranks.shards[n].batch;
                        if (ranks.source != CHIP_SPEED_ASSUMED && ms > 0)
                                ret_shares[i].samples_per_s += (double) ranks.shards[n].batch * 1000 / ms;
                }
        }
        *ret_source = ranks.source;
        ranks_free(&ranks);
        return step < 0 ? err_wrap(err, (int) step, "shares") : 0;
}
