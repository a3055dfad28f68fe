/* The SpeedTable of a run: of --store, or of the work folder, which is a store of that one object. Read
 * before the shares are cut; refined by what was measured, by what the steps take while the job runs, and at
 * its end.
 *
 * A device that several ranks share is a device of its own in the table: cores and memory are divided among
 * them. */
#include "job/run/run_speeds.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "job/run/run_programs.h"
#include "scheduler-extender/ledger/ledger.h"
#include "store/speed_store.h"

#define SEEN_WEIGHT     4.0
#define SPREAD_MIN      1.1 /* of the batch sizes a line was fitted to; a single one says nothing of alpha */
#define STORE_SPEC_MORE 8

static void store_spec(const struct run *run, char spec[RUN_PATH_BYTES + STORE_SPEC_MORE])
{
        if (run->options->store != NULL)
                (void) text_copy(spec, RUN_PATH_BYTES + STORE_SPEC_MORE, run->options->store);
        else
                (void) text_format(spec, RUN_PATH_BYTES + STORE_SPEC_MORE, "dir:%s", run->work);
}

static void name_devices(struct run *run)
{
        for (size_t i = 0; i < run->rank_count; i++) {
                struct run_rank *rank = &run->ranks[i];
                size_t sharing = 0;

                for (size_t k = 0; k < run->rank_count; k++)
                        sharing += strcmp(run->ranks[k].device, rank->device) == 0 &&
                                   strcmp(run->ranks[k].node, rank->node) == 0;
                speed_table_device(rank->speed_device,
                                   rank->device_model[0] == '\0' ? rank->vendor : rank->device_model,
                                   sharing);
        }
}

/* One batch size alone fits a line through the origin: good enough to choose a chip by, not to cut shares by.
 */
static bool knows_slope(const struct speed_fit *fit)
{
        return fit->weight <= 0 || /* written by hand */
               fit->batch_batch * fit->one > SPREAD_MIN * fit->batch * fit->batch;
}

/* Ranks on a group's chips, by the chips that they have there. */
static double ranks_a_chip(const struct run *run, size_t of)
{
        const struct run_rank *rank = &run->ranks[of];
        size_t ranks = 0, chips = 0;

        for (size_t i = 0; i < run->rank_count; i++) {
                const struct run_rank *other = &run->ranks[i];
                bool first = true;

                if (strcmp(other->group, rank->group) != 0 || strcmp(other->node, rank->node) != 0)
                        continue;
                for (size_t k = 0; k < i && first; k++)
                        first = strcmp(run->ranks[k].device, other->device) != 0 ||
                                strcmp(run->ranks[k].node, other->node) != 0;
                ranks++;
                chips += first;
        }
        return (double) ranks / (double) (chips > 0 ? chips : 1);
}

static void collect_members(const struct run *run, struct chip_speed_member *members)
{
        for (size_t i = run->server_count; i < run->rank_count; i++, members++) {
                const struct run_rank *rank = &run->ranks[i];
                bool again = i > run->server_count && strcmp(rank->group, rank[-1].group) == 0 &&
                             strcmp(rank->node, rank[-1].node) == 0;

                *members = (struct chip_speed_member){
                        .program = rank->speed_name,
                        .device = rank->device_model[0] != '\0' ? rank->device_model : rank->vendor,
                        .ranks_a_chip = again ? members[-1].ranks_a_chip : ranks_a_chip(run, i),
                        .figures = rank->figures,
                };
        }
}

/* Have all a line that is good enough to cut shares by, without measuring them anew? */
static bool all_know_slope(const struct run *run, const struct speed_table *table,
                           const struct chip_speed_member *members, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                double part;
                const struct speed_table_row *row = chip_speed_row(table, run->job.model, &members[i], &part);

                if (row == NULL || part > 1 || !knows_slope(&row->fit))
                        return false;
        }
        return true;
}

/* One that cannot be read is as an empty one, which is said. Return: can it? */
static bool read_table(struct run *run, struct speed_table *ret)
{
        char spec[RUN_PATH_BYTES + STORE_SPEC_MORE];
        struct err err = { 0 };

        *ret = (struct speed_table){ 0 };
        if (run->options->store == NULL && run->work[0] == '\0')
                return true;
        store_spec(run, spec);
        if (speed_store_read_now(spec, NULL, ret, &err) < 0) {
                run_event(run, "SpeedTableUnread", "%s", err.msg);
                *ret = (struct speed_table){ 0 };
                return false;
        }
        if (ret->trouble[0] != '\0' && !run->speeds_troubled)
                run_event(run, "SpeedTableIgnored", "%s", ret->trouble);
        run->speeds_troubled = run->speeds_troubled || ret->trouble[0] != '\0';
        return true;
}

bool run_speeds_find(struct run *run)
{
        size_t workers = run->rank_count - run->server_count;
        CLEANUP(free_p) struct chip_speed_member *members = calloc(workers + 1, sizeof(*members));
        CLEANUP(free_p) struct shard_worker *speeds = calloc(workers + 1, sizeof(*speeds));
        struct speed_table table;
        bool good;

        name_devices(run);
        if (members == NULL || speeds == NULL)
                return false; /* all are taken to be alike, as they begin */
        good = read_table(run, &table);
        collect_members(run, members);
        run->speeds = chip_speed_find(&table, run->job.model, members, workers, speeds);
        run->speeds.lacking += run->server_count;
        for (size_t i = 0; i < workers; i++) {
                struct run_rank *rank = &run->ranks[run->server_count + i];

                rank->speed = speeds[i];
                rank->speed_source = run->speeds.source;
                rank->precision = run->speeds.precision;
        }
        good = good && all_know_slope(run, &table, members, workers);
        speed_table_free(&table);
        return good;
}

void run_speeds_remark(struct run *run)
{
        const struct run_rank *lacking = &run->ranks[run->speeds.lacking];
        char member[DEVICE_MODEL_BYTES + 40], sentence[CHIP_SPEED_REMARK_BYTES];
        const char *word;

        if (run->rank_count - run->server_count < 2 || !job_shares_follow_speeds(&run->job))
                return;
        (void) text_format(member, sizeof(member), "rank %zu (%s)", run->speeds.lacking,
                           lacking->device_model[0] != '\0' ? lacking->device_model : lacking->vendor);
        word = chip_speed_remark(&run->speeds, member, lacking->node, sentence);
        if (word != NULL)
                run_event(run, word, "%s", sentence);
}

void run_speeds_saw(struct run_rank *rank, double alpha_ms, double beta_ms)
{
        rank->speed =
                (struct shard_worker){ .model = SHARD_AFFINE, .alpha_ms = alpha_ms, .beta_ms = beta_ms };
        rank->speed_source = CHIP_SPEED_MEASURED;
        rank->precision = CHIP_SPEED_NO_PRECISION;
}

void run_speeds_place(const struct run *run, struct ledger *ledger, struct ledger_program **ret_programs)
{
        char spec[RUN_PATH_BYTES + STORE_SPEC_MORE];
        struct speed_table table;

        *ret_programs = NULL;
        if (run->options->store == NULL && run->work[0] == '\0')
                return;
        store_spec(run, spec);
        if (speed_store_read_now(spec, NULL, &table, NULL) < 0)
                return; /* as an empty one; run_speeds_find() will say so */
        if (table.count > 0 && speed_table_add(&ledger->speeds, &table) == 0)
                *ret_programs = run_programs_read(run, ledger);
        speed_table_free(&table);
}

void run_speeds_keep(struct run *run, const struct speed_table_observation *observations, size_t count)
{
        char spec[RUN_PATH_BYTES + STORE_SPEC_MORE];
        struct err err = { 0 };

        store_spec(run, spec);
        if (count == 0 || speed_store_refine_now(spec, NULL, observations, count, &err) == 0 ||
            run->speeds_lost)
                return;
        run->speeds_lost = true;
        run_event(run, "SpeedTableUnwritten", "%s; what is learnt of the speeds is lost", err.msg);
}

void run_speeds_refine(struct run *run, uint64_t batches)
{
        size_t workers = run->rank_count - run->server_count, count = 0;
        CLEANUP(free_p) struct speed_table_observation *seen = calloc(workers + 1, sizeof(*seen));

        run->kept_usec = clock_monotonic_usec();
        if (seen == NULL || run->job.strategy == JOB_STRATEGY_SPLIT ||
            run->world.rank_count != run->rank_count)
                return;
        name_devices(run);
        for (size_t i = run->server_count; i < run->rank_count; i++) {
                struct run_rank *rank = &run->ranks[i];
                const struct progress_rank *seen_now = &run->world.seen[i];
                double samples, busy;

                if (rank->kept_samples < seen_now->since_samples) { /* of other shares */
                        rank->kept_samples = seen_now->since_samples;
                        rank->kept_busy_ms = seen_now->since_busy_ms;
                }
                samples = (double) (seen_now->samples - rank->kept_samples);
                busy = seen_now->busy_ms - rank->kept_busy_ms;
                if (samples < (double) (batches * rank->batch) || rank->batch == 0 || busy <= 0 ||
                    !progress_believed(seen_now))
                        continue;
                rank->kept_samples = seen_now->samples;
                rank->kept_busy_ms = seen_now->busy_ms;
                seen[count++] =
                        (struct speed_table_observation){ .program = rank->speed_name,
                                                          .model = run->job.model,
                                                          .device = rank->speed_device,
                                                          .batch = (double) rank->batch,
                                                          .step_ms = busy * (double) rank->batch / samples,
                                                          .weight = SEEN_WEIGHT / (double) workers };
        }
        run_speeds_keep(run, seen, count);
}
