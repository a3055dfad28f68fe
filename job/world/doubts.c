/* A list of names and numbers, searched from the front: it is empty but for the rare case. */
#include "job/world/doubts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "job/world/world.h"

struct doubt {
        char place[WORLD_NAME_BYTES];
        size_t number; /* of the ranks in places of this name */
        enum progress_doubt why;
        double figure;
};

static const char *place_of(const struct world *world, size_t rank)
{
        return world->places[world->ranks[rank].place].name;
}

static size_t number_of(const struct world *world, size_t rank)
{
        size_t number = 0;

        for (size_t i = 0; i < rank; i++)
                number += strcmp(place_of(world, i), place_of(world, rank)) == 0;
        return number;
}

static const struct doubt *find(const struct world *world, size_t rank)
{
        size_t number = world->doubts.count > 0 ? number_of(world, rank) : 0;

        for (size_t i = 0; i < world->doubts.count; i++) {
                const struct doubt *doubt = &world->doubts.list[i];

                if (doubt->number == number && strcmp(doubt->place, place_of(world, rank)) == 0)
                        return doubt;
        }
        return NULL;
}

void doubts_keep(struct world *world)
{
        struct doubts *doubts = &world->doubts;

        for (size_t i = 0; i < world->rank_count; i++) {
                const struct progress_rank *seen = &world->seen[i];
                struct doubt *doubt = NULL;

                if (!progress_believed(seen) && find(world, i) == NULL)
                        doubt = array_add(&doubts->list, &doubts->count, NULL, sizeof(*doubt));
                if (doubt == NULL)
                        continue;
                doubt->number = number_of(world, i);
                doubt->why = seen->doubt;
                doubt->figure = seen->doubted;
                (void) text_copy(doubt->place, sizeof(doubt->place), place_of(world, i));
        }
}

void doubts_recall(struct world *world)
{
        for (size_t i = 0; world->doubts.count > 0 && i < world->rank_count; i++) {
                const struct doubt *doubt = find(world, i);

                if (doubt == NULL)
                        continue;
                progress_doubt(&world->seen[i], doubt->why, doubt->figure);
                world->seen[i].doubt_said = true;
        }
}

void doubts_free(struct doubts *doubts)
{
        free(doubts->list);
        *doubts = (struct doubts){ 0 };
}
