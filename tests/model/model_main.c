/* model [STEPS [SEED]]: random steps against two extenders; prints TAP, and the seed that shows a fault
 * again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/model/model.h"

#define STEPS_EACH 5000 /* of one world: another begins then */

int main(int argc, char **argv)
{
        uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
        uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t) time(NULL);
        uint64_t binds = 0, evictions = 0, events = 0;

        for (uint64_t done = 0; done < steps; done += STEPS_EACH, seed++) {
                struct chance chance = { .seed = seed };
                uint64_t each = steps - done < STEPS_EACH ? steps - done : STEPS_EACH;
                const char *wrong = model_run(&chance, each);

                binds += world.binds;
                evictions += world.evictions;
                events += world.events;
                if (wrong == NULL)
                        continue;
                printf("not ok 1 - %s: %s (again: %s %" PRIu64 " %" PRIu64 ")\n1..1\n", wrong, world.detail,
                       argv[0], each, seed);
                return 1;
        }
        printf("ok 1 - %" PRIu64 " steps: 0 chips booked twice, lost, or shrunk on an error (%" PRIu64
               " binds, %" PRIu64 " evictions, %" PRIu64 " events; last seed %" PRIu64 ")\n1..1\n",
               steps, binds, evictions, events, seed - 1);
        return 0;
}
