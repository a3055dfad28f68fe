/* Ages: each wait counts in its phase alone, from the last moment at which there was something, and the
 * longest of all jobs is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"
#include "job/controller/ages.h"

#define SECOND UINT64_C(1000000)

/* Planned at 100 s, running at 200 s; it is 1000 s now. */
static const struct {
        const char *what;
        enum job_phase phase;
        uint64_t heard_sec, every_steps, step;
        const char *claim;
        uint64_t starting_sec, silent_sec, checkpoint_sec;
} rows[] = {
        { "a job that waits for chips waits for nothing else", JOB_PENDING, 0, 0, 0, "", 0, 0, 0 },
        { "one that starts waits since its plan", JOB_STARTING, 0, 0, 0, "", 900, 0, 0 },
        { "one that runs is silent since it was heard", JOB_RUNNING, 990, 0, 5, "", 0, 10, 0 },
        { "or since it runs", JOB_RUNNING, 0, 0, 0, "", 0, 800, 0 },
        { "what it heard in an earlier world is older than that", JOB_RUNNING, 150, 0, 0, "", 0, 800, 0 },
        { "a checkpoint in its pods is none", JOB_RUNNING, 990, 10, 5, "", 0, 10, 0 },
        { "no checkpoint yet: since it runs", JOB_RUNNING, 990, 10, 5, "disk", 0, 10, 800 },
        { "at its step: when that was heard", JOB_RUNNING, 990, 10, 20, "disk", 0, 10, 10 },
        { "five steps of a second ago", JOB_RUNNING, 990, 10, 25, "disk", 0, 10, 15 },
        { "none is wanted", JOB_RUNNING, 990, 0, 25, "disk", 0, 10, 0 },
        { "one that has ended waits for nothing", JOB_SUCCEEDED, 500, 10, 5, "disk", 0, 0, 0 },
};

static void each_wait_counts_in_its_phase(void **state)
{
        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct job_state job_state = { .phase = rows[i].phase,
                                               .progress = { .step = rows[i].step,
                                                             .samples_per_s = 64,
                                                             .time_usec = rows[i].heard_sec * SECOND } };
                struct job job = { .global_batch = 64,
                                   .checkpoint = { .given = true, .every_steps = rows[i].every_steps } };
                struct ages ages = { 0 };

                (void) text_copy(job.checkpoint.claim, sizeof(job.checkpoint.claim), rows[i].claim);
                job_state.conditions[JOB_CONDITION_PLANNED].since_usec = 100 * SECOND;
                job_state.conditions[JOB_CONDITION_RUNNING].since_usec = 200 * SECOND;
                ages_add(&ages, &job, &job_state, 1000 * SECOND);
                if (ages.starting_usec != rows[i].starting_sec * SECOND ||
                    ages.silent_usec != rows[i].silent_sec * SECOND ||
                    ages.checkpoint_usec != rows[i].checkpoint_sec * SECOND)
                        fail_msg("%s: got %llu, %llu and %llu us", rows[i].what,
                                 (unsigned long long) ages.starting_usec,
                                 (unsigned long long) ages.silent_usec,
                                 (unsigned long long) ages.checkpoint_usec);
        }
}

static void the_longest_wait_is_told(void **state)
{
        struct job_state young = { .phase = JOB_STARTING }, old = young, ahead = young;
        struct job job = { 0 };
        struct ages ages = { 0 };

        (void) state;
        young.conditions[JOB_CONDITION_PLANNED].since_usec = 900 * SECOND;
        old.conditions[JOB_CONDITION_PLANNED].since_usec = 700 * SECOND;
        ahead.conditions[JOB_CONDITION_PLANNED].since_usec = 2000 * SECOND; /* by another clock */
        ages_add(&ages, &job, &old, 1000 * SECOND);
        ages_add(&ages, &job, &young, 1000 * SECOND);
        ages_add(&ages, &job, &ahead, 1000 * SECOND);
        assert_int_equal(ages.starting_usec, 300 * SECOND);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_wait_counts_in_its_phase),
                cmocka_unit_test(the_longest_wait_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
