/* What a manager says of its job, read by the controller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/controller/controller_internal.h"
#include "job/controller/job_speeds.h"
#include "job/controller/launchers/progress.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "tests/support/test_ledger.h"

#define HASH    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ANOTHER "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void a_managers_word_becomes_observations(void **state)
{
        struct job_group groups[] = {
                { .name = "w0-0", .model = "H100", .runtime = "cuda", .chips = 1, .ranks = 1 },
                { .name = "w1-0", .model = "Xeon", .runtime = "cpu", .chips = 1, .ranks = 2 },
                { .name = "s-0", .model = "Xeon", .runtime = "cpu", .chips = 1, .ranks = 1, .server = true },
                { .name = "w2-0", .runtime = "cpu", .chips = 1, .ranks = 1 },
        };
        struct job_state job_state = { .groups = groups, .group_count = ARRAY_SIZE(groups) };
        static const char text[] =
                ("{\"state\":\"Running\",\"ranks\":[{\"group\":\"s-0\",\"batch\":0,\"samples\":0,\"samples_"
                 "per_s\":0},"
                 "{\"group\":\"w0-0\",\"batch\":100,\"samples\":5000,\"samples_per_s\":20000},"
                 "{\"group\":\"w1-0\",\"batch\":20,\"samples\":1000,\"samples_per_s\":400},"
                 "{\"group\":\"w1-0\",\"batch\":20,\"samples\":60,\"samples_per_s\":1},"
                 "{\"group\":\"w1-0\",\"batch\":20,\"samples\":1000,\"samples_per_s\":0},"
                 "{\"group\":\"w1-0\",\"batch\":0,\"samples\":1000,\"samples_per_s\":400},"
                 "{\"group\":\"w2-0\",\"batch\":20,\"samples\":1000,\"samples_per_s\":400},"
                 "{\"group\":\"w9-9\",\"batch\":20,\"samples\":900,\"samples_per_s\":9}],"
                 "\"programs\":{\"w0-0\":\"" HASH "\",\"w1-0\":\"../x\"}}");
        struct ledger *ledger = test_ledger();
        struct ledger_program table = { .runtime = symbols_add(&ledger->symbols, "cuda"), .sha256 = HASH };
        struct job job;
        struct ledger_speeds_programs programs = { .ledger = ledger, .job = &job };
        struct job_report report;
        struct job_speed speeds[8];

        (void) state;
        assert_int_equal(job_report_parse(text, &report), 0);
        job_init(&job);
        programs.table = &table;
        programs.table_count = 1;
        ledger_speeds_collect(&programs);
        assert_int_equal(job_speeds_read(&programs, &job_state, &report, speeds, 8), 2);
        assert_string_equal(speeds[0].device, "H100");
        assert_true(fabs(speeds[0].step_ms - 5) < 1e-12 && speeds[0].batch == 100 && speeds[0].weight == 2);
        assert_string_equal(speeds[1].device, "Xeon (shared by 2)");
        assert_string_equal(speeds[0].program, HASH);
        assert_true(text_starts_with(speeds[1].program, SPEED_TABLE_OWN)); /* nobody vouches for it */
        assert_true(fabs(speeds[1].step_ms - 50) < 1e-12);
        assert_int_equal(job_speeds_read(&programs, &job_state, &report, speeds, 1), 1);
        (void) text_copy(table.sha256, sizeof(table.sha256),
                         ANOTHER); /* what it says is of another program */
        assert_int_equal(job_speeds_read(&programs, &job_state, &report, speeds, 8), 1);
        assert_string_equal(speeds[0].device, "Xeon (shared by 2)");
        programs.table_count = 0; /* a hash of its own choice enters under nobody's name but its own */
        assert_int_equal(job_speeds_read(&programs, &job_state, &report, speeds, 8), 2);
        assert_true(text_starts_with(speeds[0].program, SPEED_TABLE_OWN));
        table = (struct ledger_program){ .runtime = symbols_add(&ledger->symbols, "cpu"), .sha256 = HASH };
        programs.table_count = 1; /* whose groups say no hash, or say nothing at all of what they start */
        assert_int_equal(job_speeds_read(&programs, &job_state, &report, speeds, 8), 1);
        assert_string_equal(speeds[0].device, "H100");
        report.program_count = 0;
        assert_int_equal(job_speeds_read(&programs, &job_state, &report, speeds, 8), 1);
        assert_string_equal(speeds[0].device, "H100");
        report.program_count = 2;
        job.strategy = JOB_STRATEGY_SPLIT;
        assert_int_equal(job_speeds_read(&programs, &job_state, &report, speeds, 8), 0);
        job_report_free(&report);
        ledger_life_free(ledger);
}

static void what_is_not_understood_was_not_said(void **state)
{
        static const char text[] =
                "{\"state\":\"Failed\",\"reason\":7,\"restarts\":-3,\"loss\":\"low\",\"accuracy\":0,"
                "\"ranks\":[{\"group\":\"w0-0\",\"exit_code\":null},{\"exit_code\":137},3],"
                "\"events\":[{\"time\":\"t\",\"reason\":\"Started\",\"message\":\"m\"},{}],\"more\":{}}";
        struct job_report report;

        (void) state;
        assert_int_equal(job_report_parse(text, &report), 0);
        assert_string_equal(report.state, "Failed");
        assert_true(report.reason[0] == '\0' && report.restarts == 0 && isnan(report.loss));
        assert_true(report.accuracy == 0 && report.rank_count == 3 && report.event_count == 2);
        assert_true(report.ranks[0].exit_code == -1 && report.ranks[1].exit_code == 137);
        assert_string_equal(report.events[0].reason, "Started");
        job_report_free(&report);
        assert_int_equal(job_report_parse("last words of some program", &report), -EBADMSG);
        job_report_free(&report);
        assert_int_equal(job_report_parse("{\"accuracy\":0.5}", &report), -EBADMSG);
        job_report_free(&report);
}

/* Of the groups; a report that has been cut to its field says nothing of shares. */
static void new_shares_of_a_world_that_runs_are_the_jobs(void **state)
{
        struct job_group groups[] = {
                { .name = "w0-0", .ranks = 1, .batch = 16, .source = CHIP_SPEED_TABLE },
                { .name = "w1-0", .ranks = 2, .batch = 16, .source = CHIP_SPEED_TABLE }
        };
        struct controller controller = { 0 };
        struct record record = { .controller = &controller,
                                 .state = { .groups = groups, .group_count = 2, .recuts = 3 },
                                 .base_recuts = 3 };
        struct job_report report;

        (void) state;
        record.job.global_batch = 32;
        assert_int_equal(
                job_report_parse("{\"state\":\"Running\",\"recuts\":0,\"ranks\":[{\"group\":\"w0-0\","
                                 "\"batch\":16}]}",
                                 &report),
                0);
        assert_false(progress_take_shares(&record, &report));
        job_report_free(&report);
        assert_int_equal(
                job_report_parse("{\"state\":\"Running\",\"recuts\":2,\"ranks\":[{\"group\":\"w0-0\","
                                 "\"batch\":24},{\"group\":\"w1-0\",\"batch\":5},{\"group\":\"w1-0\","
                                 "\"batch\":3}]}",
                                 &report),
                0);
        assert_true(progress_take_shares(&record, &report));
        assert_int_equal(record.state.recuts, 5);
        assert_int_equal(controller.metrics.recuts, 2);
        assert_true(groups[0].batch == 24 && groups[1].batch == 8 && groups[0].weight == 0.75);
        assert_false(progress_take_shares(&record, &report));
        report.recuts = 3;
        report.rank_count = 2;
        assert_true(progress_take_shares(&record, &report));
        assert_true(groups[0].batch == 24 && groups[1].batch == 8);
        assert_true(groups[0].samples_per_s == 0 && groups[0].source != CHIP_SPEED_MEASURED);
        job_report_free(&report);
        assert_int_equal(
                job_report_parse(
                        "{\"state\":\"Running\",\"recuts\":4,\"ranks\":[{\"group\":\"w0-0\",\"batch\":20,"
                        "\"samples_per_s\":200},{\"group\":\"w1-0\",\"batch\":8,\"samples_per_s\":80},"
                        "{\"group\":\"w1-0\",\"batch\":4,\"samples_per_s\":40}]}",
                        &report),
                0);
        assert_true(progress_take_shares(&record, &report));
        assert_true(groups[0].samples_per_s == 200 && groups[1].samples_per_s == 120);
        assert_true(groups[0].source == CHIP_SPEED_MEASURED && groups[1].source == CHIP_SPEED_MEASURED);
        job_report_free(&report);
        assert_int_equal(
                job_report_parse("{\"state\":\"Running\",\"recuts\":5,\"ranks\":[{\"group\":\"w0-0\","
                                 "\"batch\":32,\"samples_per_s\":200}]}",
                                 &report),
                0);
        assert_true(progress_take_shares(&record, &report)); /* a world without the second group */
        assert_int_equal(job_state_rank_batch(&record.state, &groups[0], 0), 32);
        assert_int_equal(job_state_rank_batch(&record.state, &groups[1], 0), 0);
        assert_int_equal(job_state_rank_batch(&record.state, &groups[1], 1), 0);
        job_report_free(&report);
        free(record.state.ranks);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_managers_word_becomes_observations),
                cmocka_unit_test(what_is_not_understood_was_not_said),
                cmocka_unit_test(new_shares_of_a_world_that_runs_are_the_jobs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
