/* Plans of whole jobs: places, speeds, shares, and groups that move or are left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "job/plan/job_lease.h"
#include "job/plan/job_plan.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_speeds.h"
#include "tests/support/job_fixture.h"

static void placements_differ(void **state)
{
        static const struct {
                const char *what, *spec, *want;
        } cases[] = {
                { "packed: the smallest group that holds all",
                  "  placement: packed\n  workers: [{model: H100, chips: 3}]\n", "b=3" },
                { "packed: else the largest first",
                  "  placement: packed\n  workers: [{model: H100, chips: 10}]\n", "a=8 c=2" },
                { "largest-free: the emptiest first",
                  "  placement: largest-free\n  workers: [{model: H100, chips: 3}]\n", "a=3" },
                { "uniform: evenly over all holders",
                  "  placement: uniform\n  workers: [{model: H100, chips: 5}]\n", "a=2 b=2 c=1" },
                { "a model that is asked for", "  workers: [{model: A100, chips: 2}]\n", "d=2" },
                { "either of two models", "  placement: uniform\n  workers: [{model: A100|H100, chips: 4}]\n",
                  "a=1 b=1 c=1 d=1" },
                { "a fixed count and a range take what there is",
                  "  placement: packed\n  workers: [{model: H100, chips: 30, minChips: 2}]\n",
                  "c=2 a=8 b=4" },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ledger *l = job_fixture_cluster();
                struct job job = job_fixture_parse(cases[i].spec);
                struct open_groups_claim claim = job_fixture_claim(l, &job);
                struct job_state plan = { 0 };
                struct err err = { 0 };
                char text[256];

                if (job_plan(&claim, &plan, &err) < 0)
                        fail_msg("%s: %s", cases[i].what, err.msg);
                if (strcmp(job_fixture_places(&plan, text), cases[i].want) != 0)
                        fail_msg("%s: want %s, got %s", cases[i].what, cases[i].want, text);
                job_state_free(&plan);
                job_free(&job);
                ledger_life_free(l);
        }
}

static void what_does_not_fit_is_said(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  workers: [{model: H100, chips: 15}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), -EBUSY);
        assert_non_null(strstr(err.msg, "15 chips of H100"));
        assert_non_null(strstr(err.msg, "only 14 are free"));
        assert_int_equal(plan.group_count, 0);
        job_free(&job);
        ledger_life_free(l);
}

/* 4 of a's 8 chips are free for ever; an older pod waits for all 8 of them. */
static void what_an_older_pod_waits_for_is_not_open(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  workers: [{model: H100, chips: 8}]\n"),
                   small = job_fixture_parse("  workers: [{model: H100, chips: 6}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct ledger_pod_facts older = pod_of(l, "older", 8);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        bind_pod(l, "long", "a", 4);
        older.request.models[older.request.model_count++] = symbols_add(&l->symbols, "H100");
        assert_int_equal(ledger_pods_set(l, &older), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        claim.created_usec = older.created_usec + 1;
        assert_int_equal(job_plan(&claim, &plan, &err), -EBUSY);
        assert_non_null(strstr(err.msg, "only 6 are free for it now; 4 are held for older pods"));
        claim.job.job = &small; /* what is elsewhere it may have */
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "b=4 c=2");
        claim.job.job = &job;
        claim.created_usec = older.created_usec - 1; /* one that came before the pod */
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        claim.created_usec = 0;
        claim.emergency = true;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        job_state_free(&plan);
        job_free(&small);
        job_free(&job);
        ledger_life_free(l);
}

/* Two groups of a node are left three chips together, when the older pod has had its five. */
static void what_an_older_pod_leaves_of_a_node_is_shared_out_once(void **state)
{
        struct ledger *l = test_ledger();
        struct job job = job_fixture_parse("  placement: packed\n  workers: [{runtime: cuda, chips: 4}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct ledger_pod_facts older;
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        ledger_chips_mark(l, GPU);
        add_two_groups(l, "n", 4, 4, 100, 100);
        older = pod_of(l, "older", 5);
        assert_int_equal(ledger_pods_set(l, &older), 0);
        ledger_pods_find(l, "default", "older")->waited_usec = 1; /* it has been held for since */
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        assert_int_equal(job_plan(&claim, &plan, &err), -EBUSY);
        assert_non_null(strstr(err.msg, "only 3 are free for it now; 5 are held for older pods"));
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* A job that wants the second group alone has what is left of the node there: nothing is taken from the
 * first. */
static void what_an_older_pod_leaves_is_not_lost_to_other_groups(void **state)
{
        struct ledger *l = test_ledger();
        struct job job = job_fixture_parse("  workers: [{model: A100, chips: 3}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct ledger_pod_facts older;
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        ledger_chips_mark(l, GPU);
        add_two_groups(l, "n", 4, 4, 100, 100);
        older = pod_of(l, "older", 5);
        assert_int_equal(ledger_pods_set(l, &older), 0);
        ledger_pods_find(l, "default", "older")->waited_usec = 1; /* it has been held for since */
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "n=3");
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* What is held on a node that the entry cannot use is no reason why it waits. */
static void what_is_held_elsewhere_is_not_said(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  workers: [{model: H100, chips: 1}, {model: A100, chips: 9}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct ledger_pod_facts older = pod_of(l, "older", 8);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        bind_pod(l, "long", "a", 4);
        older.request.models[older.request.model_count++] = symbols_add(&l->symbols, "H100");
        assert_int_equal(ledger_pods_set(l, &older), 0);
        assert_int_equal(backfill_update(l, &fixture_rules, 1000000), 1);
        claim.created_usec = older.created_usec + 1;
        assert_int_equal(job_plan(&claim, &plan, &err), -EBUSY);
        assert_non_null(strstr(err.msg, "9 chips of A100, and only 8 are free for it now"));
        assert_null(strstr(err.msg, "older pods"));
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void what_is_misspelt_is_said(void **state)
{
        static const struct {
                const char *role, *said; /* NULL = nothing */
        } cases[] = {
                { "model: H1OO", "; no chip has model 'H1OO'; did you mean H100?" },
                { "model: h100", "; no chip has model 'h100'; did you mean H100?" },
                { "model: XYZ9000", "; no chip has model 'XYZ9000'" },
                { "model: B100", "; no chip has model 'B100'; did you mean H100 or A100?" },
                { "runtime: cuad", "; no chip has runtime 'cuad'; did you mean cuda?" },
                { "vendor: nvdia", "; no chip has vendor 'nvdia'; did you mean nvidia?" },
                { "model: H100", NULL },
                { "model: B100|H100", NULL },
                { "runtime: cuda", NULL },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ledger *l = job_fixture_cluster();
                struct job_state plan = { 0 };
                struct err err = { 0 };
                const char *said;
                char spec[128];
                struct job job;
                struct open_groups_claim claim;

                assert_true(
                        text_format(spec, sizeof(spec), "  workers: [{%s, chips: 100}]\n", cases[i].role));
                job = job_fixture_parse(spec);
                claim = job_fixture_claim(l, &job);
                assert_int_equal(job_plan(&claim, &plan, &err), -EBUSY);
                said = strstr(err.msg, "; ");
                if ((said == NULL) != (cases[i].said == NULL) ||
                    (said != NULL && strcmp(said, cases[i].said) != 0))
                        fail_msg("%s: %s", cases[i].role, err.msg);
                job_free(&job);
                ledger_life_free(l);
        }
}

static void equal_nodes_are_equal(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(
                "  equalNodes: true\n  placement: uniform\n  workers: [{runtime: cuda, chips: 9}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), -EBUSY); /* no two nodes are alike */
        add_node(l, "e", NODE_CLASS_ANY, "regular", "A100", 8, 8);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "d=5 e=4");
        add_node(l, "f", NODE_CLASS_ANY, "regular", "V100", 4, 4);
        job.workers[0].chips = job.workers[0].min_chips = 17; /* told of d and e, not of f, tried last */
        assert_int_equal(job_plan(&claim, &plan, &err), -EBUSY);
        assert_non_null(strstr(err.msg, "only 16 are free"));
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void measured_of(struct ledger *l, const char *program, const char *device, double alpha, double beta)
{
        struct speed_table_row row = { .model = "mlp", .alpha_ms = alpha, .beta_ms = beta };

        (void) text_copy(row.program, sizeof(row.program), program);
        (void) text_copy(row.device, sizeof(row.device), device);
        assert_int_equal(speed_table_keep(&l->speeds, &row), 0);
}

static void measured(struct ledger *l, const char *device, double alpha, double beta)
{
        measured_of(l, "", device, alpha, beta);
}

static void a_speed_is_of_its_program(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(
                "  globalBatch: 400\n  workers: [{model: H100, chips: 1}, {model: A100, chips: 1}]\n");
        struct job own = job_fixture_parse("  workers: [{model: H100, chips: 1}]\n"
                                           "  programs: {cuda: {image: x, command: [/x]}}\n");
        struct ledger_program table[] = { { .runtime = symbols_add(&l->symbols, "cuda"), .sha256 = "aa" } };
        struct ledger_speeds_programs programs = {
                .ledger = l, .job = &job, .table = table, .table_count = 1
        };
        struct ledger_speeds_programs own_programs = { .ledger = l, .job = &own, .table_count = 1 };
        char first[SHA256_HEX_BYTES];
        const char *name, *unvouched;
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        claim.job.programs = table;
        claim.job.program_count = 1;
        ledger_speeds_collect(&programs);
        assert_string_equal(ledger_speeds_program(&programs, "cuda"), "aa");
        unvouched = ledger_speeds_program(&programs, "rocm");
        assert_true(text_starts_with(unvouched, SPEED_TABLE_OWN));
        own_programs.table = table;
        ledger_speeds_collect(&own_programs);
        name = ledger_speeds_program(&own_programs, "cuda"); /* of its own image */
        assert_true(text_starts_with(name, SPEED_TABLE_OWN) && strcmp(name, unvouched) != 0);
        (void) text_copy(own.namespace_, sizeof(own.namespace_), "default"); /* as where none is given */
        (void) text_copy(first, sizeof(first), name);
        ledger_speeds_collect(&own_programs);
        assert_string_equal(ledger_speeds_program(&own_programs, "cuda"), first);
        (void) text_copy(own.namespace_, sizeof(own.namespace_), "others");
        ledger_speeds_collect(&own_programs);
        assert_string_not_equal(ledger_speeds_program(&own_programs, "cuda"), first);
        assert_null(speed_table_find(&l->speeds, "", "mlp", "H100"));
        measured_of(l, "bb", "H100", 0, 1);
        measured_of(l, "bb", "A100", 0, 3);
        assert_null(speed_table_find(&l->speeds, "aa", "mlp", "H100")); /* another program's is never taken */
        assert_true(speed_table_find(&l->speeds, "", "mlp", "H100")->beta_ms == 1);
        assert_null(speed_table_find(&l->speeds, "", "cnn", "H100"));
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.groups[0].source, CHIP_SPEED_TABLE);
        assert_int_equal(plan.groups[0].batch, 200);
        measured(l, "H100", 0, 4); /* of a program that is not known */
        assert_true(speed_table_find(&l->speeds, "aa", "mlp", "H100")->beta_ms == 4);
        measured_of(l, "aa", "H100", 0, 3);
        measured_of(l, "aa", "A100", 0, 1);
        assert_true(speed_table_find(&l->speeds, "aa", "mlp", "H100")->beta_ms == 3);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.groups[0].source, CHIP_SPEED_MEASURED);
        assert_int_equal(plan.groups[0].batch, 100);
        measured_of(l, "bb", "H100", 0, 7); /* what is seen again is the newest */
        assert_int_equal(l->speeds.count, 5);
        assert_true(speed_table_find(&l->speeds, "", "mlp", "H100")->beta_ms == 7);
        job_state_free(&plan);
        job_free(&job);
        job_free(&own);
        ledger_life_free(l);
}

/* Two jobs of one interpreter are two programs, and both ends of a cluster come to the same name. */
static void arguments_are_part_of_a_program(void **state)
{
        static char *script[] = { "/x/train.py" }, *arguments[] = { "--model", "gpt" };
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  workers: [{model: H100, chips: 1}]\n  args: [--model, gpt]\n");
        struct job plain = job_fixture_parse("  workers: [{model: H100, chips: 1}]\n");
        struct job own = job_fixture_parse("  workers: [{model: H100, chips: 1}]\n  args: [--model, gpt]\n"
                                           "  programs: {cuda: {image: x, command: [/x]}}\n");
        struct ledger_program row = { .runtime = symbols_add(&l->symbols, "cuda"), .sha256 = "aa" };
        struct ledger_speeds_programs programs = { .ledger = l, .job = &job, .learning = true },
                                      others = { .ledger = l, .job = &own };
        char want[SHA256_HEX_BYTES], own_name[SHA256_HEX_BYTES];

        (void) state;
        speed_table_program("aa", script, 1, row.speed_name);
        speed_table_program(row.speed_name, arguments, 2, want);
        programs.table = &row;
        programs.table_count = 1;
        ledger_speeds_collect(&programs); /* the program table's word */
        assert_string_equal(ledger_speeds_program(&programs, "cuda"), want);
        assert_string_equal(ledger_speeds_vouched(&programs, "cuda"), "aa");
        programs.table_count = 0; /* a node's */
        l->nodes[0]->programs = calloc(1, sizeof(row));
        memcpy(l->nodes[0]->programs, &row, sizeof(row));
        l->nodes[0]->program_count = 1;
        ledger_speeds_collect(&programs);
        assert_string_equal(ledger_speeds_program(&programs, "cuda"), want);
        programs.job = &plain;
        ledger_speeds_collect(&programs);
        assert_string_equal(ledger_speeds_program(&programs, "cuda"), row.speed_name);
        ledger_speeds_collect(&others);
        assert_string_equal(ledger_speeds_vouched(&others, "cuda"), "");
        (void) text_copy(own_name, sizeof(own_name), ledger_speeds_program(&others, "cuda"));
        own.args[1][0] = 'G';
        ledger_speeds_collect(&others);
        assert_string_not_equal(ledger_speeds_program(&others, "cuda"), own_name);
        job_free(&job);
        job_free(&plain);
        job_free(&own);
        ledger_life_free(l);
}

static void the_fastest_is_found_among_like_figures(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse("  globalBatch: 16\n  workers: [{runtime: cuda, chips: 1}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < l->node_count; i++) /* the H100 is the better one on paper */
                for (size_t g = 0; g < l->nodes[i]->group_count; g++)
                        l->nodes[i]->groups[g].figures.tflops[CHIP_SPEED_BF16] =
                                strcmp(symbols_name(&l->symbols, l->nodes[i]->groups[g].model), "H100") == 0
                                        ? 0.9
                                        : 0.3;
        measured(l, "A100", 0, 0.1); /* 10,000 samples a second, and nobody knows what the H100 does */
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(plan.groups[0].model, "H100");
        measured(l, "H100", 0, 0.2);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(plan.groups[0].model, "A100");
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void shares_follow_measured_speeds(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(
                "  globalBatch: 400\n  workers: [{model: H100, chips: 1}, {model: A100, chips: 1}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        measured(l, "H100", 0, 1);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.groups[0].source, CHIP_SPEED_TABLE); /* speeds of two kinds do not mix */
        assert_int_equal(plan.groups[0].batch, 200);
        measured(l, "A100", 0, 3);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.groups[0].source, CHIP_SPEED_MEASURED);
        assert_int_equal(plan.groups[0].batch, 300);
        assert_int_equal(plan.groups[1].batch, 100);
        assert_true(plan.groups[0].weight == 0.75);
        assert_true(plan.groups[0].samples_per_s == 1000);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void a_chip_that_ranks_share_has_a_speed_of_its_own(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(
                "  globalBatch: 300\n  workers: [{model: H100, chips: 1}, {model: A100, chips: 1}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        measured(l, "H100", 0, 1);
        measured(l, "A100", 0, 5);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        plan.groups[0].ranks = 2;
        assert_int_equal(job_plan_share(&claim.job, &plan, &err), 0);
        assert_int_equal(plan.groups[0].batch, 250); /* each rank is half of the chip */
        measured(l, "H100 (shared by 2)", 0, 5);
        assert_int_equal(job_plan_share(&claim.job, &plan, &err), 0);
        assert_int_equal(plan.groups[0].batch, 200); /* or what was seen of such a half */
        assert_int_equal(plan.groups[0].source, CHIP_SPEED_MEASURED);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void a_member_that_would_slow_the_job_is_not_added(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(
                "  globalBatch: 16\n  workers: [{model: H100, chips: 2}, {model: A100, chips: "
                "6, minChips: 1}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256];

        (void) state;
        measured(l, "H100", 0, 1);
        measured(l, "A100", 50, 1); /* a step of anything takes 50 ms there */
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "c=2 d=1");
        assert_int_equal(plan.note_count, 1);
        assert_non_null(strstr(plan.notes[0], "NotAdded"));
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

static void servers_are_the_first_ranks(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job =
                job_fixture_parse("  strategy: ps-sync\n  workers: [{model: H100, chips: 2}]\n  servers: "
                                  "{model: A100, chips: 1}\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_int_equal(plan.group_count, 2);
        assert_true(plan.groups[0].server);
        assert_int_equal(plan.groups[0].first_rank, 0);
        assert_int_equal(plan.groups[0].batch, 0);
        assert_int_equal(plan.groups[1].first_rank, 1);
        assert_int_equal(plan.groups[1].batch, 256);
        assert_string_equal(plan.groups[0].name, "s-1");
        assert_string_equal(plan.groups[1].name, "w0-0");
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* A job of two groups on a and b; b breaks. */
static void a_group_moves_or_is_left_out(void **state)
{
        struct ledger *l = job_fixture_cluster();
        struct job job = job_fixture_parse(
                "  placement: uniform\n  workers: [{model: H100, chips: 6, minChips: 4}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = { 0 };
        struct err err = { 0 };
        char text[256], was[JOB_GROUP_NAME_BYTES];

        (void) state;
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "a=2 b=2 c=2");
        (void) text_copy(was, sizeof(was), plan.groups[1].name);
        add_node(l, "b", NODE_CLASS_ANY, "regular", "H100", 4, 0);
        (void) text_copy(plan.groups[1].runtime, JOB_RUNTIME_BYTES,
                         "cann"); /* no chip that is free runs its program */
        assert_int_equal(job_plan_move(&claim, &plan, 1, &err), -EBUSY);
        (void) text_copy(plan.groups[1].runtime, JOB_RUNTIME_BYTES, "cuda");
        assert_int_equal(job_plan_move(&claim, &plan, 1, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "a=2 a=2 c=2");
        assert_string_equal(plan.groups[1].name, was); /* it keeps its name and its ranks */
        bind_pod(l, "other", "a", 8);
        add_node(l, "c", NODE_CLASS_ANY, "regular", "H100", 2, 0);
        assert_int_equal(job_plan_move(&claim, &plan, 2, &err), -EBUSY);
        assert_true(job_plan_may_leave(&job, &plan, 2));
        assert_int_equal(job_plan_leave_out(&claim, &plan, 2, &err), 0);
        assert_int_equal(plan.groups[0].batch + plan.groups[1].batch, 256);
        assert_false(job_plan_may_leave(&job, &plan, 1)); /* 3 would be fewer than minChips */
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

/* Of two groups of two chips on a and b, the first with its pod there; b breaks. What the pod holds of a is
 * not to be had, what is beside it is. */
static void a_group_moves_beside_a_bound_one(void **state)
{
        struct ledger *l = test_ledger();
        struct job job = job_fixture_parse("  placement: uniform\n  workers: [{model: H100, chips: 4}]\n");
        struct open_groups_claim claim = job_fixture_claim(l, &job);
        struct job_state plan = job_state_new();
        struct job_lease lease = { .namespace_ = "default", .name = "j", .job = &job, .state = &plan };
        struct ledger_pod_facts first;
        struct err err = { 0 };
        char text[256];

        (void) state;
        ledger_chips_mark(l, GPU);
        add_node(l, "a", NODE_CLASS_ANY, "regular", "H100", 4, 4);
        add_node(l, "b", NODE_CLASS_ANY, "regular", "H100", 2, 2);
        assert_int_equal(job_plan(&claim, &plan, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "a=2 b=2");
        plan.phase = JOB_RUNNING;
        assert_int_equal(job_lease_set(l, &lease), 0);
        first = pod_of(l, "j-w0-0", 2);
        first.job = "j";
        first.node = "a";
        assert_int_equal(ledger_pods_set(l, &first), 0);
        add_node(l, "b", NODE_CLASS_ANY, "regular", "H100", 2, 0);
        job_group_lose(&plan.groups[1]);
        assert_int_equal(job_lease_set(l, &lease), 0);
        claim.ledger_job = ledger_jobs_find(l, "default", "j");
        assert_non_null(claim.ledger_job);
        bind_pod(l, "other", "a", 1);
        assert_int_equal(job_plan_move(&claim, &plan, 1, &err), -EBUSY);
        ledger_pods_drop(l, "default", "other");
        assert_int_equal(job_plan_move(&claim, &plan, 1, &err), 0);
        assert_string_equal(job_fixture_places(&plan, text), "a=2 a=2");
        plan.phase = JOB_FAILED;
        assert_int_equal(job_lease_set(l, &lease), 0);
        job_state_free(&plan);
        job_free(&job);
        ledger_life_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(placements_differ),
                cmocka_unit_test(what_does_not_fit_is_said),
                cmocka_unit_test(what_an_older_pod_waits_for_is_not_open),
                cmocka_unit_test(what_an_older_pod_leaves_of_a_node_is_shared_out_once),
                cmocka_unit_test(what_an_older_pod_leaves_is_not_lost_to_other_groups),
                cmocka_unit_test(what_is_held_elsewhere_is_not_said),
                cmocka_unit_test(what_is_misspelt_is_said),
                cmocka_unit_test(equal_nodes_are_equal),
                cmocka_unit_test(shares_follow_measured_speeds),
                cmocka_unit_test(a_speed_is_of_its_program),
                cmocka_unit_test(arguments_are_part_of_a_program),
                cmocka_unit_test(the_fastest_is_found_among_like_figures),
                cmocka_unit_test(a_chip_that_ranks_share_has_a_speed_of_its_own),
                cmocka_unit_test(a_member_that_would_slow_the_job_is_not_added),
                cmocka_unit_test(servers_are_the_first_ranks),
                cmocka_unit_test(a_group_moves_or_is_left_out),
                cmocka_unit_test(a_group_moves_beside_a_bound_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
