/* The variables of a job that a loop of somebody else's follows, or refuses. */
#include "trainer/wrapper/loop_rule.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

/* The figures of other strategies, without their REMUDA_STRATEGY: nothing here would follow them. */
static int refuse_others(struct err *err)
{
        static const char *const figures[][2] = {
                { "REMUDA_STALENESS", "ps-ssp" },
                { "REMUDA_MICROBATCHES", "split" },
                { "REMUDA_LAYERS", "split" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
                const char *value = getenv(figures[i][0]);

                if (value != NULL && value[0] != '\0')
                        return err_set(
                                err, -EINVAL,
                                "%s '%.40s': it is for strategy %s, and all ranks of libremuda-train have "
                                "the whole model and add up their gradients in every step; leave it out",
                                figures[i][0], value, figures[i][1]);
        }
        return 0;
}

/* What a job says and a loop of its own cannot follow is refused; what concerns its samples is done. */
int loop_rule_read(struct sampler_rule *rule, struct err *err)
{
        const char *strategy = getenv("REMUDA_STRATEGY"), *role = getenv("REMUDA_ROLE"),
                   *order = getenv("REMUDA_ORDER"), *exchange = getenv("REMUDA_NEIGHBOUR_EXCHANGE"),
                   *levels = getenv("REMUDA_LEVELS");
        bool dealt = order != NULL && strcmp(order, "round-robin") == 0;

        if (strategy != NULL && strategy[0] != '\0' && strcmp(strategy, "allreduce") != 0)
                return err_set(
                        err, -EINVAL,
                        "REMUDA_STRATEGY '%.40s': all ranks of libremuda-train add up their gradients in "
                        "every step; write `strategy: allreduce` into the job",
                        strategy);
        if (role != NULL && role[0] != '\0' && strcmp(role, "worker") != 0)
                return err_set(err, -EINVAL,
                               "REMUDA_ROLE '%.40s': libremuda-train has workers alone; write `strategy: "
                               "allreduce` into the job",
                               role);
        if (order != NULL && order[0] != '\0' && !dealt && strcmp(order, "blocks") != 0)
                return err_set(err, -EINVAL, "REMUDA_ORDER '%.40s': blocks or round-robin is wanted", order);
        rule->order = dealt ? SAMPLER_ROUND_ROBIN : SAMPLER_BLOCKS;
        if (exchange != NULL && exchange[0] != '\0' &&
            (text_parse_double(exchange, &rule->exchange) < 0 ||
             !(rule->exchange >= 0 && rule->exchange <= 1)))
                return err_set(err, -EINVAL,
                               "REMUDA_NEIGHBOUR_EXCHANGE '%.40s': a number from 0 to 1 is wanted", exchange);
        if (levels != NULL && levels[0] != '\0' && strcmp(levels, "none") != 0 &&
            !text_starts_with(levels, "auto:"))
                return err_set(err, -EINVAL,
                               "REMUDA_LEVELS '%.40s': libremuda-train sums gradients in one level, as MPI "
                               "likes; leave spec.groups out of the job",
                               levels);
        return refuse_others(err);
}
