/* Claim plan: a planned claim of a job, seen or asked for, and the list of all of them. Pure but
 * for the heap. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/name_map.h"
#include "base/object_name.h"
#include "job/controller/claims/job_claim.h"
#include "job/controller/claims/planned_claim.h"

struct claim_plan {
        struct name_map_entry entry; /* "namespace/name" */
        struct planned_claim seen;
        bool asked;          /* a write of it is under way */
        bool shown;          /* ... and the watch has shown another version since it began */
        uint64_t again_usec; /* CLOCK_MONOTONIC: what was written is to be seen first, or this late; 0 = it is
                              */
        char node[OBJECT_NAME_DNS_BYTES]; /* of what was picked for it, and is not seen yet; "" = nothing */
        size_t pick_count;
        char picks[JOB_CLAIM_CHIPS_MAX][OBJECT_NAME_LABEL_BYTES];
};

struct claim_plan_list {
        struct name_map claims;
        uint64_t allocated, given_up; /* chips were written into it; another claim had one of them, too */
};

/* claim_plan_find() - or NULL. claim_plan_make() - made if there is none; NULL without memory. */
struct claim_plan *claim_plan_find(const struct claim_plan_list *list, const char *key);
struct claim_plan *claim_plan_make(struct claim_plan_list *list, const char *key);

/* claim_plan_see() - as its object is now. What was picked for it is in there, or was in vain; the same
 * once more says nothing of a write that is under way. */
void claim_plan_see(struct claim_plan *plan, const struct planned_claim *seen);

/* claim_plan_settle() - it goes if it is neither there nor on its way. */
void claim_plan_settle(struct claim_plan_list *list, struct claim_plan *plan);

/* claim_plan_picked() - was the device of the node picked for another one than this? O(claims). */
bool claim_plan_picked(const struct claim_plan_list *list, const struct claim_plan *than, const char *node,
                       const char *device);

void claim_plan_list_free(struct claim_plan_list *list);
