/* A list of first layers, read from rank to rank. */
#include "planner/splits/pipeline_ranks.h"

bool pipeline_ranks_begin(size_t rank, uint64_t first_layer)
{
        return rank == 0 || first_layer == 0;
}

struct pipeline_ranks pipeline_ranks_of(size_t rank, size_t rank_count, pipeline_ranks_first *first_layer,
                                        const void *context)
{
        struct pipeline_ranks of = { .end = rank_count };

        for (size_t i = 0; i < rank_count; i++) {
                if (!pipeline_ranks_begin(i, first_layer(context, i)))
                        continue;
                if (i > rank && i < of.end)
                        of.end = i;
                of.index = i <= rank ? of.count : of.index;
                of.first = i <= rank ? i : of.first;
                of.count++;
        }
        return of;
}

size_t pipeline_ranks_last_layer(size_t rank, size_t rank_count, size_t layer_count,
                                 pipeline_ranks_first *first_layer, const void *context)
{
        uint64_t next = rank + 1 < rank_count ? first_layer(context, rank + 1) : 0;

        return (pipeline_ranks_begin(rank + 1, next) ? layer_count : (size_t) next) - 1;
}
