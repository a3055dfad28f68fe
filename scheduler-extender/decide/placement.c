/* The four policies as one comparison of two device groups, and the selectors of a role. */
#include "scheduler-extender/decide/placement.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"

/* clang-format off */
static const char *const placement_names[] = {
        [PLACEMENT_DEFAULT]      = "default",
        [PLACEMENT_PACKED]       = "packed",
        [PLACEMENT_UNIFORM]      = "uniform",
        [PLACEMENT_LARGEST_FREE] = "largest-free",
        [PLACEMENT_FASTEST]      = "fastest",
};
/* clang-format on */
static_assert(ARRAY_SIZE(placement_names) == PLACEMENT_COUNT, "a placement without a name");

int placement_parse(const char *name, enum placement *ret)
{
        for (size_t i = PLACEMENT_DEFAULT + 1; i < PLACEMENT_COUNT; i++)
                if (strcmp(placement_names[i], name) == 0) {
                        *ret = (enum placement) i;
                        return 0;
                }
        return -EINVAL;
}

enum placement placement_of_job(const struct job *job)
{
        enum placement placement = PLACEMENT_DEFAULT;

        (void) placement_parse(job_placement_names[job->placement], &placement); /* one list of names */
        return placement;
}

int placement_packs(uint32_t a, uint32_t b, uint32_t wanted)
{
        bool a_holds = a >= wanted, b_holds = b >= wanted;

        if (a_holds != b_holds)
                return a_holds ? -1 : 1;
        if (a == b)
                return 0;
        return (a < b) == a_holds ? -1 : 1; /* the smallest that holds it, else the largest */
}

static int compare_open(const struct placement_choice *a, const struct placement_choice *b)
{
        return (a->open < b->open) - (a->open > b->open);
}

static int compare(enum placement placement, const struct placement_choice *a,
                   const struct placement_choice *b, uint32_t wanted)
{
        switch (placement) {
        case PLACEMENT_UNIFORM:
                return (a->taken > b->taken) - (a->taken < b->taken);
        case PLACEMENT_LARGEST_FREE:
                return compare_open(a, b);
        case PLACEMENT_FASTEST:
                if (a->speed != b->speed)
                        return a->speed > b->speed ? -1 : 1;
                return placement_packs(a->open, b->open, wanted);
        default:
                return placement_packs(a->open, b->open, wanted);
        }
}

bool placement_goes_before(enum placement placement, const struct placement_choice *a,
                           const struct placement_choice *b, uint32_t wanted)
{
        int order = compare(placement, a, b, wanted);

        if (order == 0)
                order = strcmp(a->node, b->node);
        return order != 0 ? order < 0 : a->index < b->index;
}

uint32_t placement_portion(enum placement placement, const struct placement_choice *choice, uint32_t wanted)
{
        if (placement == PLACEMENT_UNIFORM)
                return 1;
        return choice->open < wanted ? choice->open : wanted;
}

bool placement_fits_role(const struct job_role *role, const char *runtime, const char *vendor,
                         const char *model, const char *group)
{
        return (role->runtime[0] == '\0' || vendor_serves(runtime, role->runtime)) &&
               (role->vendor[0] == '\0' || strcmp(role->vendor, vendor) == 0) &&
               (role->group[0] == '\0' || strcmp(role->group, group) == 0) &&
               (role->model[0] == '\0' || job_role_model_matches(role->model, model));
}
