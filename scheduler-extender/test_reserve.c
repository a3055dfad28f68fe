/* The look at emergencies, the plans of jobs among them: who is asked to go, whose turn it is, and what is
 * held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/timestamp.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/emergency/trial.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/reserve.h"
#include "tests/support/extender_bed.h"
#include "tests/support/lent_reserve.h"

#define BOUND(NODE, CHIPS)                                                                                   \
        "{\"spec\":{\"nodeName\":\"" NODE "\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"   \
        "\"nvidia.com/gpu\":\"" CHIPS "\"}}}]}}"
#define EMERGENCY                                                                                            \
        "{\"metadata\":{\"labels\":{\"remuda.dev/urgency\":\"emergency\"},\"creationTimestamp\":"            \
        "\"2026-11-21T10:00:00Z\"}}"

static void put_bound(struct extender_bed *b, const char *name, const char *object, const char *bound)
{
        char key[40];

        (void) text_format(key, sizeof(key), "Pod default/%s", name);
        memory_store_merge(b->memory, key, object);
        memory_store_merge(b->memory, key, bound);
}

/* It is gone then, or ought to be. */
static void delete_at(struct extender_bed *b, const char *name, uint64_t usec)
{
        char key[40], object[120], text[TIMESTAMP_BYTES];

        (void) text_format(key, sizeof(key), "Pod default/%s", name);
        (void) text_format(object, sizeof(object), "{\"metadata\":{\"deletionTimestamp\":\"%s\"}}",
                           timestamp_format(usec - usec % 1000000, text));
        memory_store_merge(b->memory, key, object);
}

/* Two full nodes of others, and a reserved one of which the borrowers one and two have four chips each. */
static struct extender_bed *begin_lent(void)
{
        struct extender_bed *b = extender_bed_begin(true);

        memory_store_merge(b->memory, "NodeAccelerators r", EXTENDER_BED_INVENTORY("r"));
        memory_store_merge(b->memory, "NodeAccelerators r", "{\"status\":{\"pool\":\"reserved\"}}");
        put_bound(b, "on-a", EXTENDER_BED_POD("on-a", ""), BOUND("a", "8"));
        put_bound(b, "on-b", EXTENDER_BED_POD("on-b", ""), BOUND("b", "8"));
        put_bound(b, "one", EXTENDER_BED_POD("one", ""), BOUND("r", "4"));
        put_bound(b, "two", EXTENDER_BED_POD("two", ""), BOUND("r", "4"));
        return b;
}

static void an_emergency_takes_the_reserve_back(void **state)
{
        struct extender_bed *b = begin_lent();
        struct rules *rules = &b->extender->cluster->options.rules;
        struct ledger_pod *q =
                (struct ledger_pod *) ledger_pods_find(cluster_ledger(b->extender->cluster), "default", "q");
        uint64_t now;

        (void) state;
        rules->takes = LEDGER_PODS_TAKES_NOBODY;
        memory_store_tell(b->memory);
        reserve_update(b->extender, extender_now(b->extender)); /* q waits, and may not evict */
        assert_int_equal(memory_store_count(b->memory, "evict"), 0);
        rules->takes = LEDGER_PODS_TAKES_BORROWERS;
        memory_store_refuse(b->memory, "evict", -EBUSY, "a budget forbids it");
        reserve_update(b->extender, extender_now(b->extender));
        EXTENDER_BED_WAIT(b, extender_bed_said(b, "result=-16 a budget forbids it"));
        assert_true(extender_bed_said(b, "take-back pod=default/q victims=1 chips=4"));
        memory_store_refuse(b->memory, NULL, 0, "");
        now = extender_now(b->extender);
        q->waited_usec = now - 1000000;
        reserve_update(b->extender, now);                          /* that one not again within a minute */
        assert_int_equal(q->waited_usec, now + rules->grace_usec); /* its hold begins when that one is gone */
        assert_false(backfill_had_its_time(q, rules, now + rules->grace_usec + rules->hold_usec - 1));
        assert_true(backfill_had_its_time(q, rules, now + rules->grace_usec + rules->hold_usec));
        q->waited_usec = now;
        EXTENDER_BED_WAIT(b, b->extender->metrics.evictions == 1);
        assert_int_equal(memory_store_count(b->memory, "evict Pod default/one"), 1);
        assert_int_equal(memory_store_count(b->memory, "evict Pod default/two"), 1);
        memory_store_tell(b->memory);
        reserve_update(b->extender, now + 200000000); /* it fits once that one is gone */
        assert_int_equal(memory_store_count(b->memory, "evict"), 2);
        extender_bed_free(b);
}

#define ASKS(CHIPS)                                                                                          \
        "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"" CHIPS  \
        "\"}}}]}}"

static void nobody_goes_for_a_place_that_a_budget_keeps(void **state)
{
        struct extender_bed *b = begin_lent();
        uint64_t now;

        (void) state;
        put_bound(b, "q", EXTENDER_BED_POD("q", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("8"));
        memory_store_refuse(b->memory, "try Pod default/two", -EBUSY, "429: the budget keep");
        memory_store_tell(b->memory); /* both would have to go */
        now = extender_now(b->extender);
        reserve_update(b->extender, now);
        EXTENDER_BED_WAIT(b, extender_bed_said(b, "spare pod=default/two 429: the budget keep"));
        assert_int_equal(memory_store_count(b->memory, "try Pod default/one"), 1);
        assert_int_equal(memory_store_count(b->memory, "event EvictionRefused default/q"), 1);
        assert_int_equal(b->extender->metrics.evictions_refused, 1);
        reserve_update(b->extender, now + 1000000); /* with two spared there is no such plan */
        assert_int_equal(memory_store_count(b->memory, "try Pod"), 2);
        assert_int_equal(memory_store_count(b->memory, "evict"), 0);
        memory_store_refuse(b->memory, NULL, 0, "");
        reserve_update(b->extender, now + 70000000);
        EXTENDER_BED_WAIT(b, b->extender->metrics.evictions == 2);
        extender_bed_free(b);
}

/* Each could go by himself, but not both: nobody is asked, and what cannot be read stops nobody. */
static void who_shares_a_budget_is_counted_together(void **state)
{
        struct extender_bed *b = begin_lent();
        uint64_t now;

        (void) state;
        put_bound(b, "q", EXTENDER_BED_POD("q", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("8"));
        memory_store_refuse(b->memory, "beside Pod default/two", -EBUSY, "the budget keep");
        memory_store_tell(b->memory);
        now = extender_now(b->extender);
        reserve_update(b->extender, now);
        EXTENDER_BED_WAIT(b, extender_bed_said(b, "spare pod=default/two the budget keep"));
        EXTENDER_BED_WAIT(b, memory_store_count(b->memory, "judge default") == 1);
        assert_int_equal(memory_store_count(b->memory, "beside Pod default/one"), 1);
        reserve_update(b->extender, now + 1000000);
        assert_int_equal(memory_store_count(b->memory, "evict"), 0);
        memory_store_refuse(b->memory, "judge", -EPERM, "not yours");
        reserve_update(b->extender, now + 70000000);
        EXTENDER_BED_WAIT(b, b->extender->metrics.evictions == 2);
        assert_true(extender_bed_said(b, "budgets not read: result=-1 not yours"));
        extender_bed_free(b);
}

#define JOB_OF(NAME, NODE)                                                                                   \
        "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"" NAME    \
        "\","                                                                                                \
        "\"namespace\":\"default\",\"uid\":\"u\"},\"spec\":{\"urgency\":\"emergency\",\"workers\":["         \
        "{\"runtime\":\"cuda\",\"chips\":8}],\"programs\":{\"cuda\":{\"image\":\"x\",\"command\":[\"/x\"]}}" \
        "},\"status\":{\"phase\":\"Starting\",\"world\":0,\"plan\":{\"samples\":0,\"notes\":[]},"            \
        "\"subtasks\":[{\"name\":\"w0-0\",\"role\":\"worker\",\"entry\":0,\"index\":0,\"incarnation\":0,"    \
        "\"node\":\"" NODE                                                                                   \
        "\",\"group\":\"g\",\"runtime\":\"cuda\",\"vendor\":\"nvidia\",\"model\":\"H100\","                  \
        "\"resource\":\"nvidia.com/gpu\",\"chips\":8,\"ranks\":8,\"firstRank\":0,\"batch\":256,\"weight\":"  \
        "1,\"speedSource\":\"assumed\",\"state\":\"Waiting\"}]}}"
#define JOB_ON(NODE) JOB_OF("j", NODE)

/* Emergencies that nothing helps use up the steps of every look; the youngest has his turn. */
static void who_was_not_come_to_has_his_turn(void **state)
{
        struct extender_bed *b = begin_lent();
        uint64_t now;

        (void) state;
        b->extender->reserve_steps = 0;
        put_bound(b, "q", EXTENDER_BED_POD("q", ""), EMERGENCY);
        put_bound(b, "e1", EXTENDER_BED_POD("e1", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("9"));
        put_bound(b, "e2", EXTENDER_BED_POD("e2", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("10"));
        memory_store_tell(b->memory);
        now = extender_now(b->extender);
        for (int looks = 0; looks < 3; looks++) /* each ends after one that takes steps */
                assert_int_equal(reserve_update(b->extender, now), looks == 2);
        assert_true(extender_bed_said(b, "take-back pod=default/q victims=1 chips=4"));
        extender_bed_free(b);
}

/* Nor do plans, which are served before, use up theirs. */
static void pods_have_their_turn_beside_plans(void **state)
{
        struct extender_bed *b = begin_lent();

        (void) state;
        b->extender->reserve_steps = 0;
        put_bound(b, "q", EXTENDER_BED_POD("q", ""), EMERGENCY);
        memory_store_merge(b->memory, "NodeAccelerators s", EXTENDER_BED_INVENTORY("s"));
        memory_store_merge(b->memory, "TrainingJob default/j", JOB_ON("s"));
        memory_store_tell(b->memory);
        assert_int_equal(cluster_ledger(b->extender->cluster)->slot_total, 1);
        (void) reserve_update(b->extender, extender_now(b->extender));
        assert_true(extender_bed_said(b, "take-back pod=default/q victims=1 chips=4"));
        extender_bed_free(b);
}

/* Where a look's steps do not last, plans take turns: each look goes on with those that had none. */
static void plans_take_turns(void **state)
{
        static const char *const names[] = { "a", "b", "c" };
        struct extender_bed *b = begin_lent();
        struct ledger *l = cluster_ledger(b->extender->cluster);

        (void) state;
        b->extender->reserve_steps = 0;
        memory_store_drop(b->memory, "Pod default/q");
        memory_store_merge(b->memory, "NodeAccelerators s", EXTENDER_BED_INVENTORY("s"));
        memory_store_merge(b->memory, "NodeAccelerators t", EXTENDER_BED_INVENTORY("t"));
        memory_store_merge(b->memory, "TrainingJob default/a", JOB_OF("a", "s"));
        memory_store_merge(b->memory, "TrainingJob default/b", JOB_OF("b", "r"));
        memory_store_merge(b->memory, "TrainingJob default/c", JOB_OF("c", "t"));
        memory_store_tell(b->memory);
        assert_int_equal(l->slot_total, 3);
        b->extender->plans_go_on = false;
        for (size_t look = 1; look <= 3; look++) {
                size_t looked_at = 0;

                assert_int_equal(reserve_update(b->extender, extender_now(b->extender)), look == 3);
                for (size_t i = 0; i < 3; i++)
                        looked_at += ledger_jobs_find(l, "default", names[i])->looked_at;
                assert_int_equal(looked_at, look);
        }
        assert_true(extender_bed_said(b, "take-back job=default/b victims=2 chips=8"));
        extender_bed_free(b);
}

static void a_plan_of_an_emergency_has_room_made(void **state)
{
        struct extender_bed *b = begin_lent();

        (void) state;
        memory_store_drop(b->memory, "Pod default/q"); /* the only one that is urgent is the job */
        memory_store_merge(b->memory, "TrainingJob default/j", JOB_ON("r"));
        EXTENDER_BED_WAIT(b, b->extender->metrics.evictions == 2);
        assert_int_equal(memory_store_count(b->memory, "evict Pod default/one"), 1);
        assert_int_equal(memory_store_count(b->memory, "evict Pod default/two"), 1);
        reserve_update(b->extender, extender_now(b->extender)); /* not again, as long as they go */
        assert_int_equal(memory_store_count(b->memory, "evict"), 2);
        extender_bed_free(b);
}

#define SUBTASK(NAME, INDEX, NODE, CHIPS, FIRST)                                                             \
        "{\"name\":\"" NAME "\",\"role\":\"worker\",\"entry\":0,\"index\":" INDEX                            \
        ",\"incarnation\":0,\"node\":\"" NODE                                                                \
        "\",\"group\":\"g\",\"runtime\":\"cuda\",\"vendor\":\"nvidia\",\"model\":\"H100\",\"resource\":"     \
        "\"nvidia.com/gpu\",\"chips\":" CHIPS ",\"ranks\":" CHIPS ",\"firstRank\":" FIRST                    \
        ",\"batch\":128,\"weight\":0.5,\"speedSource\":\"assumed\",\"state\":\"Waiting\"}"
#define JOB_THAT_BORROWS                                                                                     \
        "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"metadata\":{\"name\":\"j\","     \
        "\"namespace\":\"default\",\"uid\":\"u\"},\"spec\":{\"workers\":[{\"runtime\":\"cuda\",\"chips\":"   \
        "12}]"                                                                                               \
        ",\"programs\":{\"cuda\":{\"image\":\"x\",\"command\":[\"/"                                          \
        "x\"]}}},\"status\":{\"phase\":\"Starting\""                                                         \
        ",\"world\":0,\"plan\":{\"samples\":0,\"notes\":[]},\"subtasks\":[" SUBTASK(                         \
                "w0-0", "0", "r", "4", "0") "," SUBTASK("w0-1", "1", "s", "8", "4") "]}}"

/* A plan's place is its pod's as long as that is there, also in what is tried on. */
static void a_plan_gets_no_second_lease_for_a_pod_that_goes(void **state)
{
        struct extender_bed *b = begin_lent();

        (void) state;
        put_bound(b, "q", EXTENDER_BED_POD("q", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("4"));
        memory_store_drop(b->memory, "Pod default/two"); /* its chips are those of the job's first pod */
        memory_store_merge(b->memory, "NodeAccelerators s", EXTENDER_BED_INVENTORY("s"));
        memory_store_merge(b->memory, "TrainingJob default/j", JOB_THAT_BORROWS);
        put_bound(b, "j-w0-0", EXTENDER_BED_POD("j-w0-0", ""), BOUND("r", "4"));
        delete_at(b, "j-w0-0", extender_now(b->extender));
        memory_store_tell(b->memory);
        assert_int_equal(cluster_ledger(b->extender->cluster)->slot_total, 1);
        reserve_update(b->extender, extender_now(b->extender));
        assert_int_equal(memory_store_count(b->memory, "try Pod"), 0); /* what it leaves is enough */
        assert_int_equal(cluster_ledger(b->extender->cluster)->slot_total, 1);
        extender_bed_free(b);
}

#define OF_AMD(CHIPS)                                                                                        \
        "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"0\","    \
        "\"amd.com/gpu\":\"" CHIPS "\"}}}]}}"
#define OF_GANG(TIME)                                                                                        \
        ",\"labels\":{\"remuda.dev/urgency\":\"emergency\",\"remuda.dev/job\":\"h\"},\"annotations\":{"      \
        "\"remuda.dev/gang\":\"nvidia.com/gpu=8x1,amd.com/gpu=8x1\"},\"creationTimestamp\":"                 \
        "\"2026-11-21T10:00:0" TIME "Z\""
#define AMD_RESERVED                                                                                         \
        "{\"status\":{\"pool\":\"reserved\",\"groups\":[{\"name\":\"g\",\"vendor\":\"amd\",\"runtime\":"     \
        "\"rocm\",\"model\":\"MI300X\",\"resource\":\"amd.com/gpu\",\"fabric\":\"none\",\"total\":8,"        \
        "\"healthy\":8,\"free\":0,\"tflopsBf16\":100,\"memoryBytes\":85899345920}]}}"

/* Whichever of its members came last. */
static void a_gang_of_unlike_chips_has_each_kind_held(void **state)
{
        struct extender_bed *b = begin_lent();
        const struct ledger *ledger = cluster_ledger(b->extender->cluster);

        (void) state;
        memory_store_drop(b->memory, "Pod default/q");
        memory_store_merge(b->memory, "NodeAccelerators s", EXTENDER_BED_INVENTORY("s"));
        memory_store_merge(b->memory, "NodeAccelerators s", AMD_RESERVED);
        memory_store_tell(b->memory);
        put_bound(b, "three", EXTENDER_BED_POD("three", ",\"labels\":{}"), OF_AMD("8"));
        memory_store_merge(b->memory, "Pod default/three", "{\"spec\":{\"nodeName\":\"s\"}}");
        for (int turn = 0; turn < 2; turn++) {
                put_bound(b, "n", EXTENDER_BED_POD("n", OF_GANG("0")), ASKS("8"));
                if (turn == 0)
                        memory_store_tell(b->memory);
                put_bound(b, "m", EXTENDER_BED_POD("m", OF_GANG("1")), OF_AMD("8"));
                memory_store_tell(b->memory);
                reserve_update(b->extender, extender_now(b->extender));
                for (uint32_t i = 0; i < ledger->node_count; i++) {
                        const struct ledger_node *node = ledger->nodes[i];
                        struct request request = { .item_count = 1,
                                                   .items = { { node->groups[0].resource, 1 } } };
                        struct rules_context other = { .ledger = ledger,
                                                       .rules = cluster_rules(b->extender->cluster),
                                                       .request = &request };

                        if (node->reserved && rules_holder(&other, node) == NULL)
                                fail_msg("turn %d: on %s nothing is held", turn, node->name);
                }
                memory_store_drop(b->memory, "Pod default/n");
                memory_store_drop(b->memory, "Pod default/m");
                put_bound(b, "m", EXTENDER_BED_POD("m", OF_GANG("1")), OF_AMD("8"));
                memory_store_tell(b->memory);
        }
        extender_bed_free(b);
}

/* A finalizer keeps its pod: who waits is told once a minute, and the other borrower goes. */
static void who_should_be_gone_is_waited_for_no_longer(void **state)
{
        struct extender_bed *b = begin_lent();
        uint64_t now;

        (void) state;
        put_bound(b, "q", EXTENDER_BED_POD("q", ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}"),
                  ASKS("4"));
        now = extender_now(b->extender);
        delete_at(b, "one", now - 90000000);
        memory_store_tell(b->memory);
        reserve_update(b->extender, now);
        assert_int_equal(memory_store_count(b->memory, "try Pod default/two"), 1);
        reserve_update(b->extender, now + 1000000);
        assert_int_equal(memory_store_count(b->memory, "event EvictionOverdue default/q"), 1);
        assert_true(extender_bed_said(b, "overdue pod=default/one node=r"));
        extender_bed_free(b);
}

#define MANY 12

/* The steps last for one plan: who has a place is not planned again, and the next one has its turn. */
static void many_emergencies_have_their_turns(void **state)
{
        struct extender_bed *b = begin_lent();
        struct ledger *l = cluster_ledger(b->extender->cluster);
        uint64_t now = extender_now(b->extender), seed = 7;
        size_t looks = 0, served = 0;

        (void) state;
        memory_store_drop(b->memory, "Pod default/q");
        memory_store_tell(b->memory);
        lend_reserve(l, &seed, 100, true, now);
        for (size_t i = 0; i < MANY; i++) {
                char name[32];

                (void) text_format(name, sizeof(name), "fire%zu-", i);
                lent_emergency(l, name, i % 3 == 0 ? 3 : 1, 8, now + i);
        }
        b->extender->reserve_steps = MANY * 4 * 4 * TRIAL_NODE_STEPS;
        while (!reserve_update(b->extender, now) && looks++ < 2 * MANY)
                backfill_clear(l);
        for (const struct ledger_pod *pod = l->pending; pod != NULL; pod = pod->next_pending)
                served += pod->served;
        assert_int_equal(served, MANY / 3 * 3 + MANY - MANY / 3);
        assert_true(looks > 2); /* not all at once */
        extender_bed_free(b);
}

static enum reason judged(const struct extender_bed *b, const struct ledger_pod *self,
                          const struct request *request)
{
        struct ledger *l = cluster_ledger(b->extender->cluster);
        struct rules_context context = { .ledger = l,
                                         .rules = cluster_rules(b->extender->cluster),
                                         .request = request,
                                         .self = self,
                                         .created_usec = self == NULL ? UINT64_MAX : self->created_usec,
                                         .now_usec = extender_now(b->extender) };

        rules_prepare(&context);
        return rules_judge(&context, ledger_nodes_find(l, "r", 1));
}

/* Two of four chips on one node: what the older leaves is the younger's, and nobody else's. */
static void what_the_older_leaves_is_the_youngers(void **state)
{
        static const char *const created[] = { ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"},"
                                               "\"creationTimestamp\":\"2026-11-21T10:00:00Z\"",
                                               ",\"labels\":{\"remuda.dev/urgency\":\"emergency\"},"
                                               "\"creationTimestamp\":\"2026-11-21T10:00:01Z\"" };
        struct extender_bed *b = begin_lent();
        struct ledger *l = cluster_ledger(b->extender->cluster);
        const struct ledger_pod *older, *younger;

        (void) state;
        memory_store_drop(b->memory, "Pod default/q");
        put_bound(b, "e1", EXTENDER_BED_POD("e1", ""), ASKS("4"));
        put_bound(b, "e2", EXTENDER_BED_POD("e2", ""), ASKS("4"));
        for (int i = 0; i < 2; i++) {
                char object[256];

                (void) text_format(object, sizeof(object), "{\"metadata\":{%s}}", created[i] + 1);
                memory_store_merge(b->memory, i == 0 ? "Pod default/e1" : "Pod default/e2", object);
        }
        memory_store_drop(b->memory, "Pod default/one");
        memory_store_drop(b->memory, "Pod default/two");
        memory_store_tell(b->memory);
        backfill_clear(l);
        reserve_update(b->extender, extender_now(b->extender));
        older = ledger_pods_find(l, "default", "e1");
        younger = ledger_pods_find(l, "default", "e2");
        assert_int_equal(judged(b, older, &older->request), REASON_NONE);
        assert_int_equal(judged(b, younger, &younger->request), REASON_NONE);
        assert_int_equal(judged(b, NULL, &younger->request), REASON_HELD_FOR_OLDER);
        extender_bed_free(b);
}

#define GUARD                                                                                                \
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"guard\",\"namespace\":"            \
        "\"default\","                                                                                       \
        "\"uid\":\"u-guard\"},\"spec\":{\"nodeName\":\"r\",\"containers\":[{\"name\":\"c\"}],\"affinity\":{" \
        "\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":"         \
        "\"host\","                                                                                          \
        "\"labelSelector\":{\"matchLabels\":{\"app\":\"web\"}}}]}}}}"

/* The older one has labels that a pod on the only node it could have keeps out. */
static void who_asks_the_same_is_not_hopeless_for_anothers_labels(void **state)
{
        struct extender_bed *b = begin_lent();

        (void) state;
        memory_store_drop(b->memory, "Pod default/q");
        memory_store_merge(
                b->memory, "Node r",
                "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"r\",\"labels\":{"
                "\"host\":\"r\"}}}");
        memory_store_merge(b->memory, "Pod default/guard", GUARD);
        put_bound(b, "e1", EXTENDER_BED_POD("e1", ",\"labels\":{\"app\":\"web\"}"), ASKS("4"));
        put_bound(b, "e2", EXTENDER_BED_POD("e2", ""), ASKS("4"));
        memory_store_merge(b->memory, "Pod default/e1", EMERGENCY);
        memory_store_merge(b->memory, "Pod default/e2", EMERGENCY);
        memory_store_tell(b->memory);
        reserve_update(b->extender, extender_now(b->extender));
        assert_false(ledger_pods_find(cluster_ledger(b->extender->cluster), "default", "e1")->served);
        assert_true(ledger_pods_find(cluster_ledger(b->extender->cluster), "default", "e2")->served);
        extender_bed_free(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_emergency_takes_the_reserve_back),
                cmocka_unit_test(nobody_goes_for_a_place_that_a_budget_keeps),
                cmocka_unit_test(who_shares_a_budget_is_counted_together),
                cmocka_unit_test(who_was_not_come_to_has_his_turn),
                cmocka_unit_test(pods_have_their_turn_beside_plans),
                cmocka_unit_test(plans_take_turns),
                cmocka_unit_test(a_plan_of_an_emergency_has_room_made),
                cmocka_unit_test(a_plan_gets_no_second_lease_for_a_pod_that_goes),
                cmocka_unit_test(a_gang_of_unlike_chips_has_each_kind_held),
                cmocka_unit_test(who_should_be_gone_is_waited_for_no_longer),
                cmocka_unit_test(many_emergencies_have_their_turns),
                cmocka_unit_test(what_the_older_leaves_is_the_youngers),
                cmocka_unit_test(who_asks_the_same_is_not_hopeless_for_anothers_labels),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
