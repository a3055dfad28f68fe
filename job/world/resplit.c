/* Stretches the plan's times to what is seen, asks for another cut, and weighs what it saves against the way
 * there. */
#include "job/world/resplit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/world/names.h"
#include "planner/splits/pipeline_ranks.h"
#include "planner/splits/pipeline_recut.h"

bool resplit_pays(const struct resplit_case *facts)
{
        return facts->next_ms > 0 && facts->now_ms >= RESPLIT_GAIN_MIN * facts->next_ms &&
               (facts->now_ms - facts->next_ms) * (double) facts->steps_left >=
                       RESPLIT_WORTH * facts->move_ms;
}

static uint64_t first_layer(const void *ranks, size_t rank)
{
        return ((const struct split_state_rank *) ranks)[rank].first;
}

static uint64_t next_first_layer(const void *ranks, size_t rank)
{
        return ((const struct split_state_rank *) ranks)[rank].next_first;
}

size_t resplit_last(const struct world *world, size_t rank)
{
        const struct split_state *split = &world->split;

        return pipeline_ranks_last_layer(rank, world->rank_count, split->problem->layer_count, first_layer,
                                         split->ranks);
}

size_t resplit_next_last(const struct world *world, size_t rank)
{
        const struct split_state *split = &world->split;

        return pipeline_ranks_last_layer(rank, world->rank_count, split->problem->layer_count,
                                         next_first_layer, split->ranks);
}

static struct pipeline_ranks pipeline_of(const struct world *world, size_t rank)
{
        return pipeline_ranks_of(rank, world->rank_count, first_layer, world->split.ranks);
}

/* Of a step, in proportion to the samples that the pipeline takes: as the trainer cuts its part. */
static unsigned microbatches_of(const struct world *world, size_t rank)
{
        uint64_t all = world->split.problem->microbatches, batch = 0, whole = 0;
        const struct pipeline_ranks of = pipeline_of(world, rank);

        for (size_t i = 0; i < world->rank_count; i++) {
                whole += world->ranks[i].batch;
                batch += i >= of.first && i < of.end ? world->ranks[i].batch : 0;
        }
        return (unsigned) (of.count > 1 ? pipeline_microbatches(all, batch, whole) : all);
}

/* Of all microbatches of a step. */
static double planned_ms(const struct world *world, size_t rank)
{
        const struct pipeline_problem *problem = world->split.problem;

        return pipeline_own_ms(&problem->workers[rank], world->split.ranks[rank].first,
                               resplit_last(world, rank) + 1) *
               microbatches_of(world, rank);
}

int resplit_begin(struct world *world, const struct pipeline_problem *problem, const size_t *first,
                  bool compared, struct err *err)
{
        if (problem == NULL || problem->worker_count != world->rank_count)
                return 0;
        world->split.ranks = calloc(world->rank_count + 1, sizeof(*world->split.ranks));
        if (world->split.ranks == NULL)
                return err_set(err, -ENOMEM, "no memory for the stages");
        world->split.problem = problem;
        world->split.compared = compared;
        for (size_t i = 0; i < world->rank_count; i++)
                world->split.ranks[i] =
                        (struct split_state_rank){ .first = first[i], .next_first = first[i], .stretch = 1 };
        for (size_t i = 0; i < world->rank_count; i++)
                world->seen[i].planned_ms = planned_ms(world, i);
        return 0;
}

double resplit_stretch(const struct world *world, size_t rank)
{
        const struct progress_rank *seen = &world->seen[rank];
        double busy_ms = seen->slow.named && seen->slow.steps > 0 ? seen->slow.busy_ms / seen->slow.steps
                                                                  : seen->usual_busy_ms;

        return seen->planned_ms > 0 && progress_believed(seen) ? busy_ms / seen->planned_ms : 0;
}

bool resplit_slow(const struct world *world, size_t rank, double usual, char *ret)
{
        const struct names_rank name = names_rank(world, rank);
        const struct progress_rank *seen = &world->seen[rank];
        size_t first = world->split.ranks[rank].first, last = resplit_last(world, rank);
        double times = resplit_stretch(world, rank), busy_ms = times * seen->planned_ms;

        if (world->reshards > 0 && times <= PROGRESS_SLOW_RATIO)
                return false;
        if (world->split.compared)
                (void) text_format(ret, WORLD_TEXT_BYTES,
                                   "%s, stage %zu with layers %zu:%zu, is slow: it computes %.4g ms a step, "
                                   "%.1f times the others, by what was planned for each",
                                   name.text, rank, first, last, busy_ms, times / usual);
        else
                (void) text_format(ret, WORLD_TEXT_BYTES,
                                   "%s, stage %zu with layers %zu:%zu, is slow: it computes %.4g ms a step, "
                                   "planned are %.4g: %.1f times as long, the stages' median is %.1f",
                                   name.text, rank, first, last, busy_ms, seen->planned_ms, times, usual);
        return true;
}

static bool is_named(const struct world *world)
{
        for (size_t i = 0; i < world->rank_count; i++)
                if (world->seen[i].slow.named)
                        return true;
        return false;
}

/* Is one that layers were taken from slow no more? Nothing else makes it that fast. Asked once the smoothed
 * time has come down to the last one, or layers would move to where they belong half-way. */
static bool is_well_again(const struct world *world)
{
        for (size_t i = 0; i < world->rank_count && world->reshards > 0; i++) {
                const struct progress_rank *seen = &world->seen[i];
                double times = resplit_stretch(world, i);

                if (times > 0 && times * PROGRESS_SLOW_RATIO < 1 &&
                    seen->usual_busy_ms < 1.1 * seen->step_busy_ms &&
                    seen->step >= seen->first_step + PROGRESS_SLOW_STEPS)
                        return true;
        }
        return false;
}

static bool may_ask(const struct world *world, uint64_t now_usec)
{
        return world->rules.resplit && world->split.problem != NULL && !world->split.moving &&
               now_usec - world->split.asked_usec >= RESPLIT_LOOK_USEC &&
               progress_may_reshard(world->reshards, world->reshard_usec, now_usec) &&
               (is_named(world) || is_well_again(world));
}

/* The same problem, by times that are seen. @ms, @workers: owned by the caller. Return: false where something
 * is not known. */
static bool stretch(struct world *world, struct pipeline_worker *workers, double *ms)
{
        const struct pipeline_problem *problem = world->split.problem;

        for (size_t w = 0; w < problem->worker_count; w++, ms += problem->layer_count) {
                double times = resplit_stretch(world, w);

                if (times <= 0)
                        return false;
                world->split.ranks[w].stretch = times;
                for (size_t i = 0; i < problem->layer_count; i++)
                        ms[i] = problem->workers[w].ms[i] * times; /* < 0 stays so: it may not go there */
                workers[w] = problem->workers[w];
                workers[w].begin_ms *= times;
                workers[w].ms = ms;
        }
        return true;
}

/* From being started to the first word of the last rank; a step more is what a stop takes. */
static double move_ms(const struct world *world, double step_ms)
{
        uint64_t last_usec = world->progress.began_usec;

        for (size_t i = 0; i < world->rank_count; i++)
                if (world->seen[i].first_usec > last_usec)
                        last_usec = world->seen[i].first_usec;
        return (double) (last_usec - world->progress.began_usec) / 1000 + step_ms;
}

/* Steps that are left; as many as were made, where that is not known. */
static uint64_t steps_left(const struct world *world)
{
        uint64_t step = 0, last = world->rules.last_step;

        for (size_t i = 0; i < world->rank_count; i++)
                if (world->seen[i].step > step)
                        step = world->seen[i].step;
        return last == 0 ? step : last > step ? last - step : 0;
}

/* One pipeline for itself, by times that are seen. @first: of its ranks; *ret_first: of the best cut */
static int recut(const struct world *world, const struct pipeline_worker *workers, struct pipeline_ranks of,
                 const size_t *first, size_t *ret_first, struct pipeline_recut *ret)
{
        struct pipeline_problem seen = *world->split.problem;

        seen.workers = workers + of.first;
        seen.worker_count = of.end - of.first;
        seen.microbatches = microbatches_of(world, of.first);
        return pipeline_recut(&seen, first + of.first, ret_first + of.first, ret);
}

/* The longest pipeline makes the step. One that is, as it is, no longer than that keeps its layers: to cut it
 * anew as well would move state, and give nothing. Two of them take 75 ms, of which 43 can be made, and 40,
 * of which 38 can: the step gets 43 ms, and the second one stays. */
static int plan(struct world *world, struct resplit_case *ret)
{
        size_t count = world->split.problem->worker_count;
        CLEANUP(free_p) struct pipeline_worker *workers = calloc(count, sizeof(*workers));
        CLEANUP(free_p) double *ms = calloc(count * world->split.problem->layer_count, sizeof(*ms));
        CLEANUP(free_p) size_t *first = calloc(2 * count, sizeof(*first));
        CLEANUP(free_p) struct pipeline_recut *cuts = calloc(count, sizeof(*cuts)); /* of each rank's */
        struct pipeline_recut all = { 0 };
        int r;

        if (workers == NULL || ms == NULL || first == NULL || cuts == NULL || !stretch(world, workers, ms))
                return -ENOMEM;
        for (size_t i = 0; i < count; i++)
                first[i] = world->split.ranks[i].first;
        for (size_t i = 0; i < count; i++) {
                const struct pipeline_ranks of = pipeline_of(world, i);

                r = of.first < i ? 0 : recut(world, workers, of, first, first + count, &cuts[i]);
                if (r != 0)
                        return r;
                cuts[i] = cuts[of.first];
                all.now_ms = fmax(all.now_ms, cuts[i].now_ms);
                all.next_ms = fmax(all.next_ms, cuts[i].next_ms);
        }
        for (size_t i = 0; i < count; i++)
                world->split.ranks[i].next_first =
                        cuts[i].now_ms <= all.next_ms ? first[i] : first[count + i];
        *ret = (struct resplit_case){ all.now_ms, all.next_ms, move_ms(world, all.now_ms),
                                      steps_left(world) };
        return 0;
}

static void say(const struct world *world, const struct resplit_case *facts, bool pays, char *ret)
{
        struct text layers = { .max_bytes = 120 }; /* there may be many */

        for (size_t i = 0; i < world->rank_count; i++)
                text_printf(&layers, "%s%zu:%zu", i == 0 ? "" : ",", world->split.ranks[i].next_first,
                            resplit_next_last(world, i));
        (void) text_format(ret, WORLD_TEXT_BYTES,
                           pays ? "the layers are cut anew by the times that are seen, from a checkpoint: a "
                                  "step of %.4g ms gets %.4g ms; %llu steps are left and moving takes about "
                                  "%.1f s; stages %s"
                                : "the layers stay as they are: the best split by the times that are seen "
                                  "makes of a step of %.4g ms %.4g ms; with %llu steps left and about %.1f s "
                                  "for moving that does not pay; stages would be %s",
                           facts->now_ms, facts->next_ms, (unsigned long long) facts->steps_left,
                           facts->move_ms / 1000, layers.data == NULL ? "" : layers.data);
        text_free(&layers);
}

enum resplit resplit_ask(struct world *world, uint64_t now_usec, char *ret_words)
{
        struct resplit_case facts;
        bool pays;

        if (!may_ask(world, now_usec))
                return RESPLIT_NOTHING;
        world->split.asked_usec = now_usec;
        if (plan(world, &facts) != 0)
                return RESPLIT_NOTHING;
        pays = resplit_pays(&facts);
        if (!pays && (world->split.said || !is_named(world)))
                return RESPLIT_NOTHING;
        world->split.said = true;
        world->split.moving = pays;
        world->split.step_ms = facts.now_ms;
        world->reshards += pays;
        world->reshard_usec = pays ? now_usec : world->reshard_usec;
        say(world, &facts, pays, ret_words);
        return pays ? RESPLIT_PAYS : RESPLIT_STAYS;
}

uint64_t resplit_patience_usec(const struct world *world)
{
        double usec = fmin(RESPLIT_STOP_STEPS * world->split.step_ms * 1000, RESPLIT_PATIENCE_MAX_SEC * 1e6);
        bool moves = world->split.moving && !world->cancelled && world->evicting == NULL;

        return moves && usec > (double) world->rules.grace_usec ? (uint64_t) usec : world->rules.grace_usec;
}

unsigned resplit_grace_seconds(const struct world *world, unsigned grace_seconds)
{
        bool may_move = world->rules.resplit && world->split.problem != NULL;

        return may_move && grace_seconds < RESPLIT_PATIENCE_MAX_SEC ? RESPLIT_PATIENCE_MAX_SEC
                                                                    : grace_seconds;
}
