/* Selectors, affinity and taints, one sentence a row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/wire/pod_node_match.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"
#include "tests/support/victim_fixture.h"

#define AFFINITY(terms)                                                                                      \
        "{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"                     \
        "{'nodeSelectorTerms':" terms "}}}}"
#define TERM(expressions)         "{'matchExpressions':[" expressions "]}"
#define FIELDS(expression)        "{'matchFields':[" expression "]}"
#define IS(key, operator, values) "{'key':'" key "','operator':'" operator"','values':[" values "]}"
#define TAINT(key, value, effect) "{'key':'" key "','value':'" value "','effect':'" effect "'}"

/* The node is "n1", with the labels zone=a, cores=64 and empty= and what the row adds. */
static const struct {
        const char *pod_spec, *node_spec;
        bool takes;
} rows[] = {
        { "{}", "{}", true },
        { "{'nodeSelector':{'zone':'a'}}", "{}", true },
        { "{'nodeSelector':{'zone':'b'}}", "{}", false },
        { "{'nodeSelector':{'zone':'a','disk':'ssd'}}", "{}", false },
        { "{'nodeSelector':{'empty':''}}", "{}", true },
        { "{'nodeSelector':{'zon':'a'}}", "{}", false },
        { AFFINITY("[]"), "{}", true }, /* the API server refuses it: nothing is known */
        { AFFINITY("[{}]"), "{}", false },
        { AFFINITY("[{}," TERM(IS("zone", "In", "'b','a'")) "]"), "{}", true },
        { AFFINITY("[" TERM(IS("zone", "In", "'b'")) "," TERM(IS("zone", "Exists", "")) "]"), "{}", true },
        { AFFINITY("[" TERM(IS("zone", "In", "'a'") "," IS("disk", "Exists", "")) "]"), "{}", false },
        { AFFINITY("[" TERM(IS("zone", "NotIn", "'b'") "," IS("disk", "NotIn", "'x'")) "]"), "{}", true },
        { AFFINITY("[" TERM(IS("zone", "NotIn", "'a'")) "]"), "{}", false },
        { AFFINITY("[" TERM(IS("disk", "DoesNotExist", "")) "]"), "{}", true },
        { AFFINITY("[" TERM(IS("zone", "DoesNotExist", "")) "]"), "{}", false },
        { AFFINITY("[" TERM(IS("cores", "Gt", "'63'") "," IS("cores", "Lt", "'65'")) "]"), "{}", true },
        { AFFINITY("[" TERM(IS("cores", "Gt", "'64'")) "]"), "{}", false },
        { AFFINITY("[" TERM(IS("zone", "Gt", "'1'")) "]"), "{}", false },
        { AFFINITY("[" FIELDS(IS("metadata.name", "In", "'n1'")) "]"), "{}", true },
        { AFFINITY("[" FIELDS(IS("metadata.name", "In", "'n2'")) "]"), "{}", false },
        { AFFINITY("[" FIELDS(IS("metadata.name", "NotIn", "'n1'")) "]"), "{}", false },
        { "{'nodeSelector':7,'affinity':[],'tolerations':{}}", "{'taints':8}", true },
        { "{}", "{'taints':[" TAINT("k", "v", "NoSchedule") "]}", false },
        { "{}", "{'taints':[" TAINT("k", "v", "NoExecute") "]}", false },
        { "{}", "{'taints':[" TAINT("k", "v", "PreferNoSchedule") "]}", true },
        { "{}", "{'unschedulable':true}", false },
        { "{'tolerations':[{'key':'node.kubernetes.io/unschedulable','operator':'Exists'}]}",
          "{'unschedulable':true}", true },
        { "{'tolerations':[{'operator':'Exists'}]}", "{'taints':[" TAINT("k", "v", "NoExecute") "]}", true },
        { "{'tolerations':[{'key':'k','operator':'Exists','effect':'NoSchedule'}]}",
          "{'taints':[" TAINT("k", "v", "NoExecute") "]}", false },
        { "{'tolerations':[{'key':'k','value':'v'}]}", "{'taints':[" TAINT("k", "v", "NoSchedule") "]}",
          true },
        { "{'tolerations':[{'key':'k','value':'w'}]}", "{'taints':[" TAINT("k", "v", "NoSchedule") "]}",
          false },
        { "{'tolerations':[{'key':'k','value':'v'}]}",
          "{'taints':[" TAINT("k", "v", "NoSchedule") "," TAINT("l", "", "NoSchedule") "]}", false },
};

/* JSON with ' for " */
static json_t *json_of(const char *text)
{
        CLEANUP(free_p) char *copy = strdup(text);
        json_t *json;

        for (char *c = copy; *c != '\0'; c++)
                *c = *c == '\'' ? '"' : *c;
        json = json_loads(copy, 0, NULL);
        assert_non_null(json);
        return json;
}

static char *match_of(const char *spec)
{
        json_t *pod = json_pack("{s:o}", "spec", json_of(spec));
        struct text text = { 0 };

        pod_node_match(pod, &text);
        json_decref(pod);
        return text_take(&text, NULL);
}

static char *traits_of(const char *spec)
{
        json_t *node = json_pack("{s:{s:{s:s, s:s, s:s}}, s:o}", "metadata", "labels", "zone", "a", "cores",
                                 "64", "empty", "", "spec", json_of(spec));
        struct text text = { 0 };

        pod_node_match_traits(node, &text);
        json_decref(node);
        return text_take(&text, NULL);
}

static void objects_say_what_kubernetes_reads_in_them(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(free_p)
                char *match = match_of(rows[i].pod_spec), *lines = traits_of(rows[i].node_spec);
                struct node_match_table matches = { 0 };
                struct node_match_traits traits = { 0 };
                char why[256] = "";
                uint32_t number = node_match_hold(&matches, match);

                assert_int_equal(node_match_set_traits(&matches, &traits, lines), 0);
                for (int again = 0; again < 2; again++) /* worked out, and remembered */
                        if (node_match_takes(&matches, number, "n1", 3, &traits) != rows[i].takes)
                                fail_msg("row %zu: %s on %s", i, rows[i].pod_spec, rows[i].node_spec);
                assert_int_equal(node_match_judge(match, "n1", &traits, why, sizeof(why)), rows[i].takes);
                assert_int_equal(why[0] == '\0', rows[i].takes);
                node_match_release(&matches, number);
                node_match_free_traits(&matches, &traits);
                node_match_free(&matches);
        }
}

static void what_was_remembered_is_forgotten_when_a_node_changes(void **state)
{
        struct node_match_table matches = { 0 };
        struct node_match_traits traits = { 0 };
        uint32_t number = node_match_hold(&matches, "=\tzone\ta\n");

        (void) state;
        assert_int_equal(node_match_hold(&matches, "=\tzone\ta\n"), number);
        assert_false(node_match_takes(&matches, number, "n", 0, &traits));
        assert_int_equal(node_match_set_traits(&matches, &traits, "zone=a\n!k=v:NoSchedule\n"), 0);
        assert_false(node_match_takes(&matches, number, "n", 0, &traits));
        assert_int_equal(node_match_set_traits(&matches, &traits, "zone=a\n"), 0);
        assert_true(node_match_takes(&matches, number, "n", 0, &traits));
        node_match_release(&matches, number);
        assert_true(node_match_takes(&matches, number, "n", 0, &traits));
        node_match_free_traits(&matches, &traits); /* the node goes, and its labels */
        assert_false(node_match_takes(&matches, number, "n", 0, &traits));
        node_match_release(&matches, number);
        assert_int_equal(matches.traits.count + matches.texts.map.count, 0);
        node_match_free(&matches);
}

static void set_node(struct ledger *l, const char *name, const char *traits)
{
        struct ledger_node_facts facts = { .name = name, .traits = traits };

        assert_int_equal(ledger_nodes_set(l, &facts), 0);
}

static struct ledger *three_nodes(void)
{
        struct ledger *l = test_ledger();

        ledger_chips_mark(l, GPU);
        for (const char *const *name = (const char *const[]){ "a", "b", "c", NULL }; *name != NULL; name++)
                add_node(l, *name, NODE_CLASS_ANY, "regular", "H100", 8, 8);
        set_node(l, "a", "zone=a\n");
        set_node(l, "b", "!dedicated=ops:NoSchedule\n");
        set_node(l, "c", NULL);
        return l;
}

static void a_reservation_is_on_a_node_that_the_pod_may_have(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts old = pod_of(l, "old", 8);

        (void) state;
        for (int i = 0; i < 3; i++)
                bind_pod(l, (const char *const[]){ "x", "y", "z" }[i],
                         (const char *const[]){ "a", "b", "c" }[i],
                         i == 0 ? 8 : 1); /* a is full: the others could be free sooner */
        old.node_match = "=\tzone\ta\n";
        assert_int_equal(ledger_pods_set(l, &old), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, 2000000), 1);
        assert_string_equal(held_node(l), "a");
        old.node_match = "=\tzone\tnowhere\n";
        assert_int_equal(ledger_pods_set(l, &old), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, 2000000), 0);
        old.node_match = ""; /* b is tainted; c has the least to wait for */
        assert_int_equal(ledger_pods_set(l, &old), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, 2000000), 1);
        assert_string_equal(held_node(l), "c");
        old.node_match = "t\tdedicated\t=\tops\t\n=\tzone\ta\n";
        assert_int_equal(ledger_pods_set(l, &old), 0);
        set_node(l, "a", NULL);
        set_node(l, "b", "zone=a\n!dedicated=ops:NoSchedule\n");
        assert_int_equal(backfill_update(l, &fixture_rules, 2000000), 1);
        assert_string_equal(held_node(l), "b");
        ledger_life_free(l);
}

/* @other: what the second member demands; NULL = it is not there yet. */
static bool pair_fits(struct ledger *l, uint32_t chips, const char *match, const char *other)
{
        struct ledger_pod_facts facts = pod_of(l, "m-0", chips);

        facts.job = "train";
        facts.request.gang_size = 2;
        facts.node_match = match;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        if (other != NULL) {
                facts.name = facts.uid = "m-1";
                facts.node_match = other;
                assert_int_equal(ledger_pods_set(l, &facts), 0);
        }
        return gang_fits(l, ledger_pods_find(l, "default", "m-0"));
}

static void a_gang_is_planned_on_nodes_that_its_pods_may_have(void **state)
{
        struct ledger *l = three_nodes();

        (void) state;
        set_node(l, "b", "zone=a\n!dedicated=ops:NoSchedule\n");
        set_node(l, "c", "zone=a\n");
        bind_pod(l, "x", "c", 1);
        assert_false(pair_fits(l, 8, "=\tzone\ta\n", NULL)); /* two of eight: one node is free in that zone */
        assert_int_equal(l->slot_total, 0);
        ledger_pods_drop(l, "default", "x");
        set_node(l, "c", NULL); /* a alone is left: who may go there alone says nothing of the others */
        assert_true(pair_fits(l, 8, "=\tzone\ta\n", NULL));
        assert_int_equal(slots_on(l, "a"), 1);
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        assert_true(pair_fits(l, 4, "=\tzone\ta\n", ""));
        assert_int_equal(slots_on(l, "a"), 2);
        ledger_jobs_drop_lease(l, ledger_jobs_find(l, "default", "train"));
        assert_true(pair_fits(l, 8, "", "")); /* not on b */
        assert_int_equal(slots_on(l, "a") + slots_on(l, "c"), 2);
        ledger_life_free(l);
}

static void nobody_is_evicted_from_a_node_that_the_pod_may_not_have(void **state)
{
        struct ledger *l = three_nodes();
        struct ledger_pod_facts urgent = pod_of(l, "urgent", 8);
        const struct ledger_pod *victim;
        struct rules_context ctx;

        (void) state;
        for (int i = 0; i < 3; i++)
                bind_pod(l, (const char *const[]){ "x", "y", "z" }[i],
                         (const char *const[]){ "a", "b", "c" }[i], i == 0 ? 8 : 1);
        urgent.node_match = "=\tzone\ta\n";
        assert_int_equal(ledger_pods_set(l, &urgent), 0);
        ctx = context_of_pod(l, ledger_pods_find(l, "default", "urgent"));
        ctx.unfiltered = true;
        rules_prepare(&ctx);
        victim = victim_for(l, &ctx);
        assert_non_null(victim);
        assert_string_equal(victim->node->name, "a");
        assert_string_equal(reason_text(rules_judge(&ctx, node_of(l, "c")))->word, "NodeNotAllowed");
        ctx.unfiltered = false; /* kube-scheduler has judged it before it asks */
        assert_string_equal(reason_text(rules_judge(&ctx, node_of(l, "c")))->word, "ChipsBusy");
        ledger_life_free(l);
}

static void a_copy_demands_the_same(void **state)
{
        struct ledger *l = three_nodes(), *copy;
        struct ledger_pod_facts old = pod_of(l, "old", 8);

        (void) state;
        bind_pod(l, "x", "a", 8);
        old.node_match = "=\tzone\ta\n";
        assert_int_equal(ledger_pods_set(l, &old), 0);
        copy = ledger_life_copy(l);
        assert_non_null(copy);
        assert_int_equal(backfill_update(copy, &fixture_rules, 2000000), 1);
        assert_string_equal(held_node(copy), "a");
        ledger_life_free(copy);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(objects_say_what_kubernetes_reads_in_them),
                cmocka_unit_test(what_was_remembered_is_forgotten_when_a_node_changes),
                cmocka_unit_test(a_reservation_is_on_a_node_that_the_pod_may_have),
                cmocka_unit_test(a_gang_is_planned_on_nodes_that_its_pods_may_have),
                cmocka_unit_test(nobody_is_evicted_from_a_node_that_the_pod_may_not_have),
                cmocka_unit_test(a_copy_demands_the_same),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
