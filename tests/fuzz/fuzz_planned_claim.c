/* Any JSON as a claim that the controller planned: what is not a job's is nobody's, and of what is the next
 * step is one that leads somewhere. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/text.h"
#include "job/controller/claims/job_claim.h"
#include "job/controller/claims/planned_claim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct planned_claim *claim)
{
        struct job_group group = { .chips = claim->chips };
        enum planned_claim_step step;
        json_t *patch;

        (void) text_copy(group.node, sizeof(group.node), claim->node);
        if (!claim->there || claim->job[0] == '\0' || claim->chips > JOB_CLAIM_CHIPS_MAX)
                __builtin_trap();
        step = planned_claim_step(claim, &group, claim->owner, false);
        if (step == PLANNED_CLAIM_CREATE || step == PLANNED_CLAIM_TAKEN)
                __builtin_trap();
        if (planned_claim_step(claim, &group, "another", false) == PLANNED_CLAIM_READY &&
            strcmp(claim->owner, "another") != 0)
                __builtin_trap();
        patch = planned_claim_allocation(claim, "n", (const char *const[]){ "d" }, 1, 1);
        if (patch == NULL)
                __builtin_trap();
        json_decref(patch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *object = json_read((const char *) data, size, 0, NULL);
        struct planned_claim claim;

        if (planned_claim_decode(object, &claim))
                check(&claim);
        else if (claim.there || claim.job[0] != '\0')
                __builtin_trap();
        json_decref(object);
        return 0;
}
