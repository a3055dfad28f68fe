/* A reserve that is wholly lent, for those who measure what taking it back costs: nodes of 8 chips full of
 * borrowers of 1 to 8, each up to 28 hours old, half of them or all in gangs of 2 to 8 over several
 * nodes. */
#pragma once

#include "base/random.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "tests/support/cluster_fixture.h"

#define LENT_NODE_CHIPS 8

/* Borrowers fill the node; every second one, or each, is of the gang that is being filled. */
static inline void lend_node(struct ledger *ledger, uint64_t *seed, bool all, const char *node,
                             uint64_t now_usec)
{
        static unsigned serial, gang, left;

        for (uint32_t open = LENT_NODE_CHIPS; open > 0; serial++) {
                uint32_t chips = 1u << random_below(seed, 4);
                char name[32], job[32];
                struct ledger_pod_facts facts;

                if (chips > open)
                        continue;
                (void) text_format(name, sizeof(name), "b%u", serial);
                (void) text_format(job, sizeof(job), "g%u", gang);
                facts = pod_of(ledger, name, chips);
                facts.node = node;
                facts.request.preemptible = true;
                facts.created_usec = now_usec - (1 + random_below(seed, 100000)) * 1000000;
                if (all || serial % 2 == 0) {
                        facts.job = job;
                        facts.request.gang_size = 2;
                        left = left == 0 ? 1 + (unsigned) random_below(seed, 7) : left - 1;
                        gang += left == 0;
                }
                (void) ledger_pods_set(ledger, &facts);
                open -= chips;
        }
}

static inline void lend_reserve(struct ledger *ledger, uint64_t *seed, unsigned nodes, bool all,
                                uint64_t now_usec)
{
        for (unsigned n = 0; n < nodes; n++) {
                char name[32];

                (void) text_format(name, sizeof(name), "r%05u", n);
                add_node(ledger, name, NODE_CLASS_ANY, "reserved", "H100", LENT_NODE_CHIPS, LENT_NODE_CHIPS);
                lend_node(ledger, seed, all, name, now_usec);
        }
}

/* An emergency: a pod by itself, or a gang of alike members, `name` with a number behind it each. With CPUs
 * for each member, or with chips alone. */
static inline void lent_emergency_with(struct ledger *ledger, const char *name, uint32_t members,
                                       uint32_t chips, int64_t cpu_milli, uint64_t created_usec)
{
        for (uint32_t m = 0; m < members; m++) {
                char member[48];
                struct ledger_pod_facts facts;

                (void) text_format(member, sizeof(member), "%s%u", name, m);
                facts = pod_of(ledger, member, chips);
                facts.request.emergency = true;
                facts.request.needs.cpu_milli = cpu_milli;
                facts.request.gang_size = members;
                facts.request.class_chips = (uint64_t) members * chips;
                facts.job = members > 1 ? name : NULL;
                facts.created_usec = created_usec;
                (void) ledger_pods_set(ledger, &facts);
        }
}

static inline void lent_emergency(struct ledger *ledger, const char *name, uint32_t members, uint32_t chips,
                                  uint64_t created_usec)
{
        lent_emergency_with(ledger, name, members, chips, 0, created_usec);
}
