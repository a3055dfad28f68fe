/* Namespace share: what one namespace may keep from the others before it uses it.
 *
 * The leases of its gangs (gang_share.h) and what is held for its pods that wait (backfill.h) keep, together,
 * within rules.lease_share_percent of the usable chips of each resource (0 = no limit). Leases come first:
 * theirs is who begins now. A hold beyond the share keeps pods of its own namespace alone off its chips,
 * which is all that a namespace alone in the cluster needs of it. One lease, or one hold, may be larger than
 * the share where the namespace keeps nothing else. Leases of TrainingJobs' plans are not counted: their
 * controller ends them. Nor are emergencies kept to a share: who may be one is an administrator's word.
 *
 * Example: 64 chips, 50 %, a namespace's pods wait for 8 chips each. Four have a hold that keeps everybody
 * off, a fifth none. While a gang of the namespace leases 16, two of the four holds are beyond the share.
 *
 * Pure. Chips of other namespaces play no part. */
#pragma once

#include "scheduler-extender/decide/rules.h"

#define NAMESPACE_SHARE_HOLDS 32

/* One look at all that is held. Zero-initialised but for the first two, which are borrowed. */
struct namespace_share {
        const struct ledger *ledger;
        const struct rules *rules;
        struct {
                const struct ledger_pod *pod;
                bool beyond;
        } holds[NAMESPACE_SHARE_HOLDS];
        size_t count;
        uint32_t resource; /* whose usable chips are known */
        uint64_t usable;
};

/* namespace_share_may_hold() - do the holds of the pod's namespace, with one for the pod, keep within the
 * share, or is there none but its gang's? O(holds). */
bool namespace_share_may_hold(struct namespace_share *share, const struct ledger_pod *pod);

/* namespace_share_hold() - there is a hold for the pod; one more than NAMESPACE_SHARE_HOLDS is not counted.
 * Return: is it beyond the share, with what the namespace leases? O(holds + jobs). */
bool namespace_share_hold(struct namespace_share *share, const struct ledger_pod *pod);

/* namespace_share_binding() - the holds that are not beyond a share. */
size_t namespace_share_binding(const struct namespace_share *share);

/* namespace_share_has() - is the share of @usable chips as large as that? */
bool namespace_share_has(const struct rules *rules, uint64_t usable, uint64_t chips);

/* namespace_share_usable() - usable chips of the resource in the cluster. */
uint64_t namespace_share_usable(const struct ledger *ledger, uint32_t resource);

/* namespace_share_leased_by() - chips that the job leases; namespace_share_leased() - that gangs lease whose
 * namespace is that of @key "namespace/name", but for the job @but (NULL = none). */
uint64_t namespace_share_leased_by(const struct ledger_job *job, uint32_t resource);
uint64_t namespace_share_leased(const struct ledger *ledger, const char *key, uint32_t resource,
                                const struct ledger_job *but);
