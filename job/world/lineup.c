/* The places of the next world, from what is known of each. */
#include "job/world/lineup.h"

#include <string.h>

#include "base/text.h"

bool lineup_lacks(const struct world_place *place)
{
        return !place->spare && !world_is_there(place);
}

bool lineup_is_replaced(const struct world *world, const struct world_place *place)
{
        return place->stand_in != WORLD_NOBODY && world->rules.migrate;
}

static bool stands_in(const struct world *world, size_t spare)
{
        for (size_t i = 0; i < world->place_count; i++)
                if (lineup_lacks(&world->places[i]) && lineup_is_replaced(world, &world->places[i]) &&
                    world->places[i].stand_in == (int) spare)
                        return true;
        return false;
}

static bool may_stand_in(const struct world *world, const struct world_place *spare,
                         const struct world_place *lost)
{
        for (size_t i = 0; i < world->place_count; i++)
                if (world->places[i].stand_in == (int) (spare - world->places))
                        return false;
        return spare->spare && world_is_there(spare) && spare->server == lost->server &&
               strcmp(spare->runtime, lost->runtime) == 0 && spare->chips >= lost->chips;
}

void lineup_offer(struct world *world)
{
        for (size_t i = 0; i < world->place_count; i++)
                world->places[i].stand_in = WORLD_NOBODY;
        for (size_t i = 0; i < world->place_count; i++) {
                struct world_place *lost = &world->places[i];
                size_t spare = 0;

                if (!lineup_lacks(lost))
                        continue;
                while (spare < world->place_count && !may_stand_in(world, &world->places[spare], lost))
                        spare++;
                if (spare == world->place_count)
                        continue;
                lost->stand_in = (int) spare;
                (void) text_copy(lost->stand_in_name, sizeof(lost->stand_in_name), world->places[spare].name);
        }
}

/* A chip's stand-in is no place of the world: the place itself has the other chip then. */
bool lineup_takes_part(const struct world *world, size_t index)
{
        const struct world_place *place = &world->places[index];

        if (place->spare)
                return stands_in(world, index);
        return world_is_there(place) ||
               (world->rules.kind == WORLD_CHIPS && lineup_is_replaced(world, place));
}

uint64_t lineup_chips(const struct world *world, size_t role)
{
        uint64_t chips = 0;

        for (size_t i = 0; i < world->place_count; i++)
                if (world->places[i].role == role && lineup_takes_part(world, i))
                        chips += world->places[i].chips;
        return chips;
}

size_t lineup_needed(const struct world *world, size_t *ret_lacking)
{
        size_t needed = world->place_count;

        *ret_lacking = 0;
        for (size_t i = 0; i < world->place_count; i++) {
                const struct world_place *place = &world->places[i];

                if (!lineup_lacks(place) || lineup_is_replaced(world, place))
                        continue;
                ++*ret_lacking;
                if (needed == world->place_count &&
                    (place->server || lineup_chips(world, place->role) < place->role_min))
                        needed = i;
        }
        return needed;
}
