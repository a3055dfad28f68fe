/* When a job has a disruption budget, and what is written of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/controller/disruption.h"
#include "tests/support/controller_bed.h"

#define SAVES ",\"checkpoint\":{\"path\":\"/c\",\"claim\":\"c\"}"

/* clang-format off */
static const struct { const char *what; struct job job; struct job_state state; bool refuses; } rows[] = {
        { "no plan: nothing to lose",              { .disruption = JOB_EVICTION_NEVER }, { .group_count = 0 }, false },
        { "an end",                                { .disruption = JOB_EVICTION_NEVER }, { .group_count = 2, .phase = JOB_SUCCEEDED }, false },
        { "no checkpoint: all would be lost",      { .restart = { .given = true, .max = 3, .migrate = true } }, { .group_count = 2, .phase = JOB_RUNNING }, true },
        { "a checkpoint, and three restarts left", { .checkpoint = { .given = true } }, { .group_count = 2, .phase = JOB_RUNNING }, false },
        { "... and none left: it would be its end", { .checkpoint = { .given = true } }, { .group_count = 2, .phase = JOB_RUNNING, .restarts = 3 }, true },
        { "... that it never had",                 { .checkpoint = { .given = true }, .restart = { .given = true, .migrate = true } }, { .group_count = 2, .phase = JOB_RUNNING }, true },
        { "it may go nowhere else",                { .checkpoint = { .given = true }, .restart = { .given = true, .max = 3 } }, { .group_count = 2, .phase = JOB_RUNNING }, true },
        { "it says that it may be evicted",        { .preemptible = true }, { .group_count = 2, .phase = JOB_RUNNING }, false },
        { "... in so many words",                  { .disruption = JOB_EVICTION_ALLOWED }, { .group_count = 2, .phase = JOB_RUNNING }, false },
        { "... that it may not",                   { .disruption = JOB_EVICTION_NEVER, .checkpoint = { .given = true } }, { .group_count = 2, .phase = JOB_STARTING }, true },
};
/* clang-format on */

static void it_is_refused_where_it_would_cost_all(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (disruption_refuses(&rows[i].job, &rows[i].state) != rows[i].refuses)
                        fail_msg("%s", rows[i].what);
}

static const char *budget(struct bed *b, const char *path)
{
        return memory_store_text(b->store, "PodDisruptionBudget default/j-u-j", path);
}

static unsigned kept(struct bed *b)
{
        return (unsigned) json_integer_value(json_object_get(
                json_object_get(json_object_get(b->store->objects, "PodDisruptionBudget default/j-u-j"),
                                "spec"),
                "minAvailable"));
}

static void a_budget_lives_as_long_as_there_is_something_to_lose(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .budgets = true });

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, kept(b) > 0);
        assert_int_equal(kept(b), bed_record(b, "j")->state.group_count + 1);
        assert_string_equal(budget(b, "spec|selector|matchLabels|remuda.dev/job"), "j");
        assert_string_equal(budget(b, "spec|unhealthyPodEvictionPolicy"), "AlwaysAllow");
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "put PodDisruptionBudget"), 1);
        bed_merge(b, "TrainingJob", "j", "{\"spec\":{\"disruption\":\"allowed\"}}");
        BED_WAIT(b, kept(b) == 0);
        bed_merge(b, "TrainingJob", "j", "{\"spec\":{\"disruption\":\"never\"}}");
        BED_WAIT(b, kept(b) > 0);
        bed_merge(b, "TrainingJob", "j", "{\"spec\":{\"suspend\":true}}");
        BED_WAIT(b, kept(b) == 0); /* while its pods have their grace time */
        assert_true(bed_is(b, "j", "Running", "Suspending"));
        bed_end(b);
}

static void an_end_takes_it_away(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .budgets = true });

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, kept(b) > 0);
        bed_merge(b, "TrainingJob", "j", "{\"metadata\":{\"annotations\":{\"remuda.dev/cancel\":\"true\"}}}");
        BED_WAIT(b, bed_is(b, "j", "Cancelled", NULL) && kept(b) == 0);
        bed_end(b);
}

/* A job without one costs no write; nor does any where an administrator has none of them. */
static void who_needs_none_has_none(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .budgets = true });

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS SAVES);
        bed_put_job(b, "waits", "\"workers\":[{\"model\":\"H100\",\"chips\":16}]");
        BED_WAIT(b, bed_is(b, "waits", "Pending", "Unschedulable"));
        assert_int_equal(memory_store_count(b->store, "put PodDisruptionBudget"), 0);
        assert_int_equal(memory_store_count(b->store, "force PodDisruptionBudget"), 0);
        bed_end(b);
        b = bed_begin((struct controller_options){ .budgets = false });
        bed_run_job(b, "j", BED_TWO_CHIPS);
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "PodDisruptionBudget"), 0);
        bed_end(b);
}

/* Told to make none, it takes away the one that it finds; and one that leads again does not go by what it
 * wrote the last time. */
static void what_another_one_wrote_is_not_taken_for_known(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .budgets = true });

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, kept(b) > 0);
        bed_settle(b);
        b->controller->leading = false;
        controller_lead(b->controller);
        BED_WAIT(b, memory_store_count(b->store, "put PodDisruptionBudget") == 2);
        bed_settle(b);
        b->controller->options.no_budgets = true; /* as the next one is started */
        bed_look(b, "j");
        BED_WAIT(b, kept(b) == 0);
        bed_settle(b);
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, "force PodDisruptionBudget"), 1);
        bed_end(b);
}

/* A right that is missing is said once, and keeps the job from nothing. */
static void a_refusal_stops_no_job(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .budgets = true });

        (void) state;
        memory_store_refuse(b->store, "PodDisruptionBudget", -EPERM, "may not");
        bed_run_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, bed_said(b, "BudgetNotWritten"));
        bed_record(b, "j")->budget.after_usec = 0;
        bed_look(b, "j");
        BED_WAIT(b, memory_store_count(b->store, "put PodDisruptionBudget") == 2);
        assert_int_equal(memory_store_count(b->store, "event BudgetNotWritten"), 1);
        assert_true(bed_is(b, "j", "Running", NULL));
        memory_store_refuse(b->store, NULL, 0, NULL);
        bed_record(b, "j")->budget.after_usec = 0;
        bed_look(b, "j");
        BED_WAIT(b, kept(b) > 0);
        bed_end(b);
}

/* Its pods would be evicted as long as it is away, and its plan may hold for weeks. */
static void what_somebody_takes_away_comes_back(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .budgets = true });
        unsigned puts;

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, kept(b) > 0);
        bed_settle(b);
        puts = memory_store_count(b->store, "put PodDisruptionBudget");
        assert_int_equal(puts, 1); /* that it is seen is no reason to write it again */
        memory_store_drop(b->store, "PodDisruptionBudget default/j-u-j");
        BED_WAIT(b, kept(b) == bed_record(b, "j")->state.group_count + 1);
        memory_store_merge(b->store, "PodDisruptionBudget default/j-u-j", "{\"spec\":{\"minAvailable\":1}}");
        BED_WAIT(b, kept(b) == bed_record(b, "j")->state.group_count + 1);
        memory_store_merge(b->store, "PodDisruptionBudget default/j-u-j",
                           "{\"spec\":{\"selector\":{\"matchLabels\":{\"remuda.dev/job\":\"k\"}}}}");
        BED_WAIT(b, strcmp(budget(b, "spec|selector|matchLabels|remuda.dev/job"), "j") == 0);
        bed_settle(b);
        assert_int_equal(memory_store_count(b->store, "put PodDisruptionBudget"), puts + 3);
        bed_end(b);
}

/* Who takes it away as often as it comes is answered once a second. */
static void a_quarrel_is_no_storm(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .budgets = true });
        uint64_t begin;

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, kept(b) > 0);
        bed_settle(b);
        begin = clock_monotonic_usec();
        for (unsigned i = 0; i < 2; i++) {
                memory_store_drop(b->store, "PodDisruptionBudget default/j-u-j");
                BED_WAIT(b, kept(b) > 0);
                bed_settle(b);
        }
        assert_true(clock_monotonic_usec() - begin >= 2000000);
        bed_end(b);
}

/* An API server lets no minAvailable beside a maxUnavailable: the budget goes, once, and comes back as ours.
 */
static void one_that_takes_no_write_is_made_anew(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .budgets = true });

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, kept(b) > 0);
        bed_settle(b);
        memory_store_merge(b->store, "PodDisruptionBudget default/j-u-j",
                           "{\"spec\":{\"minAvailable\":0,\"maxUnavailable\":1}}");
        memory_store_refuse(b->store, "put PodDisruptionBudget", -EINVAL, "cannot be both set");
        BED_WAIT(b, bed_said(b, "BudgetNotWritten")); /* the one after the deletion, too */
        assert_int_equal(memory_store_count(b->store, "force PodDisruptionBudget"), 1);
        assert_string_equal(budget(b, "spec|selector|matchLabels|remuda.dev/job"), "");
        bed_record(b, "j")->budget.after_usec = 0;
        bed_look(b, "j");
        BED_WAIT(b, memory_store_count(b->store, "put PodDisruptionBudget") == 4);
        bed_settle(b);
        assert_int_equal(memory_store_count(b->store, "force PodDisruptionBudget"), 1);
        assert_int_equal(memory_store_count(b->store, "event BudgetNotWritten"), 1);
        memory_store_refuse(b->store, NULL, 0, NULL);
        bed_record(b, "j")->budget.after_usec = 0;
        bed_look(b, "j");
        BED_WAIT(b, kept(b) == bed_record(b, "j")->state.group_count + 1);
        assert_false(bed_record(b, "j")->budget.cleared);
        bed_end(b);
}

/* Who deletes it before its write is answered is answered as late as any other. */
static void one_that_is_gone_at_once_is_no_storm(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .budgets = true });
        struct record *record;

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, kept(b) > 0);
        bed_settle(b);
        record = bed_record(b, "j");
        record->budget.pods = BUDGET_UNKNOWN;
        record->budget.after_usec = 0;
        disruption_settle(record);
        assert_true(record->budget.under_way);
        disruption_observe(b->controller, "default/j-u-j", NULL);
        while (record->budget.under_way) /* the deletion is what was seen last */
                (void) sd_event_run(b->loop, 10000);
        assert_int_equal(record->budget.pods, BUDGET_UNKNOWN);
        assert_true(record->budget.after_usec > clock_monotonic_usec());
        assert_int_equal(memory_store_count(b->store, "put PodDisruptionBudget"), 2);
        BED_WAIT(b, record->budget.pods == kept(b));
        bed_end(b);
}

/* Those of others, of a job of that name that is gone, and of none. */
static void budgets_of_others_are_nothing_to_it(void **state)
{
        static const char *const keys[] = { "default/j-u-k", "default/j", "other/j-u-j", "default/bank-u-j",
                                            "default/-" };
        struct bed *b = bed_begin((struct controller_options){ .budgets = true });

        (void) state;
        bed_run_job(b, "j", BED_TWO_CHIPS);
        BED_WAIT(b, kept(b) > 0);
        bed_settle(b);
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                disruption_observe(b->controller, keys[i], NULL);
        assert_int_equal(bed_record(b, "j")->budget.pods, kept(b));
        bed_end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_is_refused_where_it_would_cost_all),
                cmocka_unit_test(what_another_one_wrote_is_not_taken_for_known),
                cmocka_unit_test(a_budget_lives_as_long_as_there_is_something_to_lose),
                cmocka_unit_test(an_end_takes_it_away),
                cmocka_unit_test(who_needs_none_has_none),
                cmocka_unit_test(a_refusal_stops_no_job),
                cmocka_unit_test(what_somebody_takes_away_comes_back),
                cmocka_unit_test(a_quarrel_is_no_storm),
                cmocka_unit_test(one_that_takes_no_write_is_made_anew),
                cmocka_unit_test(one_that_is_gone_at_once_is_no_storm),
                cmocka_unit_test(budgets_of_others_are_nothing_to_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
