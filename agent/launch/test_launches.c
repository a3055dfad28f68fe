/* Launches: as whom a program runs and where, how its end is told, what is left of it, and who may stop it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/launch/launches.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "tests/support/patience.h"
#include "tests/support/refused_timers.h"

#define NOBODY 65534
#define LONE   54321 /* of no user's name */

/* The end that was told last, and how many were. */
struct bed {
        sd_event *loop;
        struct launches *launches;
        size_t ends;
        unsigned id;
        bool well;
        char how[64], runtime[16];
};

static void on_ended(void *userdata, unsigned id, const char *runtime, bool well, const char *how)
{
        struct bed *bed = userdata;

        bed->ends++;
        bed->id = id;
        bed->well = well;
        (void) text_copy(bed->runtime, sizeof(bed->runtime), runtime);
        (void) text_copy(bed->how, sizeof(bed->how), how);
}

static void bed_make(struct bed *bed)
{
        *bed = (struct bed){ .ends = 0 };
        assert_int_equal(loop_new(&bed->loop, NULL), 0);
        assert_int_equal(launches_new(bed->loop, on_ended, bed, &bed->launches, NULL), 0);
}

static void bed_free(struct bed *bed)
{
        launches_free(bed->launches);
        assert_null(sd_event_unref(bed->loop));
}

static void wait_for_ends(struct bed *bed, size_t count)
{
        uint64_t until = loop_now_usec(bed->loop) + patience_usec();

        while (bed->ends < count && loop_now_usec(bed->loop) < until)
                assert_true(sd_event_run(bed->loop, 1000000) >= 0);
        assert_int_equal(bed->ends, count);
}

/* @script: of /bin/sh, or the path of a program without arguments */
static int start(struct bed *bed, const char *script, const char *directory, const struct caller *caller,
                 unsigned *ret_id, struct err *err)
{
        static const char devices[2][DEVICE_ID_BYTES] = { "GPU-0", "GPU-1" };
        static char shell[] = "/bin/sh", c[] = "-c", path[] = "PATH=/usr/bin:/bin";
        char text[256], *environment[] = { path, NULL };
        char *argv[] = { shell, script[0] == '/' ? NULL : c, text, NULL };
        const struct launches_request request = { .path = script[0] == '/' ? script : shell,
                                                  .argv = argv,
                                                  .environment = environment,
                                                  .directory = directory,
                                                  .caller = caller,
                                                  .runtime = "cuda",
                                                  .devices = devices,
                                                  .device_count = ARRAY_SIZE(devices) };
        pid_t pid = 0;
        int r;

        assert_true(text_copy(text, sizeof(text), script));
        r = launches_start(bed->launches, &request, ret_id, &pid, err);
        assert_true(r < 0 || pid > 0);
        return r;
}

static struct caller myself(void)
{
        return (struct caller){ .uid = getuid(), .gid = getgid() };
}

/* clang-format off */
static const struct {
        const char *script, *directory;
        uid_t uid;        /* 0 = the test's own */
        int result;
        const char *told; /* how it ended, or the sentence after "as uid N" */
} programs[] = {
        { "exit 0",                                    NULL,    0,      0,       "exit status 0" },
        { "exit 3",                                    NULL,    0,      0,       "exit status 3" },
        { "kill -9 $$",                                NULL,    0,      0,       "signal 9" },
        { "test $(pwd) = /",                           NULL,    0,      0,       "exit status 0" },
        { "test $(pwd) = /proc",                       "/proc", 0,      0,       "exit status 0" },
        { "! read line",                               NULL,    0,      0,       "exit status 0" },
        { "kill -15 $$",                               NULL,    0,      0,       "signal 15" }, /* the agent blocks it */
        { "test \"$(env | grep -v -e PWD -e SHLVL -e _=)\" = PATH=/usr/bin:/bin", NULL, 0, 0, "exit status 0" },
        { "test $(id -u):$(id -g) = 65534:65534",      NULL,    NOBODY, 0,       "exit status 0" },
        { "test $(id -u):\"$(id -G)\" = 54321:54321",  NULL,    LONE,   0,       "exit status 0" },
        { "/no/such/program",                          NULL,    0,      -ENOENT, "No such file or directory" },
        { "/proc",                                     NULL,    0,      -EACCES, "Permission denied" },
        { "exit 0",                                    "/none", 0,      -ENOENT, "No such file or directory" },
        { "exit 0",                                    "/proc/1/fd", LONE,   -EACCES, "Permission denied" },
};
/* clang-format on */

static void a_program_runs_as_its_caller_and_its_end_is_told(void **state)
{
        struct bed bed;
        size_t ends = 0;
        unsigned id;

        (void) state;
        bed_make(&bed);
        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                struct caller caller = myself();
                struct err err = { 0 };
                char told[256];
                int r;

                if (programs[i].uid != 0 && geteuid() != 0)
                        continue; /* nobody else can be become */
                if (programs[i].uid != 0)
                        caller.uid = caller.gid = programs[i].uid;
                id = 0;
                r = start(&bed, programs[i].script, programs[i].directory, &caller, &id, &err);
                if (r != programs[i].result)
                        fail_msg("%s: %d %s", programs[i].script, r, err.msg);
                if (r < 0) {
                        (void) text_format(told, sizeof(told), "'%s' as uid %u: %s",
                                           programs[i].script[0] == '/' ? programs[i].script : "/bin/sh",
                                           (unsigned) caller.uid, programs[i].told);
                        assert_string_equal(err.msg, told);
                        continue;
                }
                wait_for_ends(&bed, ++ends);
                if (strcmp(bed.how, programs[i].told) != 0)
                        fail_msg("%s: %s", programs[i].script, bed.how);
                assert_int_equal(bed.well, strcmp(programs[i].told, "exit status 0") == 0);
                assert_int_equal(bed.id, id);
                assert_int_equal(id, ends);
                assert_string_equal(bed.runtime, "cuda");
        }
        bed_free(&bed);
}

/* Who has the pipe's other end writes nothing and is no more. */
static void nobody_is_left(int ends[2])
{
        char late[8];

        assert_int_equal(close(ends[1]), 0);
        assert_int_equal(read(ends[0], late, sizeof(late)), 0);
        assert_int_equal(close(ends[0]), 0);
}

static void what_a_program_leaves_behind_ends_with_it(void **state)
{
        struct caller caller = myself();
        char script[128];
        struct bed bed;
        unsigned id;
        int ends[2];

        (void) state;
        bed_make(&bed);
        assert_int_equal(pipe(ends), 0); /* that a program inherits */
        (void) text_format(script, sizeof(script), "(sleep 60; echo late >&%d) & exit 0", ends[1]);
        assert_int_equal(start(&bed, script, NULL, &caller, &id, NULL), 0);
        wait_for_ends(&bed, 1);
        assert_true(bed.well);
        nobody_is_left(ends);
        bed_free(&bed);
}

static void all_end_with_the_agent(void **state)
{
        struct caller caller = myself();
        char script[128];
        struct bed bed;
        unsigned id;
        int ends[2];

        (void) state;
        bed_make(&bed);
        assert_int_equal(pipe(ends), 0);
        (void) text_format(script, sizeof(script), "sleep 60; echo late >&%d", ends[1]);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(start(&bed, script, NULL, &caller, &id, NULL), 0);
        bed_free(&bed);
        nobody_is_left(ends);
        launches_free(NULL);
}

static void its_user_and_root_may_stop_a_program(void **state)
{
        struct caller caller = myself();
        const struct caller other = { .uid = LONE };
        struct bed bed;
        unsigned id, next;

        (void) state;
        bed_make(&bed);
        assert_int_equal(start(&bed, "exec sleep 60", NULL, &caller, &id, NULL), 0);
        assert_int_equal(start(&bed, "exec sleep 60", NULL, &caller, &next, NULL), 0);
        assert_int_equal(launches_stop(bed.launches, 7, &caller), -ENOENT);
        assert_int_equal(launches_stop(bed.launches, id, &other), -EACCES);
        assert_int_equal(launches_stop(bed.launches, id, &caller), 0);
        assert_int_equal(launches_stop(bed.launches, id, &caller), 0); /* it is asked again */
        wait_for_ends(&bed, 1);
        assert_int_equal(bed.id, id);
        assert_string_equal(bed.how, "signal 15");
        assert_int_equal(launches_stop(bed.launches, id, &caller), -ENOENT);
        assert_int_equal(launches_stop(bed.launches, next, &(struct caller){ .uid = 0 }), 0);
        wait_for_ends(&bed, 2);
        assert_int_equal(bed.id, next);
        bed_free(&bed);
}

static void devices_are_held_until_the_program_has_ended(void **state)
{
        static const char *const keys[] = { "id", "pid", "uid", "runtime", "started", "devices" };
        struct caller caller = myself();
        struct bed bed;
        json_t *list;
        unsigned id;

        (void) state;
        bed_make(&bed);
        assert_int_equal(start(&bed, "exec sleep 60", NULL, &caller, &id, NULL), 0);
        assert_true(launches_hold(bed.launches, "GPU-0") && launches_hold(bed.launches, "GPU-1"));
        assert_false(launches_hold(bed.launches, "GPU-2"));
        assert_false(launches_hold(NULL, "GPU-0"));
        list = launches_list(bed.launches);
        assert_int_equal(json_array_size(list), 1);
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                assert_non_null(json_object_get(json_array_get(list, 0), keys[i]));
        assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "uid")), getuid());
        assert_int_equal(json_array_size(json_object_get(json_array_get(list, 0), "devices")), 2);
        json_decref(list);
        assert_int_equal(launches_stop(bed.launches, id, &caller), 0);
        wait_for_ends(&bed, 1);
        assert_false(launches_hold(bed.launches, "GPU-0"));
        list = launches_list(bed.launches);
        assert_int_equal(json_array_size(list), 0);
        json_decref(list);
        bed_free(&bed);
}

static void there_is_an_end_to_how_many_run(void **state)
{
        struct caller caller = myself();
        struct err err = { 0 };
        struct bed bed;
        unsigned id;

        (void) state;
        bed_make(&bed);
        for (size_t i = 0; i < LAUNCHES_MAX; i++) /* they have ended, and it is not known yet */
                assert_int_equal(start(&bed, "/bin/true", NULL, &caller, &id, NULL), 0);
        assert_int_equal(start(&bed, "/bin/true", NULL, &caller, &id, &err), -ENOSPC);
        assert_string_equal(err.msg, "256 processes are launched already");
        wait_for_ends(&bed, LAUNCHES_MAX);
        assert_int_equal(start(&bed, "/bin/true", NULL, &caller, &id, &err), 0);
        wait_for_ends(&bed, LAUNCHES_MAX + 1);
        bed_free(&bed);
}

static void a_program_that_cannot_be_watched_does_not_run(void **state)
{
        struct caller caller = myself();
        struct err err = { 0 };
        struct bed bed;
        sigset_t child;
        unsigned id;

        (void) state;
        bed_make(&bed);
        (void) sigemptyset(&child);
        (void) sigaddset(&child, SIGCHLD);
        assert_int_equal(sigprocmask(SIG_UNBLOCK, &child, NULL), 0); /* the loop refuses to watch, then */
        assert_int_equal(start(&bed, "exec sleep 60", NULL, &caller, &id, &err), -EBUSY);
        assert_string_equal(err.msg, "cannot supervise a process: Device or resource busy");
        assert_int_equal(sigprocmask(SIG_BLOCK, &child, NULL), 0);
        timers_refused = true; /* nobody could end it if it did not want to */
        assert_int_equal(start(&bed, "exec sleep 60", NULL, &caller, &id, &err), -ENOMEM);
        timers_refused = false;
        assert_false(launches_hold(bed.launches, "GPU-0"));
        bed_free(&bed);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_program_runs_as_its_caller_and_its_end_is_told),
                cmocka_unit_test(what_a_program_leaves_behind_ends_with_it),
                cmocka_unit_test(all_end_with_the_agent),
                cmocka_unit_test(its_user_and_root_may_stop_a_program),
                cmocka_unit_test(devices_are_held_until_the_program_has_ended),
                cmocka_unit_test(there_is_an_end_to_how_many_run),
                cmocka_unit_test(a_program_that_cannot_be_watched_does_not_run),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
