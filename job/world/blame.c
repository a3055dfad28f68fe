/* How much the end of a rank explains, then when it was. */
#include "job/world/blame.h"

#define SIGNALLED      128 /* and the signal's number: an exit code */
#define SIGNALS        64
#define SIGABRT_NUMBER 6
#define SIGPIPE_NUMBER 13

int blame_signal(int exit_code)
{
        return exit_code > SIGNALLED && exit_code <= SIGNALLED + SIGNALS ? exit_code - SIGNALLED : 0;
}

static int weight_of(const struct world_rank *rank)
{
        int signal = blame_signal(rank->exit_code);

        if (rank->asked)
                return 0;
        return signal != 0 && signal != SIGABRT_NUMBER && signal != SIGPIPE_NUMBER ? 2 : 1;
}

static bool explains(const struct world_rank *a, const struct world_rank *b)
{
        int weight = weight_of(a), other = weight_of(b);

        return weight != other ? weight > other : a->ended_usec < b->ended_usec;
}

size_t blame_find(const struct world *world)
{
        size_t found = world->rank_count;

        for (size_t i = 0; i < world->rank_count; i++) {
                const struct world_rank *rank = &world->ranks[i];

                if (rank->ended && rank->exit_code != 0 &&
                    (found == world->rank_count || explains(rank, &world->ranks[found])))
                        found = i;
        }
        return found;
}
