/* All nodes are judged, those that pass are compared. */
#include "scheduler-extender/explain/best_node.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/score.h"

int best_node(const struct rules_context *ctx, struct best_node *ret)
{
        uint32_t count = ctx->ledger->node_count, fitting = 0;
        CLEANUP(free_p) struct ledger_node **nodes = malloc((count + 1) * sizeof(struct ledger_node *));
        CLEANUP(free_p) struct score_tuple *tuples = malloc((count + 1) * sizeof(*tuples));
        CLEANUP(free_p) uint8_t *scores = malloc(count + 1);
        uint32_t best = 0;

        *ret = (struct best_node){ 0 };
        if (nodes == NULL || tuples == NULL || scores == NULL)
                return -ENOMEM;
        for (uint32_t i = 0; i < count; i++)
                if (rules_judge(ctx, ctx->ledger->nodes[i]) == REASON_NONE) {
                        nodes[fitting] = ctx->ledger->nodes[i];
                        score_tuple(ctx, nodes[fitting], &tuples[fitting]);
                        fitting++;
                }
        if (fitting == 0)
                return 0;
        if (score_rank(tuples, fitting, scores) < 0)
                return -ENOMEM;
        for (uint32_t i = 1; i < fitting; i++)
                if (score_order(&tuples[i], nodes[i], &tuples[best], nodes[best]) < 0)
                        best = i;
        *ret = (struct best_node){ .node = nodes[best], .score = scores[best], .of = fitting };
        return 0;
}
