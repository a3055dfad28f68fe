/* By the place of the rank. */
#include "job/world/names.h"

#include "base/text.h"

struct names_rank names_rank(const struct world *world, size_t rank)
{
        const struct world_place *place = &world->places[world->ranks[rank].place];
        struct names_rank name;

        if (world->rules.kind == WORLD_CHIPS)
                (void) text_format(name.text, sizeof(name.text), "rank %zu (%s on %s)", rank, place->runtime,
                                   place->name);
        else
                (void) text_format(name.text, sizeof(name.text), "rank %zu of group %s", rank, place->name);
        return name;
}
