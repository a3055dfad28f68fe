/* Every reason, its order, and what does not count as one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "agent/inventory/inventory_json.h"
#include "base/cleanup.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/ledger_sick.h"
#include "tests/support/cluster_fixture.h"
#include "tests/support/test_ledger.h"

static struct ledger *cluster(void)
{
        struct ledger *l = test_ledger();

        ledger_chips_mark(l, GPU);
        add_node(l, "single", NODE_CLASS_SINGLE, "regular", "A100", 4, 4);
        add_node(l, "multi", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "any", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        add_node(l, "reserve", NODE_CLASS_ANY, "reserved", "H100", 8, 8);
        add_node(l, "sick", NODE_CLASS_ANY, "regular", "H100", 8, 2);
        add_node(l, "busy", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        bind_pod(l, "hog", "busy", 7);
        add_two_groups(l, "rings", 4, 4, 100, 200);
        return l;
}

/* clang-format off */
static const struct {
        const char *what, *node;
        uint32_t chips;
        bool emergency, same_group;
        const char *model, *word;
} cases[] = {
        { "one chip on a single-chip node",          "single",  1, false, false, NULL,   "" },
        { "two chips on a single-chip node",         "single",  2, false, false, NULL,   "SingleChipNode" },
        { "one chip on a multi-chip node",           "multi",   1, false, false, NULL,   "MultiChipNode" },
        { "eight chips on a multi-chip node",        "multi",   8, false, false, NULL,   "" },
        { "any takes one",                           "any",     1, false, false, NULL,   "" },
        { "nine chips never fit on eight",           "any",     9, false, false, NULL,   "TooFewChips" },
        { "the reserve is for emergencies",          "reserve", 1, false, false, NULL,   "ReservedPool" },
        { "an emergency on the reserve",             "reserve", 1, true,  false, NULL,   "" },
        { "the class comes before the count",        "single",  9, false, false, NULL,   "SingleChipNode" },
        { "the model comes before the pool",         "reserve", 1, false, false, "A100", "WrongModel" },
        { "the model comes before the class",        "multi",   1, false, false, "A100", "WrongModel" },
        { "another model",                           "any",     1, false, false, "A100", "WrongModel" },
        { "the model before the count",              "any",     9, false, false, "A100", "WrongModel" },
        { "too few usable ones",                     "sick",    3, false, false, NULL,   "ChipsUnhealthy" },
        { "as many usable ones as asked",            "sick",    2, false, false, NULL,   "" },
        { "too few free ones",                       "busy",    2, false, false, NULL,   "ChipsBusy" },
        { "the last free one",                       "busy",    1, false, false, NULL,   "" },
        { "unresolvable beats failed",               "busy",    9, false, false, NULL,   "TooFewChips" },
        { "six chips over two groups of four",       "rings",   6, false, false, NULL,   "" },
        { "six chips in one group of four",          "rings",   6, false, true,  NULL,   "NoSuchGroup" },
        { "four chips in one group of four",         "rings",   4, false, true,  NULL,   "" },
        { "chips of one model only",                 "rings",   5, false, false, "H100", "TooFewChips" },
        { "no such node",                            "nowhere", 1, false, false, NULL,   "NodeUnknown" },
};
/* clang-format on */

static void each_node_has_one_reason(void **state)
{
        struct ledger *l = cluster();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ledger_pod_facts facts = pod_of(l, "p", cases[i].chips);
                const char *word;

                facts.request.emergency = cases[i].emergency;
                facts.request.same_group = cases[i].same_group;
                if (cases[i].model != NULL)
                        facts.request.models[facts.request.model_count++] =
                                symbols_add(&l->symbols, cases[i].model);
                word = word_for(l, &facts.request, cases[i].node);
                if (strcmp(word, cases[i].word) != 0)
                        fail_msg("%s: want '%s', got '%s'", cases[i].what, cases[i].word, word);
        }
        ledger_life_free(l);
}

static void a_broken_ring_is_no_whole_group(void **state)
{
        struct ledger *l = cluster();
        struct ledger_pod_facts facts = pod_of(l, "p", 4);

        (void) state;
        bind_pod(l, "a", "rings", 1);
        facts.request.same_group = true;
        assert_string_equal(word_for(l, &facts.request, "rings"), "");
        bind_pod(l, "b", "rings", 4);
        facts.request.items[0].chips = 3;
        assert_string_equal(word_for(l, &facts.request, "rings"), "");
        facts.request.items[0].chips = 4;
        assert_string_equal(word_for(l, &facts.request, "rings"), "ChipsBusy");
        ledger_life_free(l);
}

static void a_node_without_inventory_is_judged_by_its_allocatable(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_node_facts node = { .name = "plain", .allocatable_count = 1 };
        struct ledger_pod_facts facts = pod_of(l, "p", 2);

        (void) state;
        node.allocatable[0] =
                (struct ledger_trust_offer){ .resource = facts.request.items[0].resource, .chips = 4 };
        assert_int_equal(ledger_nodes_set(l, &node), 0);
        assert_string_equal(word_for(l, &facts.request, "plain"), "");
        facts.request.items[0].chips = 5;
        assert_string_equal(word_for(l, &facts.request, "plain"), "TooFewChips");
        facts.request.items[0].chips = 1;
        facts.request.models[facts.request.model_count++] = symbols_add(&l->symbols, "H100");
        assert_string_equal(word_for(l, &facts.request, "plain"), "WrongModel");
        add_node(l, "plain", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        assert_string_equal(word_for(l, &facts.request, "plain"), "");
        ledger_nodes_drop_inventory(l, "plain");
        assert_string_equal(word_for(l, &facts.request, "plain"), "WrongModel");
        ledger_nodes_drop(l, "plain");
        assert_string_equal(word_for(l, &facts.request, "plain"), "NodeUnknown");
        ledger_life_free(l);
}

static void an_old_inventory_is_stale_only_with_a_limit(void **state)
{
        struct ledger *l = cluster();
        struct ledger_pod_facts facts = pod_of(l, "p", 1);

        (void) state;
        ledger_set_seen(l, node_of(l, "any"), 1);
        assert_string_equal(word_for(l, &facts.request, "any"), "");
        l->liveness.silent_before_usec = 500000;
        assert_string_equal(word_for(l, &facts.request, "any"), "InventoryStale");
        assert_string_equal(word_for(l, &facts.request, "multi"), "MultiChipNode");
        ledger_life_free(l);
}

static void the_idle_reserve_may_be_lent(void **state)
{
        struct ledger *l = cluster();
        struct ledger_pod_facts facts = pod_of(l, "p", 1);

        (void) state;
        fixture_rules.lend_reserve = true;
        assert_string_equal(word_for(l, &facts.request, "reserve"), "ReservedPool");
        facts.request.preemptible = true;
        assert_string_equal(word_for(l, &facts.request, "reserve"), "");
        fixture_rules.lend_reserve = false;
        ledger_life_free(l);
}

static void overflow_never_takes_the_last_whole_group(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts facts = pod_of(l, "p", 1);

        (void) state;
        add_node(l, "m1", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "m2", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        assert_string_equal(word_for(l, &facts.request, "m1"), "MultiChipNode");
        assert_int_equal(overflow_parse("single-to-multi:100", &fixture_rules.overflow,
                                        &fixture_rules.overflow_percent),
                         0);
        assert_string_equal(word_for(l, &facts.request, "m1"), "");
        bind_pod(l, "s", "m1", 1);
        assert_string_equal(word_for(l, &facts.request, "m1"), "");
        assert_string_equal(word_for(l, &facts.request, "m2"), "MultiChipNode");
        fixture_rules.overflow_percent = 6; /* of 16 chips: none */
        assert_string_equal(word_for(l, &facts.request, "m1"), "MultiChipNode");
        fixture_rules.overflow = OVERFLOW_NONE;
        ledger_life_free(l);
}

/* One chip of a job of eight: the node runs a multi-chip job, and is not idle. */
static void a_member_of_a_large_job_counts_as_its_job(void **state)
{
        struct ledger *l = test_ledger();
        struct ledger_pod_facts facts = pod_of(l, "p", 1), member = pod_of(l, "member", 1);
        struct job *job = calloc(1, sizeof(*job));

        (void) state;
        add_node(l, "m1", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        add_node(l, "m2", NODE_CLASS_MULTI, "regular", "H100", 8, 8);
        member.job = "eight";
        member.node = "m1";
        assert_int_equal(ledger_pods_set(l, &member), 0);
        assert_int_equal(overflow_parse("single-to-multi:100", &fixture_rules.overflow,
                                        &fixture_rules.overflow_percent),
                         0);
        assert_string_equal(word_for(l, &facts.request, "m1"), "");
        job_init(job);
        job->workers = calloc(1, sizeof(*job->workers));
        job->worker_count = 1;
        job->workers[0].chips = job->workers[0].min_chips = 8;
        assert_int_equal(ledger_jobs_set_training(l, "default", "eight", job), 0);
        assert_string_equal(word_for(l, &facts.request, "m1"), "MultiChipNode");
        fixture_rules.overflow = OVERFLOW_NONE;
        ledger_life_free(l);
}

static void chips_lost_under_a_pod_never_count_below_zero(void **state)
{
        struct ledger *l = cluster();
        struct ledger_pod_facts facts = pod_of(l, "p", 1);

        (void) state;
        bind_pod(l, "big", "sick", 8);
        assert_string_equal(word_for(l, &facts.request, "sick"), "ChipsBusy");
        ledger_life_free(l);
}

static void a_pod_on_a_chip_that_may_not_be_used_is_known(void **state)
{
        struct ledger *l = cluster();
        struct inventory told, read;
        char device[DEVICE_ID_BYTES];
        json_t *object;

        (void) state;
        bind_pod(l, "big", "sick", 8);
        assert_true(
                ledger_sick_of_pod(ledger_pods_find(l, "default", "big"), device)); /* more than are usable */
        assert_string_equal(device, "");
        bind_pod(l, "small", "sick", 1);
        assert_false(ledger_sick_of_pod(ledger_pods_find(l, "default", "small"), device));

        inventory_init(&told); /* the agent says who has it, and the word survives its way */
        (void) text_copy(told.node, sizeof(told.node), "sick");
        (void) text_copy(inventory_add_device(&told)->id, DEVICE_ID_BYTES, "GPU-0");
        (void) text_copy(inventory_add_device(&told)->id, DEVICE_ID_BYTES, "GPU-1");
        assert_int_equal(inventory_add_loss(&told, "GPU-1", "default/other"), 0);
        assert_int_equal(inventory_add_loss(&told, "GPU-1", "default/small"), 0);
        object = inventory_json_encode(&told);
        assert_int_equal(inventory_json_decode(object, &read, NULL), 0);
        assert_true(inventory_same(&told, &read));
        assert_int_equal(ledger_nodes_set_inventory(l, &read), 0);
        assert_true(ledger_sick_of_pod(ledger_pods_find(l, "default", "small"), device));
        assert_string_equal(device, "GPU-1");
        read.losses[1].pod[0] = 'x';
        assert_false(inventory_same(&told, &read));
        json_decref(object);
        inventory_free(&read);
        inventory_free(&told);
        ledger_life_free(l);
}

static void a_node_that_was_removed_takes_nothing(void **state)
{
        struct ledger *l = cluster();
        struct ledger_pod_facts facts = pod_of(l, "p", 1);

        (void) state;
        ledger_set_seen(l, ledger_nodes_find(l, "any", 3), LIVENESS_REMOVED);
        assert_string_equal(word_for(l, &facts.request, "any"), "InventoryStale"); /* also without a limit */
        ledger_life_free(l);
}

/* clang-format off */
static const struct { const char *what; bool slices, account; struct ledger_devices devices; uint32_t loose; const char *word; } claims[] = {
        { "no driver is there",              false, false, { .offered = 0 },                                 0, "" },
        { "none offers anything here",       true,  false, { .offered = 0 },                                 0, "NoSuchResource" },
        { "fewer than are asked for",        true,  true,  { .offered = 1, .free = 1 },                      0, "TooFewChips" },
        { "... but for one by the network",  true,  true,  { .offered = 1, .free = 1 },                      1, "" },
        { "one of two is taken",             true,  true,  { .offered = 2, .free = 1 },                      0, "ChipsBusy" },
        { "both are free",                   true,  true,  { .offered = 2, .free = 2 },                      0, "" },
        { "how many are free is not known",  true,  true,  { .unjudged = true, .offered = 1 },               0, "" },
};
/* clang-format on */

/* A pod whose claims ask for two devices is turned down where it is certain that there are not so many. */
static void claims_are_judged_where_it_is_certain(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
                struct ledger *l = cluster();
                struct ledger_pod_facts chips = pod_of(l, "p", 1), none = pod_of(l, "p", 0);
                struct rules_context ctx = context_of(l, &chips.request);
                const char *word;

                l->has_slices = claims[i].slices;
                l->loose_devices = claims[i].loose;
                if (claims[i].account)
                        assert_int_equal(ledger_nodes_set_devices(l, node_of(l, "any"), &claims[i].devices),
                                         0);
                ctx.devices = 2;
                word = reason_text(rules_judge(&ctx, node_of(l, "any")))->word;
                if (strcmp(word, claims[i].word) != 0)
                        fail_msg("%s: %s", claims[i].what, word);
                ctx.request = &none.request; /* by its claims alone */
                assert_string_equal(reason_text(rules_judge(&ctx, node_of(l, "any")))->word, claims[i].word);
                ledger_life_free(l);
        }
}

/* The nodes are gone through once for each resource. */
static void a_room_to_overflow_is_found_out_once(void **state)
{
        struct ledger *l = cluster();
        struct ledger_pod_facts pod = pod_of(l, "p", 1), other = pod_of(l, "q", 1);
        struct overflow_rooms rooms = { .resources = { 0 } };
        struct rules_context ctx = { .ledger = l, .rules = &fixture_rules, .request = &pod.request },
                             its = { .ledger = l, .rules = &fixture_rules, .request = &other.request };
        bool found;

        (void) state;
        other.request.items[0].resource = symbols_add(&l->symbols, "example.com/chip");
        assert_int_equal(overflow_parse("both:100", &fixture_rules.overflow, &fixture_rules.overflow_percent),
                         0);
        assert_int_equal(overflow_room_of(&rooms, &ctx, &found)->chips_left, 8);
        assert_true(found);
        assert_int_equal(overflow_room_of(&rooms, &ctx, &found)->chips_left, 8);
        assert_false(found);
        assert_int_equal(overflow_room_of(&rooms, &its, &found)->chips_left, 0); /* nobody has such chips */
        assert_true(found);
        assert_int_equal(overflow_room_of(&rooms, &ctx, &found)->chips_left, 8);
        assert_true(found);
        fixture_rules.overflow = OVERFLOW_NONE;
        ledger_life_free(l);
}

/* Pods that wait, of every kind, on nodes of which some are taken: one is asked for all of its kind. */
static void pods_of_one_kind_find_the_same_room_to_overflow(void **state)
{
        struct ledger *l = cluster();
        struct overflow_room rooms[OVERFLOW_KINDS] = { 0 };
        bool known[OVERFLOW_KINDS] = { false };

        (void) state;
        bind_pod(l, "one", "multi", 1);
        bind_pod(l, "two", "single", 2);
        assert_int_equal(overflow_parse("both:90", &fixture_rules.overflow, &fixture_rules.overflow_percent),
                         0);
        for (uint32_t i = 0; i < 32; i++) {
                char name[16];
                struct ledger_pod_facts pod;

                (void) text_format(name, sizeof(name), "w-%u", i);
                pod = pod_of(l, name, 1 + i % 4);
                pod.request.class_chips = (1 + i % 4) * (1 + i / 4 % 2);
                pod.request.preemptible = i / 8 % 2 == 1;
                pod.request.deadline_sec = i / 16 * 60;
                assert_int_equal(ledger_pods_set(l, &pod), 0);
        }
        for (struct ledger_pod *pod = l->pending; pod != NULL; pod = pod->next_pending) {
                struct rules_context ctx = {
                        .ledger = l, .rules = &fixture_rules, .request = &pod->request, .self = pod
                };
                unsigned kind = overflow_kind(&pod->request);
                struct overflow_room room = { 0 };

                overflow_prepare(&ctx, &room);
                if (known[kind])
                        assert_memory_equal(&room, &rooms[kind], sizeof(room));
                rooms[kind] = room;
                known[kind] = true;
        }
        for (size_t i = 0; i < OVERFLOW_KINDS; i++)
                assert_true(known[i]);
        assert_false(rooms[0].allowed);
        assert_true(rooms[1].allowed && rooms[2].others_first && !rooms[3].others_first);
        fixture_rules.overflow = OVERFLOW_NONE;
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_node_has_one_reason),
                cmocka_unit_test(a_broken_ring_is_no_whole_group),
                cmocka_unit_test(a_node_without_inventory_is_judged_by_its_allocatable),
                cmocka_unit_test(an_old_inventory_is_stale_only_with_a_limit),
                cmocka_unit_test(the_idle_reserve_may_be_lent),
                cmocka_unit_test(overflow_never_takes_the_last_whole_group),
                cmocka_unit_test(pods_of_one_kind_find_the_same_room_to_overflow),
                cmocka_unit_test(a_room_to_overflow_is_found_out_once),
                cmocka_unit_test(claims_are_judged_where_it_is_certain),
                cmocka_unit_test(a_member_of_a_large_job_counts_as_its_job),
                cmocka_unit_test(chips_lost_under_a_pod_never_count_below_zero),
                cmocka_unit_test(a_pod_on_a_chip_that_may_not_be_used_is_known),
                cmocka_unit_test(a_node_that_was_removed_takes_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
