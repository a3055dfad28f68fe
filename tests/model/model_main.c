/* model [STEPS [SEED [FAILOVERS]]]: random steps against two extenders, then leaders that are killed; prints
 * TAP, and the seed that shows a fault again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/model/model.h"

/* Of one world: another begins then. */
#define STEPS_EACH     5000
#define FAILOVERS_EACH 500

static uint64_t binds, evictions, events;

/* Return: did it hold? */
static bool tell(int number, const char *wrong, const char *again, uint64_t steps, uint64_t seed,
                 unsigned failovers)
{
        binds += world.binds;
        evictions += world.evictions;
        events += world.events;
        if (wrong != NULL)
                printf("not ok %d - %s: %s (again: %s %" PRIu64 " %" PRIu64 " %u)\n1..%d\n", number, wrong,
                       world.detail, again, steps, seed, failovers, number);
        return wrong == NULL;
}

static void tell_sums(uint64_t last_seed)
{
        printf(" (%" PRIu64 " binds, %" PRIu64 " evictions, %" PRIu64 " events; last seed %" PRIu64 ")\n",
               binds, evictions, events, last_seed);
        binds = evictions = events = 0;
}

static bool run_steps(uint64_t steps, uint64_t seed, const char *again)
{
        for (uint64_t done = 0; done < steps; done += STEPS_EACH, seed++) {
                struct chance chance = { .seed = seed };
                uint64_t each = steps - done < STEPS_EACH ? steps - done : STEPS_EACH;

                if (!tell(1, model_run(&chance, each), again, each, seed, 0))
                        return false;
        }
        printf("ok 1 - %" PRIu64 " steps: 0 chips booked twice, lost, or shrunk on an error", steps);
        tell_sums(seed - 1);
        return true;
}

static bool run_failovers(unsigned failovers, uint64_t seed, const char *again)
{
        for (unsigned done = 0; done < failovers; done += FAILOVERS_EACH, seed++) {
                struct chance chance = { .seed = seed };
                unsigned each = failovers - done < FAILOVERS_EACH ? failovers - done : FAILOVERS_EACH;

                if (!tell(2, model_run_failovers(&chance, each), again, 0, seed, each))
                        return false;
        }
        printf("ok 2 - %u leaders killed before, between and after their writes: 0 chips booked twice, 0 "
               "pods "
               "lost",
               failovers);
        tell_sums(seed - 1);
        return true;
}

int main(int argc, char **argv)
{
        uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
        uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t) time(NULL);
        unsigned failovers = argc > 3 ? (unsigned) strtoul(argv[3], NULL, 10) : 0;

        if (!run_steps(steps, seed, argv[0]) || (failovers > 0 && !run_failovers(failovers, seed, argv[0])))
                return 1;
        printf("1..%d\n", failovers > 0 ? 2 : 1);
        return 0;
}
