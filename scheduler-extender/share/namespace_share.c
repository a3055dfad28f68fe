/* Leases and holds are added up by the namespace of their keys. */
#include "scheduler-extender/share/namespace_share.h"

#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"

bool namespace_share_has(const struct rules *rules, uint64_t usable, uint64_t chips)
{
        return rules->lease_share_percent == 0 || chips * 100 <= usable * rules->lease_share_percent;
}

uint64_t namespace_share_usable(const struct ledger *ledger, uint32_t resource)
{
        uint64_t chips = 0;

        for (uint32_t n = 0; n < ledger->node_count; n++)
                for (uint32_t g = 0; g < ledger->nodes[n]->group_count; g++)
                        if (ledger->nodes[n]->groups[g].resource == resource)
                                chips += ledger->nodes[n]->groups[g].usable;
        return chips;
}

uint64_t namespace_share_leased_by(const struct ledger_job *job, uint32_t resource)
{
        uint64_t chips = 0;

        for (const struct ledger_job_slot *slot = job->slots; slot != NULL; slot = slot->next_in_job)
                for (size_t i = 0; i < slot->request.item_count; i++)
                        chips += slot->request.items[i].resource == resource ? slot->request.items[i].chips
                                                                             : 0;
        return chips;
}

uint64_t namespace_share_leased(const struct ledger *ledger, const char *key, uint32_t resource,
                                const struct ledger_job *but)
{
        uint64_t chips = 0;

        for (size_t i = 0; i < LEDGER_JOB_BUCKETS && ledger->slot_total > 0; i++)
                for (const struct ledger_job *job = ledger->jobs[i]; job != NULL; job = job->next)
                        if (job != but && job->place_count == 0 && job->slots != NULL &&
                            ledger_pods_same_namespace(job->key, key))
                                chips += namespace_share_leased_by(job, resource);
        return chips;
}

static const struct request_item *asked(const struct ledger_pod *pod)
{
        return &pod->request.items[0];
}

static uint64_t usable(struct namespace_share *share, uint32_t resource)
{
        if (share->resource != resource)
                share->usable = namespace_share_usable(share->ledger, resource);
        share->resource = resource;
        return share->usable;
}

struct held {
        uint64_t own; /* for the pod and its gang */
        uint64_t others;
};

/* @all: also what is beyond the share, and so keeps nobody else waiting. */
static struct held held_for(const struct namespace_share *share, const struct ledger_pod *pod, bool all)
{
        struct held held = { .own = asked(pod)->chips };

        for (size_t i = 0; i < share->count; i++) {
                const struct ledger_pod *other = share->holds[i].pod;

                if ((share->holds[i].beyond && !all) || asked(other)->resource != asked(pod)->resource ||
                    !ledger_pods_same_namespace(other->key, pod->key))
                        continue;
                if (pod->job != NULL && other->job == pod->job)
                        held.own += asked(other)->chips;
                else
                        held.others += asked(other)->chips;
        }
        return held;
}

bool namespace_share_may_hold(struct namespace_share *share, const struct ledger_pod *pod)
{
        struct held held = held_for(share, pod, true);

        return held.others == 0 ||
               namespace_share_has(share->rules, usable(share, asked(pod)->resource), held.own + held.others);
}

bool namespace_share_hold(struct namespace_share *share, const struct ledger_pod *pod)
{
        uint32_t resource = asked(pod)->resource;
        uint64_t leased = namespace_share_leased(share->ledger, pod->key, resource, NULL);
        struct held held = held_for(share, pod, false);
        bool beyond =
                leased > 0 && !pod->request.emergency &&
                !namespace_share_has(share->rules, usable(share, resource), leased + held.own + held.others);

        if (share->count < NAMESPACE_SHARE_HOLDS) {
                share->holds[share->count].pod = pod;
                share->holds[share->count++].beyond = beyond;
        }
        return beyond;
}

size_t namespace_share_binding(const struct namespace_share *share)
{
        size_t count = 0;

        for (size_t i = 0; i < share->count; i++)
                count += !share->holds[i].beyond;
        return count;
}
