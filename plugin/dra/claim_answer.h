/* Claim answer: the devices of a prepared claim, as the kubelet is told them: each result of the allocation
 * once, with the names of its CDI devices. A request's own is with the first of its results. */
#pragma once

#include "base/pb.h"
#include "plugin/dra/account/dra_state.h"
#include "plugin/dra/dra.pb-c.h"

/* claim_answer_fill() - in the arena, which says whether it had the memory.
 * @pool: of the node; borrowed by the answer */
void claim_answer_fill(const struct dra_state_claim *claim, const char *pool, struct pb_arena *arena,
                       Dra__Prepared *ret);
