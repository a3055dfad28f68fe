/* The order of the ranks, the cut in it, and the shares in the caller's order again. */
#include "planner/speeds/speed_cut.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct rank {
        struct shard_worker worker;
        struct speed_cut_place place;
        size_t given; /* its place in the caller's order */
};

static int in_order(const void *a, const void *b)
{
        const struct rank *x = a, *y = b;
        int order = (x->place.entry > y->place.entry) - (x->place.entry < y->place.entry);

        if (order == 0)
                order = strcmp(x->place.node, y->place.node);
        if (order == 0)
                order = strcmp(x->place.group, y->place.group);
        return order != 0 ? order : (x->given > y->given) - (x->given < y->given);
}

int speed_cut(const struct shard_worker *workers, const struct speed_cut_place *places, size_t count,
              uint64_t batch, bool by_speed, struct shard *ret_shards, double *ret_step_ms, struct err *err)
{
        CLEANUP(free_p) struct rank *ranks = calloc(count + 1, sizeof(*ranks));
        CLEANUP(free_p) struct shard_worker *sorted = calloc(count + 1, sizeof(*sorted));
        CLEANUP(free_p) struct shard *shards = calloc(count + 1, sizeof(*shards));
        int r;

        if (ranks == NULL || sorted == NULL || shards == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu shares", count);
        for (size_t i = 0; i < count; i++)
                ranks[i] = (struct rank){ .worker = workers[i],
                                          .place = places != NULL ? places[i]
                                                                  : (struct speed_cut_place){ 0, "", "" },
                                          .given = i };
        qsort(ranks, count, sizeof(*ranks), in_order);
        for (size_t i = 0; i < count; i++)
                sorted[i] = ranks[i].worker;
        r = shards_cut(sorted, count, batch, by_speed, shards, ret_step_ms, err);
        for (size_t i = 0; r == 0 && i < count; i++)
                ret_shards[ranks[i].given] = shards[i];
        return r;
}
