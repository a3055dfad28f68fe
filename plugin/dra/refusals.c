/* Refusals: which refused claims are told as events. */
#include "plugin/dra/refusals.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static struct refusals_namespace *find(struct refusals *refusals, const char *name)
{
        struct refusals_namespace *oldest = &refusals->namespaces[0];

        for (size_t i = 0; i < REFUSALS_NAMESPACES; i++) {
                struct refusals_namespace *at = &refusals->namespaces[i];

                if (strcmp(at->name, name) == 0)
                        return at;
                if (at->full_usec < oldest->full_usec)
                        oldest = at;
        }
        *oldest = (struct refusals_namespace){ .full_usec = 0 };
        (void) text_copy(oldest->name, sizeof(oldest->name), name);
        return oldest;
}

/* Where it is noted, or was; its place is the claim's that was told longest ago. */
static struct refusals_claim *find_claim(struct refusals_namespace *in, const char *uid)
{
        struct refusals_claim *oldest = &in->told[0];

        for (size_t i = 0; i < ARRAY_SIZE(in->told); i++) {
                if (strcmp(in->told[i].uid, uid) == 0)
                        return &in->told[i];
                if (in->told[i].told_usec < oldest->told_usec)
                        oldest = &in->told[i];
        }
        return oldest;
}

/* A bucket that one more drop makes full later: past the burst it is too full. */
bool refusals_tell(struct refusals *refusals, const char *namespace_, const char *uid, uint64_t now_usec)
{
        struct refusals_namespace *in = find(refusals, namespace_);
        struct refusals_claim *claim = find_claim(in, uid);
        uint64_t full = in->full_usec > now_usec ? in->full_usec : now_usec;

        if (strcmp(claim->uid, uid) == 0 && now_usec < claim->told_usec + REFUSALS_AGAIN_USEC)
                return false;
        if (full + REFUSALS_PERIOD_USEC > now_usec + REFUSALS_BURST * REFUSALS_PERIOD_USEC)
                return false;
        in->full_usec = full + REFUSALS_PERIOD_USEC;
        (void) text_copy(claim->uid, sizeof(claim->uid), uid);
        claim->told_usec = now_usec;
        return true;
}
