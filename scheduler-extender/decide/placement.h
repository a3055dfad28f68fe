/* Placement: which device group a role takes next. The one home of the four policies.
 *
 *                    a role's chips go to                        10 chips on groups with 8, 4 and 2 open
 *      uniform       the group that has the fewest of the job,   4 + 4 + 2
 *                    chip by chip
 *      largest-free  the group with most open chips, filled      8 + 2 (6 chips: 6, not 5 + 1)
 *      packed        the smallest group that holds all that is   8 + 2, two groups instead of three
 *                    left, else the largest, filled
 *      fastest       the group with the fastest chips, filled;   8 + 2 of chips that are alike
 *                    alike ones as packed
 *
 * Equal groups go by the name of their node, then by their order there: never by the order in which they
 * became known, so that the same job gets the same groups whoever asks. assignment.h beside it asks for a
 * job's roles (controller, `remuda run`, `remuda plan launch`, what-if), ledger_account_place() for the chips
 * of a pod within its node. Which *node* a pod goes to is scheduler-extender/decide/score.h's: there the unit
 * is a pod, which is never divided. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "job/spec/job.h"

enum placement {
        PLACEMENT_DEFAULT, /* the configured one */
        PLACEMENT_PACKED,
        PLACEMENT_UNIFORM,
        PLACEMENT_LARGEST_FREE,
        PLACEMENT_FASTEST,
        PLACEMENT_COUNT
};

/* A group that a role may take chips of. */
struct placement_choice {
        uint32_t open;  /* chips that may still be taken, those taken already left out */
        uint32_t taken; /* chips that the job has taken there */
        double speed;   /* of one chip, all in one unit; 0 = not known. Of interest to `fastest` alone */
        const char *node;
        uint32_t index; /* of the group on its node */
};

int placement_parse(const char *name, enum placement *ret); /* 0 or -EINVAL; "default" is not a name */

enum placement placement_of_job(const struct job *job); /* spec.placement */

/* placement_goes_before() - is `a` the one to take chips of before `b`, for a role that lacks `wanted`? */
bool placement_goes_before(enum placement placement, const struct placement_choice *a,
                           const struct placement_choice *b, uint32_t wanted);

/* placement_portion() - how many to take of the one that goes first, before all are compared again. */
uint32_t placement_portion(enum placement placement, const struct placement_choice *choice, uint32_t wanted);

/* placement_packs() - which of two numbers of open chips is the tighter place for `wanted`?
 * Return: < 0 the first, > 0 the second, 0 they are alike. */
int placement_packs(uint32_t a, uint32_t b, uint32_t wanted);

/* placement_fits_role() - does a group with these names match every selector of the role? */
bool placement_fits_role(const struct job_role *role, const char *runtime, const char *vendor,
                         const char *model, const char *group);
