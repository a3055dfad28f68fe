/* Loop rule: what the environment says of the samples of a loop that calls libremuda-train, and what it says
 * that no such loop can follow, which is refused and never passed over. Pure but for getenv(). */
#pragma once

#include "base/err.h"
#include "trainer/data/sampler.h"

/* loop_rule_read() - of REMUDA_STRATEGY, _ROLE, _ORDER, _NEIGHBOUR_EXCHANGE, and the figures of other
 * strategies (REMUDA_STALENESS, _MICROBATCHES, _LAYERS).
 * @rule: its order and exchange are set.
 * Return: 0; -EINVAL: the sentence has the variable, its value and the remedy. */
int loop_rule_read(struct sampler_rule *rule, struct err *err);
