/* A stopped rank, one that is stuck in the kernel, or one that is silent: who holds up the others. */
#include "job/world/hung.h"

#include "base/text.h"
#include "job/world/names.h"

#define HANG_REMEDY "; where a step may take so long, give a larger spec.restart.hangSeconds"

static bool is_ahead(const struct progress_rank *a, const struct progress_rank *b)
{
        return a->epoch != b->epoch ? a->epoch > b->epoch : a->step > b->step;
}

size_t hung_find(const struct world *world, uint64_t now_usec)
{
        const struct progress_limits limits = { .hang_usec = world->rules.hang_usec,
                                                .last_step = world->rules.last_step,
                                                .speaks = world->rules.speaks };
        size_t stopped = world->rank_count, stuck = world->rank_count, hung;

        for (size_t i = 0; i < world->rank_count; i++) {
                const struct world_rank *rank = &world->ranks[i];

                if (!rank->ended && rank->stopped_usec > 0 &&
                    (stopped == world->rank_count || rank->stopped_usec < world->ranks[stopped].stopped_usec))
                        stopped = i;
                if (!rank->ended && rank->stuck && stuck == world->rank_count)
                        stuck = i;
        }
        if (stopped < world->rank_count && now_usec - world->ranks[stopped].stopped_usec > limits.hang_usec)
                return stopped;
        hung = progress_hung(&world->progress, world->seen, world->rank_count, &limits, now_usec);
        if (hung == world->rank_count)
                return hung;
        if (stopped < world->rank_count)
                return stopped;
        /* one in the kernel that is ahead of the hung one only waits for it, as all others do */
        return stuck < world->rank_count && !is_ahead(&world->seen[stuck], &world->seen[hung]) ? stuck : hung;
}

void hung_words(const struct world *world, size_t hung, char *ret)
{
        const struct names_rank name = names_rank(world, hung);

        if (world->seen[hung].reported)
                (void) text_format(ret, WORLD_TEXT_BYTES,
                                   "%s has made no progress since step %llu" HANG_REMEDY, name.text,
                                   (unsigned long long) world->seen[hung].step);
        else
                (void) text_format(ret, WORLD_TEXT_BYTES, "%s hangs: it has not made one step" HANG_REMEDY,
                                   name.text);
}
