/* Step by step of each rank: its word, or its samples. */
#include "job/world/taken.h"

#include <math.h>

#define TAKEN_SHARE 0.25 /* of the difference to the share of before: so near is as told */

/* All have. */
static struct live take(struct world *world)
{
        struct live_state *state = &world->progress.live;

        state->under_way = state->off = false;
        state->looked = 0;
        state->count++;
        for (size_t i = 0; i < world->rank_count; i++) {
                progress_settle(&world->seen[i], world->ranks[i].batch, world->seen[i].shares_step);
                world->ranks[i].batch_before = world->ranks[i].batch;
                world->ranks[i].batch = world->ranks[i].batch_next;
                if (world_is_worker(world, i))
                        state->step = world->seen[i].shares_step;
        }
        return (struct live){ LIVE_TAKEN, .step = state->step, .before_ms = state->step_ms,
                              .after_ms = state->promised_ms };
}

/* A rank that has taken the shares, or as many as there are. */
static size_t first_to_take(const struct world *world)
{
        size_t i = 0;

        while (i < world->rank_count &&
               (!world_is_worker(world, i) || world->seen[i].shares_step < world->progress.live.step))
                i++;
        return i;
}

/* One that does not say which shares it uses: its last steps, all of them since the told one, have as many
 * samples as it was told. Example: told 22 instead of 16, 22 a step are those, 16 are not, and neither is the
 * last step of an epoch with 9; the next one will say. */
static bool has_taken(const struct world *world, size_t i)
{
        const struct progress_rank *seen = &world->seen[i];
        double steps = seen->latest.steps, now = (double) world->ranks[i].batch,
               next = (double) world->ranks[i].batch_next;

        return steps > 0 && (double) seen->step + 1 >= (double) world->progress.live.step + steps &&
               (now == next || fabs(seen->latest.samples / steps - next) <= TAKEN_SHARE * fabs(next - now));
}

static void see_who_has_taken(struct world *world)
{
        uint64_t told = world->progress.live.step;

        for (size_t i = 0; i < world->rank_count; i++)
                if (world_is_worker(world, i) && world->seen[i].live && !world->seen[i].says_shares &&
                    world->seen[i].shares_step < told && has_taken(world, i))
                        progress_take(&world->seen[i], told);
}

/* They were told: who has taken them, and when? One that has made a step beyond the one since which another
 * uses them, and says that it had those of before, trains on samples of the other's. One that says nothing is
 * waited for: it may have taken them; also one whose samples alone speak. */
struct live taken_judge(struct world *world)
{
        struct live_state *state = &world->progress.live;
        size_t first, late = world->rank_count;
        bool all = true;

        see_who_has_taken(world);
        first = first_to_take(world);
        for (size_t i = 0; i < world->rank_count; i++) {
                const struct progress_rank *seen = &world->seen[i];

                if (!world_is_worker(world, i) || seen->shares_step >= state->step)
                        continue;
                all = false;
                if (first < world->rank_count && seen->says_shares && world->seen[first].says_shares &&
                    seen->step > world->seen[first].shares_step)
                        return (struct live){ LIVE_UNLIKE, .rank = i, .other = first };
                if ((double) seen->step + 1 > (double) (state->step + LIVE_UNTAKEN) + seen->latest.steps &&
                    late == world->rank_count)
                        late = i;
        }
        if (all)
                return take(world);
        if (state->off || late == world->rank_count)
                return (struct live){ .kind = LIVE_NOTHING };
        state->off = true;
        return (struct live){ LIVE_UNTAKEN_BY, .rank = late, .step = state->step };
}

struct live taken_unlike(const struct world *world)
{
        size_t first = world->rank_count;

        for (size_t i = 0; i < world->rank_count; i++) {
                if (!world_is_worker(world, i) || !world->seen[i].says_shares)
                        continue;
                if (first == world->rank_count)
                        first = i;
                if (world->seen[i].shares_step != world->seen[first].shares_step)
                        return (struct live){ LIVE_UNLIKE, .rank = i, .other = first };
        }
        return (struct live){ .kind = LIVE_NOTHING };
}
