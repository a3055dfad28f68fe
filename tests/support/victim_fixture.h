/* Who would have to go, for the tests of what a pod may have. */
#pragma once

#include "scheduler-extender/emergency/take_back.h"

/* Who would be evicted for the request, be he preemptible or not; NULL = nobody, or more than one. */
static inline const struct ledger_pod *victim_for(struct ledger *ledger, const struct rules_context *ctx)
{
        const struct victim_rules anybody = { .takes = LEDGER_PODS_TAKES_ANYBODY, .now_usec = ctx->now_usec };
        struct asked asked = { .context = *ctx };
        const struct ledger_pod *victim = NULL;
        struct take_back plan;
        struct trial trial;

        trial_begin(&trial, ledger);
        if (take_back_plan(&trial, &asked, &anybody, &plan) == 0) {
                victim = plan.victims.count == 1 ? plan.victims.pods[0] : NULL;
                take_back_free(&plan);
        }
        trial_end(&trial);
        return victim;
}
