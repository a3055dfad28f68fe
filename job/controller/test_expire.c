/* Jobs that have ended are deleted in time: not before, not another one of the name, and by whichever
 * controller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/controller/expire.h"
#include "tests/support/controller_bed.h"

#define HOUR   3600
#define SECOND UINT64_C(1000000)
#define KEPT   BED_TWO_CHIPS ",\"ttlSecondsAfterFinished\":3600"
#define GONE   "force TrainingJob default/j"
#define DONE   BED_ENDED("Succeeded", "0", "{\\\"state\\\":\\\"Succeeded\\\"}")

static const struct controller_options plain;

static void age(struct bed *b, uint64_t seconds)
{
        bed_record(b, "j")->ended_usec -= seconds * SECOND;
        bed_look(b, "j");
}

static struct bed *begin_ended(const char *fields)
{
        struct bed *b = bed_begin(plain);

        bed_run_job(b, "j", fields);
        bed_merge(b, "Pod", "j-m0", DONE);
        bed_merge(b, "Pod", "j-w0-0", DONE);
        BED_WAIT(b, bed_is(b, "j", "Succeeded", NULL));
        bed_settle(b);
        return b;
}

static void a_job_is_deleted_when_its_time_is_over(void **state)
{
        struct bed *b = begin_ended(KEPT);

        (void) state;
        age(b, HOUR - 60);
        assert_int_equal(memory_store_count(b->store, GONE), 0);
        age(b, 61);
        assert_int_equal(memory_store_count(b->store, GONE), 1);
        BED_WAIT(b, bed_text(b, "TrainingJob", "j", "kind")[0] == '\0');
        BED_WAIT(b, bed_text(b, "Pod", "j-w0-0", "metadata|deletionTimestamp")[0] != '\0');
        bed_drop(b, "Pod", "j-m0"); /* where nobody else collects them, they are deleted, too */
        bed_drop(b, "Pod", "j-w0-0");
        BED_WAIT(b, bed_record(b, "j") == NULL);
        bed_end(b);
}

static void a_job_that_says_nothing_is_kept(void **state)
{
        struct bed *b = begin_ended(BED_TWO_CHIPS);

        (void) state;
        age(b, 1000 * HOUR);
        assert_int_equal(memory_store_count(b->store, GONE), 0);
        bed_merge(b, "TrainingJob", "j",
                  "{\"spec\":{\"ttlSecondsAfterFinished\":0}}"); /* and says it later */
        BED_WAIT(b, memory_store_count(b->store, GONE) == 1);
        bed_end(b);
}

/* What is known of the end when a controller first sees it, in seconds of the wall clock since it was. */
static void whose_end_is_read_is_counted_from_it(void **state)
{
        static const struct {
                const char *what, *end;
                bool due;
        } rows[] = {
                { "long ago", "2001-01-01T00:00:00Z", true },
                { "in the future: the clock went back", "2999-01-01T00:00:00Z", false },
        };
        char json[200];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct bed *b = bed_begin(plain);

                (void) text_format(json, sizeof(json),
                                   "{\"status\":{\"phase\":\"Failed\",\"reason\":\"RankFailed\","
                                   "\"completionTime\":\"%s\"}}",
                                   rows[i].end);
                bed_merge(b, "TrainingJob", "j", json);
                bed_put_job(b, "j", KEPT);
                bed_settle(b);
                if ((memory_store_count(b->store, GONE) == 1) != rows[i].due)
                        fail_msg("%s", rows[i].what);
                if (!rows[i].due) {
                        age(b, HOUR - 60);
                        assert_int_equal(memory_store_count(b->store, GONE), 0);
                        age(b, 60); /* and not never */
                        assert_int_equal(memory_store_count(b->store, GONE), 1);
                }
                bed_end(b);
        }
}

/* A status has whole seconds, an end has not. */
static void no_part_of_a_second_is_missing(void **state)
{
        struct bed *b = begin_ended(KEPT);
        struct record *record = bed_record(b, "j");

        (void) state;
        record->ended_usec = record->end_age_usec = 0;
        record->state.completion_usec = controller_now(b->controller) - HOUR * SECOND;
        expire_note_end(record);
        assert_false(expire_is_due(record));
        record->ended_usec -= SECOND;
        assert_true(expire_is_due(record));
        bed_end(b);
}

static void a_parent_is_there_as_long_as_a_child_waits(void **state)
{
        struct bed *b = begin_ended(KEPT);

        (void) state;
        bed_put_job(b, "big", "\"workers\":[{\"model\":\"H100\",\"chips\":64}],\"dependsOn\":[\"j\"]");
        BED_WAIT(b, bed_is(b, "big", "Pending", "Unschedulable"));
        age(b, HOUR);
        assert_int_equal(memory_store_count(b->store, GONE), 0);
        bed_merge(b, "TrainingJob", "big",
                  "{\"metadata\":{\"annotations\":{\"remuda.dev/cancel\":\"true\"}}}");
        BED_WAIT(b, bed_is(b, "big", "Cancelled", NULL));
        bed_record(b, "j")->removal_usec = 0; /* it is looked at again in a moment */
        age(b, 0);
        assert_int_equal(memory_store_count(b->store, GONE), 1);
        bed_end(b);
}

static void another_of_the_name_is_not_deleted(void **state)
{
        struct bed *b = begin_ended(KEPT);

        (void) state;
        /* it was made anew, and that is not told yet */
        (void) json_object_set_new(
                json_object_get(json_object_get(b->store->objects, "TrainingJob default/j"), "metadata"),
                "uid", json_string("u-new"));
        age(b, HOUR);
        assert_int_equal(memory_store_count(b->store, GONE), 1); /* asked for, by uid */
        assert_string_equal(bed_text(b, "TrainingJob", "j", "metadata|uid"), "u-new");
        assert_int_equal(memory_store_count(b->store, "event NotDeleted"), 0);
        bed_end(b);
}

/* Who decided it did not get to write it, and another goes on with the job: it ages from its true end. */
static void an_end_that_was_never_written_is_none(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", KEPT);
        bed_settle(b);
        bed_record(b, "j")->ended_usec = bed_record(b, "j")->end_age_usec = 1;
        b->leads = false;
        controller_lead(b->controller);
        bed_merge(b, "TrainingJob", "j",
                  "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"); /* still Running there */
        bed_settle(b);
        assert_int_equal(bed_record(b, "j")->ended_usec, 0);
        assert_int_equal(bed_record(b, "j")->end_age_usec, 0);
        bed_end(b);
}

static void who_may_not_delete_says_so_once(void **state)
{
        struct bed *b = begin_ended(KEPT);

        (void) state;
        memory_store_refuse(b->store, "force TrainingJob", -EPERM, "cannot delete resource \"trainingjobs\"");
        age(b, HOUR);
        assert_true(bed_said(b, "spec.ttlSecondsAfterFinished: cannot delete resource"));
        assert_true(bed_said(b, "kubectl create rolebinding remuda-controller"));
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, GONE), 1); /* seldom */
        bed_record(b, "j")->removal_usec = 0;
        bed_look(b, "j");
        assert_int_equal(memory_store_count(b->store, GONE), 2);
        assert_int_equal(memory_store_count(b->store, "event NotDeleted"), 1);
        bed_end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_job_is_deleted_when_its_time_is_over),
                cmocka_unit_test(a_job_that_says_nothing_is_kept),
                cmocka_unit_test(whose_end_is_read_is_counted_from_it),
                cmocka_unit_test(no_part_of_a_second_is_missing),
                cmocka_unit_test(a_parent_is_there_as_long_as_a_child_waits),
                cmocka_unit_test(another_of_the_name_is_not_deleted),
                cmocka_unit_test(an_end_that_was_never_written_is_none),
                cmocka_unit_test(who_may_not_delete_says_so_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
