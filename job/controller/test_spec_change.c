/* What of a job's spec may change, what is said of the rest, and of which spec a status is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/controller/spec_change.h"
#include "tests/support/controller_bed.h"

#define EIGHT_CHIPS "\"workers\":[{\"model\":\"H100\",\"chips\":8}]"

static const struct controller_options plain;

/* clang-format off */
static const struct { const char *sentence, *before, *after, *field; } changes[] = {
        { "nothing",                                    "{\"epochs\":1}",                    "{\"epochs\":1}",                                 "" },
        { "the five",                                   "{\"epochs\":1,\"priority\":3}",     "{\"epochs\":1,\"disruption\":\"never\",\"suspend\":true,\"priority\":4,\"ttlSecondsAfterFinished\":1,\"restart\":{\"max\":2}}", "" },
        { "a default that comes with them",             "{}",                                "{\"restart\":{\"max\":2,\"migrate\":true,\"resplit\":true,\"hangSeconds\":60}}", "" },
        { "what is beside max",                         "{\"restart\":{\"max\":2}}",         "{\"restart\":{\"max\":2,\"migrate\":false}}",      "restart" },
        { "another value",                              "{\"epochs\":1,\"seed\":2}",         "{\"epochs\":1,\"seed\":3}",                      "seed" },
        { "a field that goes",                          "{\"segments\":[3]}",                "{}",                                             "segments" },
        { "a field that comes",                         "{}",                                "{\"checkpoint\":{\"path\":\"/c\"}}",               "checkpoint" },
};
/* clang-format on */

static void each_change_is_found(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                json_t *before = json_loads(changes[i].before, 0, NULL),
                       *after = json_loads(changes[i].after, 0, NULL);
                json_t *one = spec_change_fixed(before), *other = spec_change_fixed(after);
                const char *field = spec_change_field(one, other);

                if (strcmp(field == NULL ? "" : field, changes[i].field) != 0)
                        fail_msg("%s: %s", changes[i].sentence, field == NULL ? "none" : field);
                json_decref(before);
                json_decref(after);
                json_decref(one);
                json_decref(other);
        }
}

static void a_plan_is_of_the_spec_of_then(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", EIGHT_CHIPS);
        bed_merge(b, "TrainingJob", "j", "{\"spec\":{\"epochs\":7,\"priority\":5}}");
        bed_settle(b);
        assert_true(bed_said(b, "spec.epochs was changed and the job has a plan"));
        assert_int_equal(bed_record(b, "j")->job.epochs, 1);
        assert_int_equal(bed_record(b, "j")->job.priority, 5);
        bed_merge(b, "TrainingJob", "j", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
        bed_settle(b);
        assert_int_equal(memory_store_count(b->store, "event ChangeIgnored"), 1); /* the same is no news */
        assert_true(bed_is(b, "j", "Running", NULL));
        bed_end(b);
}

static void who_waits_is_what_the_object_says(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_put_job(b, "first", EIGHT_CHIPS);
        BED_WAIT(b, bed_is(b, "first", "Starting", NULL));
        bed_put_job(b, "j", EIGHT_CHIPS);
        bed_put_job(b, "k", EIGHT_CHIPS);
        BED_WAIT(b, bed_is(b, "j", "Pending", NULL) && bed_is(b, "k", "Pending", NULL));
        bed_merge(b, "TrainingJob", "k", "{\"spec\":{\"priority\":5}}"); /* it came later */
        bed_settle(b);
        bed_drop(b, "TrainingJob", "first");
        BED_WAIT(b, bed_is(b, "k", "Starting", NULL));
        assert_true(bed_is(b, "j", "Pending", NULL));
        assert_int_equal(memory_store_count(b->store, "event ChangeIgnored"), 0);
        bed_end(b);
}

static void a_status_says_of_which_spec_it_is(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        bed_run_job(b, "j", EIGHT_CHIPS);
        bed_settle(b);
        assert_int_equal(bed_record(b, "j")->state.observed_generation, 1);
        bed_merge(b, "TrainingJob", "j", "{\"metadata\":{\"generation\":2},\"spec\":{\"priority\":5}}");
        bed_settle(b);
        assert_int_equal(json_integer_value(json_object_get(
                                 json_object_get(json_object_get(b->store->objects, "TrainingJob default/j"),
                                                 "status"),
                                 "observedGeneration")),
                         2);
        bed_end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_change_is_found),
                cmocka_unit_test(a_plan_is_of_the_spec_of_then),
                cmocka_unit_test(who_waits_is_what_the_object_says),
                cmocka_unit_test(a_status_says_of_which_spec_it_is),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
