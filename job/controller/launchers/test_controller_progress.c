/* What a manager says becomes what the job's status says: each thing once, added to what was before, and
 * nothing that it cannot know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "io/loop.h"
#include "job/controller/controller_internal.h"
#include "job/controller/launchers/progress.h"
#include "job/plan/progress/job_left.h"
#include "tests/support/job_fixture.h"

/* A job of 10 chips, planned on groups of 8 and 2; nothing is written, all that is said is kept. */
struct asked {
        struct controller controller;
        struct record record;
        struct ledger *ledger;
        struct text said;
};

static void on_log(void *userdata, int priority, const char *event, const char *text)
{
        struct asked *asked = userdata;

        (void) event;
        text_printf(&asked->said, "%s %s\n", priority == LOG_WARNING ? "warning" : "normal",
                    strstr(text, "reason="));
}

static bool leads(void *userdata)
{
        (void) userdata;
        return false;
}

static void begin(struct asked *a)
{
        struct open_groups_claim claim;
        struct err err = { 0 };

        *a = (struct asked){ .ledger = job_fixture_cluster() };
        assert_int_equal(loop_new(&a->controller.loop, &err), 0);
        a->controller.options.log = on_log;
        a->controller.options.leads = leads;
        a->controller.options.userdata = a;
        a->record.controller = &a->controller;
        a->record.key = (char *) "default/j";
        a->record.job = job_fixture_parse("  globalBatch: 64\n  epochs: 3\n  placement: packed\n  workers: "
                                          "[{model: H100, chips: 10}]\n");
        a->record.state = job_state_new();
        claim = job_fixture_claim(a->ledger, &a->record.job);
        if (job_plan(&claim, &a->record.state, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(a->record.state.group_count, 2);
        assert_int_equal(a->record.state.groups[0].ranks, 8);
}

static void end(struct asked *a)
{
        job_state_free(&a->record.state);
        job_free(&a->record.job);
        ledger_life_free(a->ledger);
        text_free(&a->said);
        sd_event_unref(a->controller.loop);
}

static struct job_report report_of(const char *text)
{
        struct job_report report;

        assert_int_equal(job_report_parse(text, &report), 0);
        return report;
}

static void events_are_passed_on_once(void **state)
{
        struct job_report report = report_of(
                "{\"state\":\"Running\",\"events\":["
                "{\"time\":\"2026-11-21T10:00:01Z\",\"reason\":\"RankKilled\",\"message\":\"of another "
                "day\"},"
                "{\"time\":\"2026-11-21T10:00:02Z\",\"reason\":\"Started\",\"message\":\"said before\"},"
                "{\"time\":\"2026-11-21T10:00:03Z\",\"reason\":\"Joined\",\"message\":\"nobody's business\"},"
                "{\"time\":\"2026-11-21T10:00:04Z\",\"reason\":\"RankKilled\",\"message\":\"rank 3\"},"
                "{\"time\":\"2026-11-21T10:00:04Z\",\"reason\":\"SharesChanged\",\"message\":\"of one "
                "moment\"},"
                "{\"time\":\"\",\"reason\":\"Straggler\",\"message\":\"at no time\"},"
                "{\"time\":\"2026-11-21T10:00:05Z\",\"reason\":\"\",\"message\":\"for no reason\"},"
                "{\"time\":\"2026-11-21T10:00:06Z\",\"reason\":\"Resumed\",\"message\":\"at step 7\"},"
                "{\"time\":\"2026-11-21T10:00:07Z\",\"reason\":\"Started\",\"message\":\"world 2\"},"
                "{\"time\":\"2026-11-21T10:00:07Z\",\"reason\":\"Straggler\",\"message\":\"rank 5\"},"
                "{\"time\":\"2026-11-21T10:00:08Z\",\"reason\":\"Completed\",\"message\":\"all\"}]}");
        struct asked a;

        (void) state;
        begin(&a);
        (void) text_copy(a.record.state.last_event, sizeof(a.record.state.last_event),
                         "2026-11-21T10:00:02Z");
        assert_true(progress_pass_events(&a.record, &report));
        assert_string_equal(a.said.data, "warning reason=RankKilled \"rank 3\"\n"
                                         "normal reason=SharesChanged \"of one moment\"\n"
                                         "normal reason=Resumed \"at step 7\"\n"
                                         "normal reason=Started \"world 2\"\n"
                                         "warning reason=Straggler \"rank 5\"\n"
                                         "normal reason=Completed \"all\"\n");
        assert_int_equal(a.record.stragglers, 1);
        assert_string_equal(a.record.state.last_event, "2026-11-21T10:00:08Z");
        assert_false(progress_pass_events(&a.record, &report));
        assert_int_equal(a.controller.metrics.stragglers, 1);
        job_report_free(&report);
        end(&a);
}

#define RANKS_EQUAL                                                                                          \
        "{\"group\":\"w0-0\",\"batch\":7},{\"group\":\"w0-0\",\"batch\":7},{\"group\":\"w0-0\",\"batch\":7}" \
        ",{\"group\":\"w0-0\",\"batch\":7},{\"group\":\"w0-0\",\"batch\":7},{\"group\":\"w0-0\",\"batch\":7" \
        "},{\"group\":\"w0-0\",\"batch\":7}"

static const struct {
        const char *report;
        bool taken;
        uint64_t groups[2], first, last; /* batches of the groups, of rank 0 and rank 9 */
} share_rows[] = {
        { "{\"state\":\"Running\",\"recuts\":0}", false, { 56, 8 }, 7, 4 },
        { "{\"state\":\"Running\",\"recuts\":1}", true, { 56, 8 }, 7, 4 }, /* counted, but not told */
        { "{\"state\":\"Running\",\"recuts\":2,\"ranks\":[" RANKS_EQUAL
          ",{\"group\":\"w0-0\",\"batch\":7},{\"group\":\"w0-1\",\"batch\":3},{\"group\":\"w0-1\","
          "\"batch\":4}]}", /* 63 of 64 */
          true,
          { 56, 8 },
          7,
          4 },
        { "{\"state\":\"Running\",\"recuts\":2,\"ranks\":[{\"group\":\"w0-0\",\"batch\":1}]}",
          false,
          { 56, 8 },
          7,
          4 }, /* of a cut that was heard of before */
        { "{\"state\":\"Running\",\"recuts\":3,\"ranks\":[" RANKS_EQUAL
          ",{\"group\":\"w0-0\",\"batch\":6},{\"group\":\"w0-1\",\"batch\":7},{\"group\":\"w0-1\","
          "\"batch\":2}]}",
          true,
          { 55, 9 },
          7,
          2 },
        { "{\"state\":\"Running\",\"recuts\":3,\"ranks\":[" RANKS_EQUAL
          ",{\"group\":\"w0-0\",\"batch\":6},{\"group\":\"w0-1\",\"batch\":7},{\"group\":\"w0-1\","
          "\"batch\":2}]}",
          false,
          { 55, 9 },
          7,
          2 }, /* the same again */
        { "{\"state\":\"Running\",\"recuts\":3,\"reshards\":1,\"ranks\":[" RANKS_EQUAL
          ",{\"group\":\"w0-0\",\"batch\":7},{\"group\":\"w0-1\",\"batch\":3},{\"group\":\"w0-1\","
          "\"batch\":5}]}",
          true,
          { 56, 8 },
          7,
          5 }, /* of a new world, which was cut anew before it began */
        { "{\"state\":\"Running\",\"recuts\":3,\"ranks\":[{\"group\":\"w0-1\",\"batch\":30},"
          "{\"group\":\"w0-1\",\"batch\":34}]}",
          true,
          { 0, 64 },
          0,
          34 }, /* of one that goes on without a group */
        { "{\"state\":\"Running\",\"recuts\":3,\"ranks\":[{\"group\":\"w0-1\",\"batch\":30},"
          "{\"group\":\"nobody\",\"batch\":34}]}",
          false,
          { 0, 64 },
          0,
          34 },
        { "{\"state\":\"Running\",\"recuts\":3,\"ranks\":[{\"group\":\"w0-1\","
          "\"batch\":9223372036854775807},{\"group\":\"w0-1\",\"batch\":9223372036854775807},"
          "{\"group\":\"w0-1\",\"batch\":66}]}",
          false,
          { 0, 64 },
          0,
          34 }, /* 64, if numbers were as long as memory */
};

static void shares_are_taken_when_they_are_whole(void **state)
{
        struct asked a;

        (void) state;
        begin(&a);
        a.record.base_recuts = 4; /* of the managers before */
        a.record.state.recuts = 4;
        for (size_t i = 0; i < ARRAY_SIZE(share_rows); i++) {
                struct job_report report = report_of(share_rows[i].report);
                const struct job_state *s = &a.record.state;
                uint64_t before = s->recuts;

                assert_int_equal(progress_take_shares(&a.record, &report), share_rows[i].taken);
                assert_int_equal(s->recuts, share_rows[i].taken ? 4 + report.recuts : before);
                assert_int_equal(s->groups[0].batch, share_rows[i].groups[0]);
                assert_int_equal(s->groups[1].batch, share_rows[i].groups[1]);
                assert_int_equal(job_state_rank_batch(s, &s->groups[0], 0), share_rows[i].first);
                assert_int_equal(job_state_rank_batch(s, &s->groups[1], 1), share_rows[i].last);
                assert_true(fabs(s->groups[0].weight + s->groups[1].weight - 1) < 1e-12);
                job_report_free(&report);
        }
        assert_int_equal(a.controller.metrics.recuts, 3);
        end(&a);
}

/* A manager tells all of the job's life: the next one says what it was told until there are more. */
static void crashes_of_mpirun_are_counted_once(void **state)
{
        static const struct {
                const char *report;
                bool more;
                unsigned known, counted;
        } rows[] = {
                { "{\"state\":\"Running\"}", false, 1, 0 }, /* of an older launcher */
                { "{\"state\":\"Running\",\"launcher_crashes\":1}", false, 1, 0 },
                { "{\"state\":\"Running\",\"launcher_crashes\":3}", true, 3, 2 },
                { "{\"state\":\"Running\",\"launcher_crashes\":3}", false, 3, 2 },
                { "{\"state\":\"Running\",\"launcher_crashes\":0}", false, 3, 2 },
                { "{\"state\":\"Running\",\"launcher_crashes\":9223372036854775807}", false, 3, 2 },
        };
        struct asked a;

        (void) state;
        begin(&a);
        a.record.state.launcher_crashes = 1;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct job_report report = report_of(rows[i].report);

                if (progress_take_crashes(&a.record, &report) != rows[i].more ||
                    a.record.state.launcher_crashes != rows[i].known ||
                    a.controller.metrics.launcher_crashes != rows[i].counted)
                        fail_msg("after %s", rows[i].report);
                job_report_free(&report);
        }
        end(&a);
}

/* Of groups that are none, and of more ranks than a group has, nothing is taken but what adds up without
 * them. */
static void strangers_have_no_share(void **state)
{
        struct job_report report = report_of(
                "{\"state\":\"Running\",\"recuts\":1,\"ranks\":[{\"group\":\"nobody\",\"batch\":5,"
                "\"samples_per_s\":9},{\"group\":\"w0-1\",\"batch\":30,\"samples_per_s\":3},"
                "{\"group\":\"w0-1\",\"batch\":34,\"samples_per_s\":4},{\"group\":\"w0-1\",\"batch\":0}]}");
        const struct job_state *s;
        struct asked a;

        (void) state;
        begin(&a);
        s = &a.record.state;
        assert_true(progress_take_shares(&a.record, &report));
        assert_true(s->groups[0].batch == 0 && s->groups[1].batch == 64);
        assert_int_equal(s->rank_count, 2);
        assert_true(s->groups[1].samples_per_s == 7 && s->groups[1].source == CHIP_SPEED_MEASURED);
        assert_false(progress_take_shares(&a.record, &report)); /* they are the same now */
        job_report_free(&report);
        end(&a);
}

/* 2,000 ranks of the first group with 2 samples each but for one, and two of the second. */
static struct job_report report_of_many(size_t other, unsigned batch, unsigned last)
{
        struct text text = { 0 };
        struct job_report report;

        text_append(&text, "{\"state\":\"Running\",\"ranks\":[");
        for (size_t i = 0; i < 2000; i++)
                text_printf(&text, "{\"group\":\"w0-0\",\"batch\":%u,\"restarts\":1},",
                            i == other ? batch : 2);
        text_printf(&text, "{\"group\":\"w0-1\",\"batch\":48},{\"group\":\"w0-1\",\"batch\":%u}]}", last);
        report = report_of(text.data);
        text_free(&text);
        return report;
}

/* A status lists some of the ranks: of the others their group alone is known. */
static void of_many_ranks_the_group_counts(void **state)
{
        static const struct {
                size_t other;
                unsigned batch, last;
                bool taken;
        } rows[] = {
                { 0, 2, 48, true },                            /* others than were planned */
                { 0, 2, 48, false },                           /* the same */
                { 7, 4, 46, true },                            /* one that is listed */
                { 0, 2, 48, true },     { 1999, 4, 46, true }, /* one that is not: its group takes more */
                { 1998, 4, 46, false },                        /* and as much */
                { 1999, 3, 47, true },
        };
        struct asked a;

        (void) state;
        begin(&a);
        a.record.job.global_batch = 4096;
        a.record.state.groups[0].ranks = 2000;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct job_report report = report_of_many(rows[i].other, rows[i].batch, rows[i].last);

                if (progress_take_shares(&a.record, &report) != rows[i].taken)
                        fail_msg("row %zu", i);
                progress_take_ranks(&a.record, &report);
                job_report_free(&report);
        }
        assert_int_equal(a.record.state.rank_count, JOB_STATUS_RANKS_MAX);
        assert_int_equal(job_state_rank(&a.record.state, "w0-0", 1023)->restarts, 1);
        assert_null(job_state_rank(&a.record.state, "w0-0", 1024));
        assert_int_equal(a.record.state.groups[0].batch, 4001);
        end(&a);
}

static void ranks_are_known_by_their_group(void **state)
{
        struct job_report report = report_of(
                "{\"state\":\"Running\",\"epoch_samples\":60000,\"ranks\":["
                "{\"group\":\"w0-1\",\"samples\":100,\"restarts\":1,\"samples_per_s\":50},"
                "{\"group\":\"w0-1\",\"samples\":90,\"restarts\":0,\"busy_seconds\":7,\"exit_code\":137},"
                "{\"group\":\"w0-1\",\"samples\":5,\"restarts\":9},"
                "{\"group\":\"gone\",\"samples\":5,\"restarts\":9},"
                "{\"group\":\"w0-0\",\"samples\":30,\"restarts\":2,\"exit_code\":1},"
                "{\"group\":\"w0-0\",\"samples\":31,\"restarts\":0,\"exit_code\":2}]}");
        const struct job_progress_rank *rank;
        const struct job_state *s;
        struct asked a;

        (void) state;
        begin(&a);
        s = &a.record.state;
        job_state_make_rank(&a.record.state, "w0-1", 0)->before = 2;
        job_state_make_rank(&a.record.state, "w0-0", 1)->restarts = 5; /* said by the manager before */
        progress_take_ranks(&a.record, &report);
        assert_int_equal(s->samples, 60000);
        assert_int_equal(s->rank_count, 4); /* no third one of w0-1, none of a group that is not there */
        rank = job_state_rank(s, "w0-1", 0);
        assert_int_equal(rank->restarts, 3);
        assert_int_equal(rank->samples, 100);
        assert_true(rank->busy_sec == 2);
        assert_true(rank->samples_per_s == 50);
        assert_int_equal(rank->steps_behind, -1); /* they go in step */
        assert_true(isnan(s->progress.steps_behind_mean));
        rank = job_state_rank(s, "w0-1", 1);
        assert_true(rank->busy_sec == 7);
        assert_int_equal(rank->exit_code, 137);
        assert_int_equal(job_state_rank(s, "w0-0", 1)->restarts, 5);
        assert_int_equal(s->groups[1].exit_code, 137);
        assert_int_equal(s->groups[0].exit_code, 1); /* the first of its ranks that failed */
        job_report_free(&report);
        end(&a);
}

/* Of a parameter server; one that has said nothing is not behind, it is not known. */
static void workers_that_do_not_go_in_step_are_compared(void **state)
{
        struct job_report report =
                report_of("{\"state\":\"Running\",\"ranks\":["
                          "{\"group\":\"w0-0\",\"step\":12,\"samples\":100},"
                          "{\"group\":\"w0-0\",\"step\":9,\"samples\":80,\"samples_per_s\":33.3333},"
                          "{\"group\":\"w0-0\",\"step\":0,\"samples\":0},"
                          "{\"group\":\"gone\",\"step\":99,\"samples\":5},"
                          "{\"group\":\"w0-1\",\"step\":11,\"samples\":90}]}");
        struct asked a;
        struct job_state *s;

        (void) state;
        begin(&a);
        s = &a.record.state;
        a.record.job.strategy = JOB_STRATEGY_PS_SSP;
        progress_take_ranks(&a.record, &report);
        assert_int_equal(job_state_rank(s, "w0-0", 0)->steps_behind, 0);
        assert_int_equal(job_state_rank(s, "w0-0", 1)->steps_behind, 3);
        assert_true(job_state_rank(s, "w0-0", 1)->samples_per_s == 33.33);
        assert_int_equal(job_state_rank(s, "w0-0", 2)->steps_behind, -1);
        assert_int_equal(job_state_rank(s, "w0-1", 0)->steps_behind, 1);
        assert_true(s->progress.steps_behind_mean == 1.33);
        assert_int_equal(s->progress.steps_behind_max, 3);
        a.record.job.strategy = JOB_STRATEGY_PS_SYNC;
        s->progress.steps_behind_max = -1;
        progress_take_ranks(&a.record, &report);
        assert_int_equal(s->progress.steps_behind_max, -1);
        job_report_free(&report);
        end(&a);
}

/* A world that began anew counts its own samples; its steps go on from the checkpoint. */
static void samples_are_counted_over_all_worlds(void **state)
{
        static const struct {
                uint64_t epoch, restarts, reshards, world, step, said, samples, total;
        } rows[] = {
                { 1000, 0, 0, 0, 10, 100, 100, 3000 }, /* the first world's own word */
                { 1000, 1, 0, 0, 10, 100, 704, 3000 }, /* steps 0 to 10 of 64 */
                { 1000, 1, 0, 0, 0, 64, 64, 3000 },
                { 1000, 1, 0, 0, 0, 0, 0, 3000 }, /* none is done */
                { 1000, 0, 1, 0, 10, 100, 704, 3000 },
                { 1000, 0, 0, 1, 10, 100, 704, 3000 },
                { 1000, 1, 0, 0, 10, 710, 710, 3000 },         /* it knows of more */
                { 1000, 1, 0, 0, 100, 100, 3000, 3000 },       /* the last step is not whole */
                { 1000, 1, 0, 0, 17, 100, 1128, 3000 },        /* nor that of an epoch */
                { 0, 1, 0, 0, 100, 100, 6464, 0 },             /* nobody knows how many there are */
                { 1000, 1, 0, 0, UINT64_MAX, 100, 100, 3000 }, /* no number of steps */
                { UINT64_MAX, 1, 0, 0, 10, 100, 704, 0 },      /* no number of samples */
        };
        struct asked a;

        (void) state;
        begin(&a);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct job_state *s = &a.record.state;

                s->samples = rows[i].epoch;
                s->restarts = rows[i].restarts;
                s->reshards = rows[i].reshards;
                s->world = rows[i].world;
                s->progress = (struct job_progress){ .step = rows[i].step, .samples = rows[i].said };
                progress_count_samples(&a.record);
                assert_int_equal(s->progress.samples, rows[i].samples);
                assert_int_equal(s->progress.samples_total, rows[i].total);
        }
        end(&a);
}

static void moments_compare_with_the_last_one(void **state)
{
        uint64_t now;
        struct asked a;
        struct job_state *s;

        (void) state;
        begin(&a);
        s = &a.record.state;
        now = controller_now(&a.controller);
        progress_note_moment(&a.record);
        assert_int_equal(s->point_count, 0); /* it has not begun */
        s->start_usec = now;
        progress_note_moment(&a.record);
        assert_int_equal(s->point_count, 0); /* nothing was heard */
        s->progress =
                (struct job_progress){ .time_usec = now, .step = 7, .samples = 448, .loss = 0.12345678 };
        s->start_usec = now + 3600000000; /* the clock was set back */
        progress_note_moment(&a.record);
        assert_int_equal(s->point_count, 1);
        assert_true(s->points[0].seconds == 0);
        assert_int_equal(s->points[0].busy_count, 0); /* nothing to compare with */
        assert_true(s->points[0].loss == 0.123457);
        s->start_usec = now - 5000000;
        job_state_make_rank(s, "w0-1", 1)->busy_sec = 1000;
        a.record.asking.noted_usec -= 1000000;
        progress_note_moment(&a.record);
        assert_true(s->points[1].seconds >= 5);
        assert_int_equal(s->points[1].busy_count, 10);
        assert_int_equal(s->points[1].busy[0], 0); /* of which nothing is known */
        assert_int_equal(s->points[1].busy[9], 100);
        a.record.asking.noted_usec -= 1000000;
        progress_note_moment(&a.record);
        assert_int_equal(s->points[2].busy[9], 0);    /* it stands still */
        job_state_rank(s, "w0-1", 1)->busy_sec = 400; /* another process */
        a.record.asking.noted_usec -= 1000000;
        progress_note_moment(&a.record);
        assert_int_equal(s->points[3].busy[9], 100);
        s->groups[0].ranks = 40; /* a picture has room for some */
        a.record.asking.noted_usec -= 1000000;
        progress_note_moment(&a.record);
        assert_int_equal(s->points[4].busy_count, JOB_PROGRESS_POINT_RANKS);
        end(&a);
}

static void the_time_left_has_a_spread_once_there_are_windows(void **state)
{
        struct asked a;
        struct job_state *s;
        uint64_t now;

        (void) state;
        begin(&a);
        s = &a.record.state;
        now = controller_now(&a.controller);
        s->start_usec = now - 10000000;
        s->progress.time_usec = now;
        s->progress.samples_total = 10000;
        s->progress.seconds_left = 70;
        for (unsigned i = 0; i < 6; i++) {
                s->progress.samples = 640 * i;
                s->start_usec -= 1000000ULL * (i + 1); /* each window is longer than the one before it */
                progress_note_moment(&a.record);
                assert_true((s->progress.seconds_left_most > 0) == (i >= JOB_LEFT_WINDOWS));
        }
        assert_true(s->progress.seconds_left_least > 10 && s->progress.seconds_left_least < 30);
        assert_true(s->progress.seconds_left_most == 70); /* at the rate of now it takes longest */
        s->progress.seconds_left = 0;                     /* nobody knows it any more */
        progress_note_moment(&a.record);
        assert_true(s->progress.seconds_left_most == 0);
        end(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(events_are_passed_on_once),
                cmocka_unit_test(shares_are_taken_when_they_are_whole),
                cmocka_unit_test(crashes_of_mpirun_are_counted_once),
                cmocka_unit_test(strangers_have_no_share),
                cmocka_unit_test(of_many_ranks_the_group_counts),
                cmocka_unit_test(ranks_are_known_by_their_group),
                cmocka_unit_test(samples_are_counted_over_all_worlds),
                cmocka_unit_test(moments_compare_with_the_last_one),
                cmocka_unit_test(workers_that_do_not_go_in_step_are_compared),
                cmocka_unit_test(the_time_left_has_a_spread_once_there_are_windows),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
