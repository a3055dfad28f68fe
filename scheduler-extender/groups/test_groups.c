/* Groups of pods as Kubernetes writes them: what their objects say counts, and what is asked in a cycle
 * leaves nothing behind until a bind shows that it was meant. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/decide/candidates.h"
#include "scheduler-extender/decide/gang_share.h"
#include "scheduler-extender/groups/group_pass.h"
#include "scheduler-extender/groups/groups.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/wire/pod_json.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

#define NODES_MAX 4

static uint64_t now_usec;

static json_t *json(const char *text)
{
        json_t *value = json_loads(text, 0, NULL);

        assert_non_null(value);
        return value;
}

static struct ledger *ledger_of(unsigned nodes, unsigned chips)
{
        static const char *const names[NODES_MAX] = { "a", "b", "c", "d" };
        struct ledger *l = test_ledger();

        now_usec = 1000000;
        ledger_chips_mark(l, GPU);
        groups_serve(l, REQUEST_GROUP_CYCLE, true);
        groups_serve(l, REQUEST_GROUP_ALONE, true);
        for (unsigned i = 0; i < nodes; i++)
                add_node(l, names[i], NODE_CLASS_ANY, "regular", "H100", chips, chips);
        return l;
}

/* A pod of the group "train", or as `spec` says. @node_match: as of ledger_pod_facts */
static void put_pod_where(struct ledger *l, const char *name, unsigned chips, const char *spec,
                          const char *node_match)
{
        const struct pod_json_policy policy = { 0 };
        struct ledger_pod_facts facts;
        struct err err = { 0 };
        char text[1024];
        json_t *pod;

        assert_true(text_format(
                text, sizeof(text),
                "{\"metadata\": {\"name\": \"%s\", \"uid\": \"%s\", \"namespace\": \"ns\", \"labels\": "
                "{\"remuda.dev/job\": \"liar\", \"remuda.dev/gang-size\": \"77\"}}, \"spec\": {%s, "
                "\"containers\": [{\"name\": \"c\", \"resources\": {\"limits\": {\"" GPU "\": \"%u\"}}}]}}",
                name, name, spec, chips));
        pod = json(text);
        assert_int_equal(pod_json_decode(pod, &policy, l, true, &facts, &err), 0);
        facts.node_match = node_match;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
        json_decref(pod);
}

static void put_pod(struct ledger *l, const char *name, unsigned chips, const char *spec)
{
        put_pod_where(l, name, chips, spec, "");
}

#define OF_TRAIN "\"schedulingGroup\": {\"podGroupName\": \"train\"}"

static int put_group(struct ledger *l, const char *key, int least)
{
        struct err err = { 0 };
        char text[200];
        json_t *object;
        int r;

        assert_true(text_format(text, sizeof(text),
                                "{\"spec\": {\"schedulingPolicy\": {\"gang\": {\"minCount\": %d}}}}", least));
        object = json(text);
        r = groups_take_pod_group(l, key, object, &err);
        json_decref(object);
        return r;
}

/* Both members of "train" are there, of two chips each. */
static struct ledger *two_of_train(unsigned nodes, unsigned chips)
{
        struct ledger *l = ledger_of(nodes, chips);

        (void) put_group(l, "ns/train", 2);
        put_pod(l, "m-0", 2, OF_TRAIN);
        put_pod(l, "m-1", 2, OF_TRAIN);
        return l;
}

static struct ledger_pod *pod_named(const struct ledger *l, const char *name)
{
        struct ledger_pod *pod = ledger_pods_find(l, "ns", name);

        assert_non_null(pod);
        return pod;
}

/* What filter and bind do with a pod of a group. */
struct asking {
        struct request request;
        struct rules_context context;
        struct gang_demand demand;
};

static void begin(struct ledger *l, const char *name, struct asking *a)
{
        struct ledger_pod *pod = pod_named(l, name);

        *a = (struct asking){ .request = pod->request, .demand = { 0 } };
        a->context = (struct rules_context){ .ledger = l,
                                             .rules = &fixture_rules,
                                             .request = &a->request,
                                             .job = pod->job,
                                             .self = pod,
                                             .namespace_ = "ns",
                                             .created_usec = pod->created_usec,
                                             .now_usec = now_usec };
        rules_prepare(&a->context);
}

/* One member of a cycle, asked about `nodes`. Return: the index of the node that is answered, or ROSTER_NONE.
 */
static uint32_t ask(struct ledger *l, const char *name, const uint32_t *nodes, size_t count)
{
        struct ledger_pod *pod = pod_named(l, name);
        uint8_t verdicts[NODES_MAX];
        uint64_t generation = l->generation;
        uint32_t answer = ROSTER_NONE;
        struct asking a;
        int r;

        begin(l, name, &a);
        r = group_pass_begin(l, &a.context, pod->job, &a.demand);
        assert_true(r >= 0);
        assert_int_equal(candidates_judge(&a.context, l, nodes, count, verdicts), 0);
        if (r > 0)
                assert_int_equal(group_pass_choose(l, &a.context, nodes, count, verdicts), 0);
        for (size_t i = 0; i < count; i++)
                if (verdicts[i] == REASON_NONE) {
                        assert_true(r == 0 || answer == ROSTER_NONE); /* one answer */
                        answer = nodes[i];
                }
        if (r > 0)
                group_pass_end(l, pod->job);
        assert_int_equal(l->slot_total, 0);
        assert_true(l->generation == generation);
        return answer;
}

static uint32_t ask_all(struct ledger *l, const char *name)
{
        uint32_t nodes[NODES_MAX];

        for (uint32_t i = 0; i < l->node_count; i++)
                nodes[i] = i;
        return ask(l, name, nodes, l->node_count);
}

/* Return: was it bound there? */
static bool bind(struct ledger *l, const char *name, uint32_t node)
{
        struct ledger_pod_part parts[LEDGER_POD_PARTS_MAX];
        struct ledger_pod *pod = pod_named(l, name);
        struct asking a;

        begin(l, name, &a);
        assert_true(group_pass_commit(l, &a.context, pod->job) >= 0);
        if (rules_judge(&a.context, l->nodes[node]) != REASON_NONE)
                return false;
        assert_int_equal(ledger_pods_assume(l, pod, l->nodes[node], parts,
                                            score_parts(&a.context, l->nodes[node], parts)),
                         0);
        return true;
}

static void a_group_is_what_its_object_says(void **state)
{
        struct ledger *l = ledger_of(1, 8);
        struct asking a;

        (void) state;
        put_pod(l, "m-0", 1, OF_TRAIN);
        assert_string_equal(pod_named(l, "m-0")->job->key, "ns/group/train");
        begin(l, "m-0", &a);
        assert_int_equal(rules_judge(&a.context, l->nodes[0]), REASON_GANG_INCOMPLETE);
        assert_int_equal(put_group(l, "other/train", 3), 0); /* of another namespace: another one */
        assert_true(pod_named(l, "m-0")->request.ungrouped);
        assert_int_equal(put_group(l, "ns/train", 3), 0);
        assert_int_equal(pod_named(l, "m-0")->request.gang_size, 3);
        assert_false(pod_named(l, "m-0")->request.ungrouped);
        assert_int_equal(pod_named(l, "m-0")->request.class_chips, 3);
        begin(l, "m-0", &a);
        assert_int_equal(rules_judge(&a.context, l->nodes[0]), REASON_NONE); /* asked, so they are there */
        a.context.unfiltered = true;
        assert_int_equal(rules_judge(&a.context, l->nodes[0]), REASON_GANG_INCOMPLETE);
        assert_int_equal(put_group(l, "ns/train", 2000000000), 0);
        assert_int_equal(pod_named(l, "m-0")->request.gang_size, REQUEST_GANG_MAX);
        assert_int_equal(put_group(l, "ns/train", 0), -EBADMSG);
        assert_int_equal(groups_take_pod_group(l, "ns/train", NULL, NULL), 0);
        assert_true(pod_named(l, "m-0")->request.ungrouped);
        groups_serve(l, REQUEST_GROUP_CYCLE, false); /* nobody shows us groups: a pod by itself */
        assert_false(pod_named(l, "m-0")->request.ungrouped);
        ledger_life_free(l);
}

static void a_workload_has_groups_and_they_have_replicas(void **state)
{
        struct ledger *l = ledger_of(1, 8);
        struct err err = { 0 };
        json_t *object = json(
                "{\"spec\": {\"podGroups\": [{\"name\": \"w\", \"policy\": {\"gang\": {\"minCount\": 4}}}, "
                "{\"name\": \"p\", \"policy\": {\"basic\": {}}}]}}");

        (void) state;
        put_pod(l, "w-0", 1, "\"workloadRef\": {\"name\": \"big\", \"podGroup\": \"w\"}");
        assert_int_equal(groups_take_workload(l, "ns/big", object, &err), 0);
        put_pod(l, "w-1", 1,
                "\"workloadRef\": {\"name\": \"big\", \"podGroup\": \"w\", \"podGroupReplicaKey\": \"k\"}");
        put_pod(l, "p-0", 1, "\"workloadRef\": {\"name\": \"big\", \"podGroup\": \"p\"}");
        put_pod(l, "x-0", 1, "\"workloadRef\": {\"name\": \"big\", \"podGroup\": \"x\"}");
        assert_int_equal(pod_named(l, "w-0")->request.gang_size, 4);
        assert_int_equal(pod_named(l, "w-1")->request.gang_size, 4);
        assert_int_equal(pod_named(l, "p-0")->request.gang_size, 1);
        assert_true(pod_named(l, "x-0")->request.ungrouped);
        assert_true(pod_named(l, "w-0")->job != pod_named(l, "w-1")->job);
        assert_int_equal(groups_take_workload(l, "ns/big", NULL, &err), 0);
        assert_true(pod_named(l, "w-0")->request.ungrouped && pod_named(l, "w-1")->request.ungrouped &&
                    pod_named(l, "p-0")->request.ungrouped);
        json_decref(object);
        ledger_life_free(l);
}

/* "big/w" is a group of the Workload big, and no replica of a PodGroup of that name. */
static void a_workload_and_a_group_of_one_name_are_two(void **state)
{
        struct ledger *l = ledger_of(1, 8);
        struct err err = { 0 };
        json_t *object = json("{\"spec\": {\"podGroups\": [{\"name\": \"w\", \"policy\": {\"gang\": "
                              "{\"minCount\": 4}}}]}}");

        (void) state;
        assert_int_equal(groups_take_workload(l, "ns/big", object, &err), 0);
        put_pod(l, "w-0", 1, "\"workloadRef\": {\"name\": \"big\", \"podGroup\": \"w\"}");
        put_pod(l, "g-0", 1, "\"schedulingGroup\": {\"podGroupName\": \"big\"}");
        assert_int_equal(put_group(l, "ns/big", 2), 0);
        assert_int_equal(pod_named(l, "g-0")->request.gang_size, 2);
        assert_int_equal(pod_named(l, "w-0")->request.gang_size, 4);
        assert_int_equal(groups_take_pod_group(l, "ns/big", NULL, NULL), 0);
        assert_true(pod_named(l, "g-0")->request.ungrouped);
        assert_false(pod_named(l, "w-0")->request.ungrouped);
        assert_int_equal(put_group(l, "ns/big", 2), 0);
        assert_int_equal(groups_take_workload(l, "ns/big", NULL, &err), 0);
        assert_int_equal(pod_named(l, "g-0")->request.gang_size, 2);
        assert_true(pod_named(l, "w-0")->request.ungrouped);
        json_decref(object);
        ledger_life_free(l);
}

static void an_odd_group_is_passed_over(void **state)
{
        static const char *const odd[] = { "\"schedulingGroup\": 7",
                                           "\"schedulingGroup\": {\"podGroupName\": 7}",
                                           "\"workloadRef\": []", "\"workloadRef\": {\"name\": \"big\"}" };
        const struct pod_json_policy policy = { 0 };
        struct ledger *l = ledger_of(1, 8);
        struct ledger_pod_facts facts;

        (void) state;
        for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
                char text[300];
                json_t *pod;

                assert_true(text_format(text, sizeof(text),
                                        "{\"metadata\": {\"name\": \"p\"}, \"spec\": {%s}}", odd[i]));
                pod = json(text);
                (void) pod_json_decode(pod, &policy, l, true, &facts, NULL);
                assert_null(facts.job);
                assert_int_equal(facts.request.group, REQUEST_GROUP_NONE);
                json_decref(pod);
        }
        ledger_life_free(l);
}

static void a_cycle_leaves_nothing_and_counts_who_was_answered(void **state)
{
        struct ledger *l = ledger_of(2, 3);

        (void) state;
        (void) put_group(l, "ns/train", 3);
        put_pod(l, "m-0", 2, OF_TRAIN);
        put_pod(l, "m-1", 2, OF_TRAIN);
        put_pod(l, "m-2", 2, OF_TRAIN);
        assert_int_equal(ask_all(l, "m-0"), ROSTER_NONE); /* there is room for two */
        (void) put_group(l, "ns/train", 2);
        for (int cycle = 0; cycle < 3; cycle++) {
                uint32_t first = ask_all(l, "m-0"), second = ask_all(l, "m-1");

                assert_true(first < 2 && second < 2 && first != second);
                assert_int_equal(ask_all(l, "m-2"), ROSTER_NONE); /* more than it needs, and no room left */
        }
        ledger_life_free(l);
}

static void a_planned_node_that_is_not_asked_about_is_another(void **state)
{
        struct ledger *l = two_of_train(3, 2);
        uint32_t others[2], first;

        (void) state;
        first = ask_all(l, "m-0");
        for (uint32_t i = 0, n = 0; i < 3; i++)
                if (i != first)
                        others[n++] = i;
        assert_int_equal(ask(l, "m-1", &others[1], 1), others[1]);
        assert_int_equal(ask(l, "m-1", &others[0], 1), others[0]);
        assert_int_equal(ask(l, "m-1", &first, 1),
                         first); /* asked again: a new cycle, where m-0 has no place yet */
        assert_int_equal(ask(l, "m-0", &first, 1), ROSTER_NONE);
        ledger_life_free(l);
}

/* Who may go anywhere is answered before who may not. */
static void a_member_is_answered_the_place_that_was_planned_for_it(void **state)
{
        struct ledger *l = ledger_of(2, 2);

        (void) state;
        (void) put_group(l, "ns/train", 2);
        assert_int_equal(
                ledger_nodes_set(l, &(struct ledger_node_facts){ .name = "a", .traits = "zone=a\n" }), 0);
        assert_int_equal(
                ledger_nodes_set(l, &(struct ledger_node_facts){ .name = "b", .traits = "zone=b\n" }), 0);
        put_pod(l, "m-0", 2, OF_TRAIN);
        put_pod_where(l, "m-1", 2, OF_TRAIN, "=\tzone\ta\n");
        assert_int_equal(ask_all(l, "m-0"), node_of(l, "b")->index);
        assert_int_equal(ask_all(l, "m-1"), node_of(l, "a")->index);
        ledger_life_free(l);
}

static void the_first_bind_leases_for_its_fellows(void **state)
{
        struct ledger *l = two_of_train(2, 2);
        struct ledger_pod_facts other = pod_of(l, "other", 2);
        uint32_t first, second;

        (void) state;
        first = ask_all(l, "m-0");
        second = ask_all(l, "m-1");
        assert_string_equal(word_for(l, &other.request, l->nodes[second]->name), "");
        assert_true(bind(l, "m-0", first));
        assert_int_equal(l->slot_total, 1);
        assert_string_equal(word_for(l, &other.request, l->nodes[second]->name), "ChipsLeased");
        assert_true(bind(l, "m-1", second));
        assert_int_equal(l->slot_total, 0);
        ledger_life_free(l);
}

static void a_group_whose_room_has_gone_is_not_begun(void **state)
{
        struct ledger *l = two_of_train(2, 2);
        uint32_t first, second;

        (void) state;
        first = ask_all(l, "m-0");
        second = ask_all(l, "m-1");
        bind_pod(l, "thief", l->nodes[second]->name, 1);
        assert_false(bind(l, "m-0", first));
        assert_int_equal(l->slot_total, 0);
        bind_pod(l, "thief", "elsewhere", 1);
        assert_false(bind(l, "m-1", second)); /* its bind was on its way, too */
        assert_true(ask_all(l, "m-0") < 2);
        second = ask_all(l, "m-1");
        assert_true(bind(l, "m-1", second)); /* a new cycle */
        ledger_life_free(l);
}

static void a_pass_ends(void **state)
{
        struct ledger *l = two_of_train(3, 2);

        (void) state;
        for (int way = 0; way < 3; way++) {
                uint32_t first = ask_all(l, "m-0");

                (void) ask_all(l, "m-1");
                if (way == 0)
                        now_usec += GROUP_PASS_USEC; /* in time */
                else if (way == 1)
                        now_usec = 1; /* by a clock that went back */
                else
                        ledger_nodes_drop_inventory(
                                l, l->nodes[first == 0 ? 1 : 0]->name); /* nodes have other indexes */
                assert_true(bind(l, "m-0", way < 2 ? first : 0));
                assert_int_equal(l->slot_total, 0);
                put_pod(l, "m-0", 2, OF_TRAIN);
                ledger_pods_forget(l, pod_named(l, "m-0"));
        }
        ledger_life_free(l);
}

static void who_wasted_a_lease_is_bound_without_one(void **state)
{
        struct ledger *l = two_of_train(2, 2);
        uint32_t first;

        (void) state;
        first = ask_all(l, "m-0");
        (void) ask_all(l, "m-1");
        gang_share_unused(l, pod_named(l, "m-0")->job, fixture_rules.lease_usec, now_usec);
        assert_true(bind(l, "m-0", first));
        assert_int_equal(l->slot_total, 0);
        ledger_life_free(l);
}

static void nominate(struct ledger *l, const char *namespace_, const char *name, const char *node)
{
        struct ledger_pod_facts facts = pod_of(l, name, 1);

        facts.namespace_ = namespace_;
        facts.nominated = node;
        assert_int_equal(ledger_pods_set(l, &facts), 0);
}

static const char *younger_word(struct ledger *l, uint32_t chips, const char *node)
{
        struct ledger_pod_facts facts = pod_of(l, "younger", chips);
        struct rules_context ctx = context_of(l, &facts.request);

        ctx.created_usec = 2000;
        return reason_text(rules_judge(&ctx, node_of(l, node)))->word;
}

static void who_is_nominated_has_its_chips_there(void **state)
{
        struct ledger *l = ledger_of(2, 4);
        uint64_t now = now_usec;

        (void) state;
        nominate(l, "one", "p", "b");
        assert_int_equal(backfill_update(l, &fixture_rules, now), 1);
        assert_string_equal(younger_word(l, 4, "b"), "HeldForOlder");
        assert_string_equal(younger_word(l, 3, "b"), "");
        assert_string_equal(younger_word(l, 4, "a"), "");
        nominate(l, "two", "q", "b"); /* side by side */
        assert_int_equal(backfill_update(l, &fixture_rules, now), 2);
        assert_string_equal(younger_word(l, 3, "b"), "HeldForOlder");
        assert_string_equal(younger_word(l, 2, "b"), "");
        nominate(l, "one", "p", "a");
        nominate(l, "two", "q", "nowhere");
        assert_int_equal(backfill_update(l, &fixture_rules, now), 1);
        assert_string_equal(younger_word(l, 4, "a"), "HeldForOlder");
        assert_string_equal(younger_word(l, 4, "b"), "");
        assert_int_equal(backfill_update(l, &fixture_rules, now + fixture_rules.hold_usec), 0);
        nominate(l, "one", "p", "");
        assert_int_equal(backfill_update(l, &fixture_rules, now + 2 * fixture_rules.hold_usec), 0);
        bind_pod(l, "z", "b", 4);
        nominate(l, "two", "q", "b"); /* there is no room */
        assert_int_equal(backfill_update(l, &fixture_rules, now), 0);
        ledger_life_free(l);
}

static uint64_t chance_state;

static unsigned chance(unsigned below)
{
        chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned) (chance_state >> 33) % below;
}

static unsigned free_on(const struct ledger_node *node)
{
        unsigned open = 0;

        for (uint32_t g = 0; g < node->group_count; g++)
                open += ledger_group_free(&node->groups[g]);
        return open;
}

/* A scheduler that counts chips by number, as kube-scheduler does: every member, then all binds. */
static bool cycle(struct ledger *l, unsigned members, const unsigned *chips)
{
        unsigned assumed[NODES_MAX] = { 0 };
        uint32_t at[8];
        char name[16];

        for (unsigned m = 0; m < members; m++) {
                uint32_t nodes[NODES_MAX];
                size_t count = 0;

                for (uint32_t i = 0; i < l->node_count; i++)
                        if (free_on(l->nodes[i]) >= assumed[i] + chips[m])
                                nodes[count++] = i;
                (void) text_format(name, sizeof(name), "m-%u", m);
                at[m] = ask(l, name, nodes, count);
                if (at[m] == ROSTER_NONE)
                        return false;
                assumed[at[m]] += chips[m];
        }
        for (unsigned m = 0; m < members; m++) {
                (void) text_format(name, sizeof(name), "m-%u", m);
                assert_true(bind(l, name, at[m]));
        }
        assert_int_equal(l->slot_total, 0);
        return true;
}

/* Small clusters of odd groups of chips, members that want theirs in one group each or on equal nodes:
 * whoever is let through is bound, to the last member. */
static void who_is_let_through_is_bound(void **state)
{
        unsigned through = 0;

        (void) state;
        chance_state = 17;
        for (int n = 0; n < 4000; n++) {
                static const char *const names[NODES_MAX] = { "a", "b", "c", "d" };
                struct ledger *l = ledger_of(0, 0);
                unsigned members = 2 + chance(5), chips[8];
                bool same_group = chance(2) == 0, equal_nodes = chance(4) == 0;

                for (unsigned i = 0, nodes = 1 + chance(NODES_MAX); i < nodes; i++) {
                        add_two_groups(l, names[i], 1 + chance(4), 1 + chance(4), 100, 100);
                        if (chance(3) == 0)
                                bind_pod(l, names[i], names[i], 1);
                }
                (void) put_group(l, "ns/train", (int) members);
                for (unsigned m = 0; m < members; m++) {
                        char name[16];

                        (void) text_format(name, sizeof(name), "m-%u", m);
                        chips[m] = same_group && m > 0 ? chips[0] : 1 + chance(3);
                        put_pod(l, name, chips[m], OF_TRAIN);
                        pod_named(l, name)->request.same_group = same_group;
                        pod_named(l, name)->request.equal_nodes = equal_nodes;
                }
                through += cycle(l, members, chips);
                ledger_life_free(l);
        }
        assert_true(through > 800 && through < 3600); /* both ends are looked at */
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_group_is_what_its_object_says),
                cmocka_unit_test(a_workload_has_groups_and_they_have_replicas),
                cmocka_unit_test(a_workload_and_a_group_of_one_name_are_two),
                cmocka_unit_test(an_odd_group_is_passed_over),
                cmocka_unit_test(a_cycle_leaves_nothing_and_counts_who_was_answered),
                cmocka_unit_test(a_planned_node_that_is_not_asked_about_is_another),
                cmocka_unit_test(a_member_is_answered_the_place_that_was_planned_for_it),
                cmocka_unit_test(the_first_bind_leases_for_its_fellows),
                cmocka_unit_test(a_group_whose_room_has_gone_is_not_begun),
                cmocka_unit_test(a_pass_ends),
                cmocka_unit_test(who_wasted_a_lease_is_bound_without_one),
                cmocka_unit_test(who_is_nominated_has_its_chips_there),
                cmocka_unit_test(who_is_let_through_is_bound),
        };

        return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
