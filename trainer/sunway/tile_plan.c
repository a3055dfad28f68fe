/* All combinations of a list of edges are tried; the depth follows from the room that is left. */
#include "trainer/sunway/tile_plan.h"

#include <math.h>

#include "base/cleanup.h"
#include "trainer/sunway/cpe.h"

#define DEPTH_LEAST 32 /* 128 bytes of a line at a time, where there is room: short transfers are slow */

static size_t aligned(size_t floats)
{
        return (floats * sizeof(float) + CPE_ALIGN_BYTES - 1) / CPE_ALIGN_BYTES * CPE_ALIGN_BYTES;
}

size_t tile_plan_room_bytes(const struct tile_plan *t, size_t buffers, bool transpose_b)
{
        return aligned(t->rows * t->cols) + buffers * aligned(t->rows * t->inner) +
               (buffers + transpose_b) * aligned(t->inner * t->cols);
}

static size_t tiles_along(size_t all, size_t each)
{
        return (all + each - 1) / each;
}

uint64_t tile_plan_traffic_bytes(const struct tile_plan *t, const struct kernels_matmul *m)
{
        uint64_t floats = (uint64_t) m->rows * m->inner * tiles_along(m->cols, t->cols) +
                          (uint64_t) m->inner * m->cols * tiles_along(m->rows, t->rows) +
                          (uint64_t) m->rows * m->cols * (m->accumulate ? 2 : 1);

        return floats * sizeof(float);
}

double tile_plan_usec(const struct tile_plan_rule *rule, const struct tile_plan *t)
{
        const struct kernels_matmul *m = &rule->m;
        size_t units = tiles_along(m->rows, t->rows) * tiles_along(m->cols, t->cols);
        double flops = 2.0 * (double) (t->rows * t->cols) * (double) m->inner *
                       (double) tiles_along(units, rule->cores);
        double computing = flops / rule->flops_per_usec;
        double bytes = (double) tile_plan_traffic_bytes(t, m);
        double busiest = bytes / (double) units * (double) tiles_along(units, rule->cores);
        double moving = rule->core_bytes_per_usec > 0 ? busiest / rule->core_bytes_per_usec
                                                      : bytes / rule->bytes_per_usec;

        return rule->buffers > 1 ? fmax(computing, moving) : computing + moving;
}

/* As deep as there is room. Return: false, what fits is not even so deep. */
static bool deepest(const struct tile_plan_rule *rule, size_t least, struct tile_plan *t)
{
        static const size_t depths[] = { 256, 128, 96, 64, 48, 32, 24, 16, 8 };

        for (size_t i = 0; i < ARRAY_SIZE(depths) && depths[i] >= least; i++) {
                t->inner = cpe_smaller(depths[i], rule->m.inner);
                if (tile_plan_room_bytes(t, rule->buffers, rule->m.transpose_b) <= rule->room_bytes)
                        return true;
        }
        return false;
}

/* Return: false, none fits that is so deep. */
static bool search(const struct tile_plan_rule *rule, size_t least, struct tile_plan *ret)
{
        static const size_t edges[] = { 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256 };
        double best_usec = INFINITY;
        uint64_t best_bytes = UINT64_MAX;

        for (size_t i = 0; i < ARRAY_SIZE(edges) * ARRAY_SIZE(edges); i++) {
                struct tile_plan t = { cpe_smaller(edges[i / ARRAY_SIZE(edges)], rule->m.rows),
                                       cpe_smaller(edges[i % ARRAY_SIZE(edges)], rule->m.cols), 0 };
                uint64_t bytes = tile_plan_traffic_bytes(&t, &rule->m);
                double usec = tile_plan_usec(rule, &t);

                if (usec > best_usec || (usec >= best_usec && bytes >= best_bytes) ||
                    !deepest(rule, least, &t))
                        continue;
                *ret = t;
                best_usec = usec;
                best_bytes = bytes;
        }
        return best_bytes < UINT64_MAX;
}

struct tile_plan tile_plan_best(const struct tile_plan_rule *rule)
{
        struct tile_plan best = { 1, 1, 1 };

        if (!search(rule, DEPTH_LEAST, &best))
                (void) search(rule, 1, &best);
        return best;
}
