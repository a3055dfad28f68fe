/* Plans the shares anew, by lines stretched to what is seen, and compares the slowest steps. */
#include "job/world/recut.h"

#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "planner/shards/shards.h"

#define RATE_MIN 1e-9 /* samples a millisecond that a line may stand for */
#define RATE_MAX 1e12

struct recut_line recut_stretch(double alpha_ms, double beta_ms, double samples, double seen_ms)
{
        double plan = alpha_ms + beta_ms * samples;

        if (plan <= 0 || beta_ms <= 0)
                return (struct recut_line){ 0, seen_ms / samples };
        return (struct recut_line){ alpha_ms * seen_ms / plan, beta_ms * seen_ms / plan };
}

bool recut_line(const struct world *world, size_t rank, struct recut_line *ret)
{
        const struct world_rank *planned = &world->ranks[rank];
        double batch = (double) planned->batch, seen = world->seen[rank].usual_busy_ms;

        *ret = (struct recut_line){ planned->alpha_ms, planned->beta_ms };
        if (seen <= 0 || batch <= 0)
                return planned->beta_ms > 0;
        *ret = recut_stretch(planned->alpha_ms, planned->beta_ms, batch, seen);
        return true;
}

static bool is_learned(const struct world *world, size_t rank, struct recut_line *ret)
{
        struct window_sum sum;

        return (window_of(&world->seen[rank].window, WINDOW_LEAST, &sum) || world->progress.live.step > 0) &&
               recut_line(world, rank, ret) && ret->beta_ms * RATE_MIN < 1 && ret->beta_ms * RATE_MAX > 1;
}

bool recut_learned(const struct world *world, struct recut_line *ret)
{
        double slowest = 0;

        for (size_t i = 0; i < world->rank_count; i++) {
                ret[i] = (struct recut_line){ 0 };
                if (!world_is_worker(world, i) || !progress_believed(&world->seen[i]))
                        continue;
                if (!is_learned(world, i, &ret[i]))
                        return false;
                slowest = fmax(slowest, ret[i].alpha_ms + ret[i].beta_ms * (double) world->ranks[i].batch);
        }
        for (size_t i = 0; i < world->rank_count; i++) {
                if (!world_is_worker(world, i) || progress_believed(&world->seen[i]))
                        continue;
                if (world->ranks[i].batch == 0)
                        return false;
                ret[i].beta_ms = slowest / (double) world->ranks[i].batch;
        }
        return slowest > 0;
}

double recut_gain(const struct world *world)
{
        CLEANUP(free_p) struct shard_worker *workers = calloc(world->rank_count + 1, sizeof(*workers));
        CLEANUP(free_p) struct shard *shards = calloc(world->rank_count + 1, sizeof(*shards));
        double slowest = 0, next = 0;
        size_t count = 0;

        for (size_t i = 0; workers != NULL && shards != NULL && i < world->rank_count; i++) {
                struct recut_line line;

                if (!world_is_worker(world, i))
                        continue;
                if (!recut_line(world, i, &line) || !progress_believed(&world->seen[i]))
                        return 0;
                workers[count++] = (struct shard_worker){ .model = SHARD_AFFINE,
                                                          .alpha_ms = line.alpha_ms,
                                                          .beta_ms = line.beta_ms };
                if (world->seen[i].usual_busy_ms > slowest)
                        slowest = world->seen[i].usual_busy_ms;
        }
        if (count == 0 ||
            shards_cut(workers, count, world->rules.global_batch, true, shards, &next, NULL) < 0 || next <= 0)
                return 0;
        return slowest / next;
}
