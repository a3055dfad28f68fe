/* Plans that look at what joins the nodes: switches and networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "tests/support/job_fixture.h"

/* 16 chips on three nodes of 8: by name a and b; a and c are under one switch. */
static void parts_go_under_one_switch_first(void **state)
{
        struct ledger *l = test_ledger();
        struct job job = job_fixture_parse("  placement: packed\n  workers: [{runtime: cuda, chips: 16}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        ledger_chips_mark(l, GPU);
        for (int i = 0; i < 3; i++)
                add_node(l, (const char *[]){ "a", "b", "c" }[i], NODE_CLASS_ANY, "regular", "H100", 8, 8);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "a=8 b=8"); /* nobody says a switch */
        for (int i = 0; i < 3; i++)
                node_of(l, (const char *[]){ "a", "b", "c" }[i])->switch_domain =
                        symbols_add(&l->symbols, i == 1 ? "s2" : "s1");
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "a=8 c=8");
        bind_pod(l, "x", "c", 1); /* no switch has room for it all */
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "a=8 b=8");
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void put_under(struct ledger *l, const char *node, const char *switch_)
{
        node_of(l, node)->switch_domain = symbols_add(&l->symbols, switch_);
}

/* What a data sheet promises of the chips of c is no reason to leave b, whose chips were measured. */
static void steps_of_two_kinds_of_figures_do_not_compare(void **state)
{
        struct ledger *l = test_ledger();
        struct job job = job_fixture_parse(
                "  placement: packed\n  globalBatch: 160\n  workers: [{runtime: cuda, chips: 16}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct speed_table_row row = { .device = "H100", .model = "mlp", .beta_ms = 1000 };
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        ledger_chips_mark(l, GPU);
        add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        add_node(l, "b", NODE_CLASS_ANY, "regular", "H100", 8, 8);
        add_node(l, "c", NODE_CLASS_ANY, "regular", "A100", 8, 8);
        put_under(l, "a", "s1");
        put_under(l, "b", "s2");
        put_under(l, "c", "s1");
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text),
                            "a=8 c=8"); /* as fast, by the data sheet of both */
        assert_int_equal(speed_table_keep(&l->speeds, &row), 0);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.groups[0].source, CHIP_SPEED_MEASURED);
        assert_string_equal(job_fixture_places(&plan, text), "a=8 b=8");
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* Two ranks to a chip are not as good as a chip to each, even if nobody knows how fast they are. */
static void a_switch_is_no_reason_to_share_chips(void **state)
{
        struct ledger *l = test_ledger();
        struct job job = job_fixture_parse("  placement: packed\n  workers: [{runtime: cpu, chips: 16}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        ledger_chips_mark(l, GPU);
        for (int i = 0; i < 2; i++) {
                const char *name = i == 0 ? "a" : "b";

                add_node(l, name, NODE_CLASS_ANY, "regular", "", 8, 8);
                node_of(l, name)->groups[0].runtime = symbols_add(&l->symbols, "cpu");
                node_of(l, name)->groups[0].figures = (struct chip_speed_figures){ 0 };
                put_under(l, name, i == 0 ? "s1" : "s2");
        }
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "a=8 b=8");
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* 12 chips: 8 on n-00 and 4 on n-01, by name. Under the switch of the first are 11, under the other's 12. */
static void the_second_switch_may_have_the_room(void **state)
{
        struct ledger *l = test_ledger();
        struct job job = job_fixture_parse("  placement: packed\n  workers: [{runtime: cuda, chips: 12}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256], name[8], switch_[8];

        (void) state;
        ledger_chips_mark(l, GPU);
        for (int i = 0; i < 100; i++) {
                unsigned chips = i == 0 || i == 51 ? 8 : 4;

                (void) text_format(name, sizeof(name), "n-%02d", i);
                (void) text_format(switch_, sizeof(switch_), "s%d", i % 50);
                add_node(l, name, NODE_CLASS_ANY, "regular", "H100", chips, chips);
                put_under(l, name, switch_);
        }
        bind_pod(l, "x", "n-50", 1); /* under the switch of n-00 */
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "n-51=8 n-01=4");
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void slow_networks_are_left_alone(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job =
                job_fixture_parse("  minNetworkMbps: 10000\n  workers: [{runtime: cuda, chips: 8}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), -EBUSY); /* nobody says what his network does */
        assert_non_null(strstr(err.msg, "8 chips of cuda on nodes that do 10000 Mbit/s (minNetworkMbps), "
                                        "and only 0 are free"));
        node_of(l, "a")->hardware.network_mbps = 9999;
        node_of(l, "d")->hardware.network_mbps = 10000;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "d=8");
        job_plan_networks(l, &plan);
        assert_int_equal(plan.groups[0].network_mbps, 10000);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* A split of two stages that are bound to kinds of chips: one that moves where its stage may not go leaves
 * everything as it was. */
static void a_move_that_has_no_plan_changes_nothing(void **state)
{
        struct ledger *l = test_ledger();
        struct job job = job_fixture_parse(
                "  strategy: split\n  args: []\n  globalBatch: 8\n"
                "  programs: {cuda: {image: x, command: [/x]}}\n"
                "  workers: [{model: H100|A100, chips: 8}]\n"
                "  profile: {layers: [{multiply_adds: 1}, {multiply_adds: 1}, {multiply_adds: 1}, "
                "{multiply_adds: 1}, {multiply_adds: 1}, {multiply_adds: 1}, {multiply_adds: 1}, "
                "{multiply_adds: 1}]}\n  stages: [{layers: \"0:0\", \"on\": {model: H100}}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct job_group before[2];
        struct err err = { 0 };
        size_t moves;

        (void) state;
        ledger_chips_mark(l, GPU);
        add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", 4, 4);
        add_node(l, "b", NODE_CLASS_ANY, "regular", "A100", 4, 4);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.group_count, 2);
        moves = strcmp(plan.groups[0].model, "H100") == 0 ? 0 : 1;
        assert_string_equal(plan.groups[moves].model, "H100");
        memcpy(before, plan.groups, sizeof(before));
        add_node(l, "c", NODE_CLASS_ANY, "regular", "A100", 4, 4);
        add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", 4, 0);
        assert_int_equal(job_plan_move(&claim, &plan, moves, &err), -ERANGE);
        assert_non_null(strstr(err.msg, "spec.stages[0].on: none of the job's chips is such"));
        assert_memory_equal(before, plan.groups, sizeof(before));
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(parts_go_under_one_switch_first),
                cmocka_unit_test(steps_of_two_kinds_of_figures_do_not_compare),
                cmocka_unit_test(a_switch_is_no_reason_to_share_chips),
                cmocka_unit_test(the_second_switch_may_have_the_room),
                cmocka_unit_test(slow_networks_are_left_alone),
                cmocka_unit_test(a_move_that_has_no_plan_changes_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
