#include "job/plan/job_plan_shares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "planner/shards/shards.h"

#define SAMPLES_PER_TFLOPS 1000 /* what a chip of the device table is taken to do a second: ratios matter */

struct job_role job_plan_server_role(const struct job *job)
{
        struct job_role role = job->servers;

        if (!job->has_servers)
                role = (struct job_role){ .runtime = "cpu", .chips = 1, .min_chips = 1 };
        return role;
}

static const struct ledger_speed *measured_speed(const struct job_plan_question *q, const char *runtime,
                                                 uint32_t model)
{
        if (q->ledger->speed_count == 0)
                return NULL;
        return ledger_find_speed(
                q->ledger, ledger_program_hash(q->ledger, q->job, q->programs, q->program_count, runtime),
                q->job->model, model);
}

double job_plan_chip_speed(const struct job_plan_question *question, const char *runtime, uint32_t model)
{
        const struct ledger_speed *measured = measured_speed(question, runtime, model);

        return measured != NULL ? 1000 / measured->beta_ms : 0;
}

/* --- one worker a rank
 * ------------------------------------------------------------------------------------------- */

struct speeds {
        struct shard_worker *workers; /* one a rank, servers left out */
        struct shard *shards;
        size_t count;
        enum job_speed_source source;
};

static double table_tflops(const struct ledger *ledger, const struct job_group *group)
{
        const struct ledger_node *node = ledger_find_node(ledger, group->node, strlen(group->node));

        for (uint32_t i = 0; node != NULL && i < node->group_count; i++)
                if (strcmp(symbol_name(&ledger->symbols, node->groups[i].name), group->group) == 0)
                        return node->groups[i].tflops;
        return 0;
}

/* Of a chip that this many ranks share, where that was seen; else of the chip, which they then divide.
 * @ret_part: by how much the row's time grows; may be NULL */
static const struct ledger_speed *speed_of(const struct job_plan_question *q, const struct job_group *group,
                                           double *ret_part)
{
        uint32_t sharers = (group->ranks + group->chips - 1) / group->chips;
        const struct ledger_speed *found = NULL;
        char device[DEVICE_MODEL_BYTES + 24];

        if (ret_part != NULL)
                *ret_part = 1;
        if (sharers > 1 && group->model[0] != '\0' &&
            text_format(device, sizeof(device), "%s (shared by %u)", group->model, sharers))
                found = measured_speed(q, group->runtime,
                                       symbol_find(&q->ledger->symbols, device, strlen(device)));
        if (found != NULL)
                return found;
        if (ret_part != NULL)
                *ret_part = (double) group->ranks / group->chips;
        return measured_speed(q, group->runtime,
                              symbol_find(&q->ledger->symbols, group->model, strlen(group->model)));
}

/* Measured if all are, else from the table if all are in it, else assumed: speeds of two kinds do not mix. */
static enum job_speed_source choose_source(const struct job_plan_question *q, const struct job_state *state)
{
        bool measured = true, table = true;

        for (size_t i = 0; i < state->group_count; i++) {
                if (state->groups[i].server)
                        continue;
                measured = measured && speed_of(q, &state->groups[i], NULL) != NULL;
                table = table && table_tflops(q->ledger, &state->groups[i]) > 0;
        }
        return measured ? JOB_SPEED_MEASURED : table ? JOB_SPEED_TABLE : JOB_SPEED_ASSUMED;
}

/* Ranks that share a chip share its speed. */
static struct shard_worker worker_of(const struct job_plan_question *q, const struct job_group *group,
                                     enum job_speed_source source)
{
        double part, ranks_a_chip = (double) group->ranks / group->chips;
        const struct ledger_speed *measured = speed_of(q, group, &part);

        if (source == JOB_SPEED_MEASURED)
                return (struct shard_worker){ .model = SHARD_AFFINE,
                                              .alpha_ms = measured->alpha_ms,
                                              .beta_ms = measured->beta_ms * part };
        return (struct shard_worker){ .model = SHARD_SPEED,
                                      .speed = (source == JOB_SPEED_TABLE
                                                        ? table_tflops(q->ledger, group) * SAMPLES_PER_TFLOPS
                                                        : SAMPLES_PER_TFLOPS) /
                                               ranks_a_chip };
}

static void speeds_free(struct speeds *speeds)
{
        free(speeds->workers);
        free(speeds->shards);
}

static int gather_speeds(const struct job_plan_question *q, const struct job_state *state, struct speeds *ret)
{
        *ret = (struct speeds){ .source = choose_source(q, state) };
        for (size_t i = 0; i < state->group_count; i++)
                ret->count += state->groups[i].server ? 0 : state->groups[i].ranks;
        ret->workers = calloc(ret->count + 1, sizeof(*ret->workers));
        ret->shards = calloc(ret->count + 1, sizeof(*ret->shards));
        if (ret->workers == NULL || ret->shards == NULL)
                return -ENOMEM;
        for (size_t i = 0, n = 0; i < state->group_count; i++)
                for (uint32_t k = 0; !state->groups[i].server && k < state->groups[i].ranks; k++)
                        ret->workers[n++] = worker_of(q, &state->groups[i], ret->source);
        return 0;
}

/* --- the cut
 * ---------------------------------------------------------------------------------------------------- */

static double cut_equally(struct speeds *speeds, uint64_t batch)
{
        double slowest = 0;

        shards_equal(speeds->shards, speeds->count, batch);
        for (size_t i = 0; i < speeds->count; i++)
                slowest = fmax(slowest, shards_ms(&speeds->workers[i], (double) speeds->shards[i].batch));
        return slowest;
}

/* Return: the length of a step in ms; negative errno as a negative number. */
static double cut(const struct job *job, struct speeds *speeds, struct err *err)
{
        struct shards_plan plan;
        int r;

        if (!job_shares_follow_speeds(job))
                return cut_equally(speeds, job->global_batch);
        r = shards_plan(speeds->workers, speeds->count, job->global_batch, speeds->shards, &plan, err);
        return r < 0 ? r : plan.step_ms;
}

double job_plan_step_ms(const struct job_plan_question *question, const struct job_state *state)
{
        struct speeds speeds;
        double step = INFINITY;

        if (gather_speeds(question, state, &speeds) == 0) {
                step = cut(question->job, &speeds, NULL);
                /* one that gets nothing does not shorten the step, even if it does not lengthen it */
                for (size_t i = 0; i < speeds.count && step >= 0; i++)
                        step = speeds.shards[i].batch == 0 ? -1 : step;
        }
        speeds_free(&speeds);
        return step < 0 ? INFINITY : step;
}

int job_plan_share(const struct job_plan_question *question, struct job_state *state, struct err *err)
{
        struct speeds speeds;
        double step;
        size_t n = 0;

        if (gather_speeds(question, state, &speeds) < 0) {
                speeds_free(&speeds);
                return err_set(err, -ENOMEM, "no memory for the shares");
        }
        step = speeds.count == 0 ? 0 : cut(question->job, &speeds, err);
        if (step < 0) {
                speeds_free(&speeds);
                return err_wrap(err, (int) step, "shares");
        }
        shards_employ_all(speeds.shards, speeds.count); /* a worker of a fixed count is always used */
        for (size_t i = 0; i < state->group_count; i++) {
                struct job_group *group = &state->groups[i];

                group->batch = 0;
                group->source = group->server ? JOB_SPEED_ASSUMED : speeds.source;
                group->samples_per_s = 0;
                for (uint32_t k = 0; !group->server && k < group->ranks; k++, n++) {
                        double ms = shards_ms(&speeds.workers[n], (double) speeds.shards[n].batch);

                        group->batch += speeds.shards[n].batch;
                        if (speeds.source != JOB_SPEED_ASSUMED && ms > 0)
                                group->samples_per_s += (double) speeds.shards[n].batch * 1000 / ms;
                }
                group->weight = (double) group->batch / (double) question->job->global_batch;
        }
        speeds_free(&speeds);
        return 0;
}
