/* Pipeline ranks: which ranks of a split are a pipeline together. The layers of all ranks are one list, in
 * the order of the ranks: a rank whose layers begin with layer 0 begins another pipeline, a replica of the
 * model, and the ranks up to the next such one are its stages.
 *
 *         ranks    0    1    2    3    4
 *         layers  0:5  6:9  0:3  4:7  8:9         two pipelines: ranks 0 and 1; 2, 3 and 4
 *
 * Trainer, launcher, printed plans and the judgement of slow stages all ask here. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* pipeline_ranks_begin() - with this rank? @first_layer: of its layers. Rank 0 begins one, whatever it has.
 */
bool pipeline_ranks_begin(size_t rank, uint64_t first_layer);

/* The first layer of a rank. @context: the asker's */
typedef uint64_t pipeline_ranks_first(const void *context, size_t rank);

struct pipeline_ranks {
        size_t index, count; /* which pipeline, of how many */
        size_t first, end;   /* ranks, up to `end` - 1 */
};

/* pipeline_ranks_of() - the pipeline that a rank is in. @rank: < rank_count. O(rank_count). */
struct pipeline_ranks pipeline_ranks_of(size_t rank, size_t rank_count, pipeline_ranks_first *first_layer,
                                        const void *context);

/* pipeline_ranks_last_layer() - that a rank holds: the one before its neighbour's first, or the model's last
 * one where the neighbour begins another pipeline, or there is none. */
size_t pipeline_ranks_last_layer(size_t rank, size_t rank_count, size_t layer_count,
                                 pipeline_ranks_first *first_layer, const void *context);
