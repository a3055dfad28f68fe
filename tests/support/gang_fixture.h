/* Members of the job `train`, and three nodes of eight chips for them, for the tests of gangs. */
#pragma once

#include "scheduler-extender/decide/gang.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

static uint64_t now_usec; /* three_nodes() sets it back */

static inline struct ledger_pod_facts member(struct ledger *l, const char *name, uint32_t chips,
                                             uint32_t size)
{
        struct ledger_pod_facts facts = pod_of(l, name, chips);

        facts.job = "train";
        facts.request.gang_size = size;
        facts.request.class_chips = (uint64_t) chips * size;
        return facts;
}

/* Members m-0, m-1... that wait in the store; the first is told. */
static inline struct ledger_pod_facts members_there(struct ledger *l, uint32_t chips, uint32_t size,
                                                    int there)
{
        static char names[16][8];

        for (int i = 0; i < there; i++) {
                struct ledger_pod_facts m;

                (void) text_format(names[i], sizeof(names[i]), "m-%d", i);
                m = member(l, names[i], chips, size);
                assert_int_equal(ledger_pods_set(l, &m), 0);
        }
        return member(l, "m-0", chips, size);
}

static inline struct ledger *three_nodes(void)
{
        now_usec = 1000000;
        struct ledger *l = test_ledger();

        ledger_chips_mark(l, GPU);
        add_node(l, "a", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "c", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        return l;
}

/* What the node is told of the member, "" = nothing is against it. @keep: the plan stays as a lease */
static inline const char *gang_word(struct ledger *l, const struct ledger_pod_facts *facts, const char *node,
                                    bool keep)
{
        struct ledger_job *job = ledger_jobs_refer(l, facts->namespace_, facts->job);
        struct rules_context ctx = { .ledger = l,
                                     .rules = &fixture_rules,
                                     .request = &facts->request,
                                     .job = job,
                                     .self = ledger_pods_find(l, facts->namespace_, facts->name),
                                     .created_usec = facts->created_usec,
                                     .now_usec = now_usec };
        struct gang_demand demand = { .kinds = facts->kind_count > 0 ? facts->kinds : NULL,
                                      .kind_count = facts->kind_count,
                                      .keep = keep };
        const char *word;

        assert_non_null(job);
        rules_prepare(&ctx);
        assert_true(gang_prepare(l, &ctx, job, &demand) >= 0);
        word = reason_text(rules_judge(&ctx, node_of(l, node)))->word;
        ledger_jobs_release(l, job);
        return word;
}
