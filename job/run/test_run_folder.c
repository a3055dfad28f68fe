/* The folder of a job: who may have it, what an earlier job of its name left, and whom it waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "job/run/run_folder.h"
#include "job/run/run_guard.h"

#define PARENTS_MAX 2

static char room[64];

struct bed {
        struct run_options options;
        struct run run;
        char work[400], parents[PARENTS_MAX][JOB_NAME_BYTES];
};

static const char *in_room(const char *name)
{
        static char path[800];

        (void) text_format(path, sizeof(path), "%s/%s", room, name);
        return path;
}

static void write_file(const char *name, const char *text)
{
        FILE *f = fopen(in_room(name), "w");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static void make_folder(const char *name)
{
        assert_true(mkdir(in_room(name), 0755) == 0 || errno == EEXIST);
}

/* A job that runs has its lock; the descriptor is the test's to close. */
static int lock_file(const char *name)
{
        int fd = open(in_room(name), O_RDWR | O_CREAT | O_CLOEXEC, 0644);

        assert_true(fd >= 0);
        assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
        return fd;
}

static int set_up(void **state)
{
        (void) state;
        (void) text_copy(room, sizeof(room), "/tmp/remuda-folder-XXXXXX");
        return mkdtemp(room) == NULL ? -1 : 0;
}

static void remove_folder(const char *name)
{
        char command[900];

        (void) text_format(command, sizeof(command), "rm -rf '%s'", in_room(name));
        assert_int_equal(system(command), 0);
}

static int tear_down(void **state)
{
        (void) state;
        remove_folder("");
        return 0;
}

static void open_bed(struct bed *bed, const char *work)
{
        *bed = (struct bed){ .run = { .lock = -1, .checkpoint_lock = -1 } };
        (void) text_copy(bed->work, sizeof(bed->work), in_room(work));
        bed->options.work_dir = bed->work;
        bed->run.options = &bed->options;
        bed->run.events = json_array();
        bed->run.job.depends_on = bed->parents;
        (void) text_copy(bed->run.job.name, sizeof(bed->run.job.name), "j");
}

static void close_bed(struct bed *bed)
{
        run_folder_close(&bed->run);
        json_decref(bed->run.events);
}

static void add_parent(struct bed *bed, const char *name)
{
        (void) text_copy(bed->parents[bed->run.job.dependency_count++], JOB_NAME_BYTES, name);
}

static bool has_event(const struct bed *bed, const char *reason, const char *words)
{
        const json_t *event;
        size_t i;

        json_array_foreach(bed->run.events, i, event)
        {
                const char *said = json_string_value(json_object_get(event, "message"));

                if (strcmp(json_string_value(json_object_get(event, "reason")), reason) == 0 &&
                    strstr(said, words) != NULL)
                        return true;
        }
        return false;
}

#define PART                                                                                                 \
        "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567" \
        "89"

/* clang-format off */
static const struct { const char *work, *checkpoint, *parent; int exit_code; const char *says; } refusals[] = {
        { .work = "file/w",      .exit_code = EXIT_FAILED, .says = "cannot be made: Not a directory" },
        { .work = "file",        .exit_code = EXIT_FAILED, .says = "file/j' cannot be made: Not a directory" },
        { .work = "loop",        .exit_code = EXIT_FAILED, .says = "--work-dir" },
        { .work = "deep",        .exit_code = EXIT_FAILED, .says = "is too long" },
        { .work = "runs",        .exit_code = EXIT_USAGE,  .says = "metadata.name: a job 'j' is running in" },
        { .work = "odd",         .exit_code = EXIT_FAILED, .says = "odd/j/lock': Is a directory" },
        { .work = "own",         .checkpoint = "", .exit_code = EXIT_FAILED, .says = "spec.checkpoint.path" },
        { .work = "w",           .checkpoint = "file/c",   .exit_code = EXIT_USAGE, .says = "cannot be written to: Not a directory; give a folder that can" },
        { .work = "w",           .checkpoint = "file",     .exit_code = EXIT_USAGE, .says = "file': Not a directory" },
        { .work = "w",           .checkpoint = "taken",    .exit_code = EXIT_USAGE, .says = "is being written by another job; choose another" },
        { .work = "w",           .parent = "none",         .exit_code = EXIT_USAGE, .says = "spec.dependsOn[0]: job 'none' was never run to its end" },
        { .work = "w",           .parent = "begun",        .exit_code = EXIT_USAGE, .says = "job 'begun' was never run to its end" },
};
/* clang-format on */

static void what_cannot_be_had_is_refused(void **state)
{
        CLEANUP(close_p) int runs = -1, taken = -1;
        char deep[1200];

        (void) state;
        write_file("file", "");
        assert_int_equal(symlink("loop", in_room("loop")), 0);
        make_folder("runs");
        make_folder("runs/j");
        runs = lock_file("runs/j/lock");
        make_folder("odd");
        make_folder("odd/j");
        make_folder("odd/j/lock");
        make_folder("own");
        make_folder("own/j");
        write_file("own/j/checkpoint", "a file\n");
        make_folder("taken");
        taken = open(in_room("taken"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(flock(taken, LOCK_EX | LOCK_NB), 0);
        make_folder("w");
        make_folder("w/begun");
        (void) text_copy(deep, sizeof(deep), in_room("long"));
        for (size_t i = 0; i < 8; i++) {
                size_t length = strlen(deep);

                assert_int_equal(mkdir(deep, 0755), 0);
                (void) text_format(deep + length, sizeof(deep) - length, "/%s", PART);
        }
        assert_int_equal(mkdir(deep, 0755), 0);
        assert_int_equal(symlink(deep, in_room("deep")), 0);
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                struct err err = { 0 };
                int code = EXIT_DONE;
                struct bed bed;

                open_bed(&bed, refusals[i].work);
                if (refusals[i].parent != NULL)
                        add_parent(&bed, refusals[i].parent);
                bed.run.job.checkpoint.given = refusals[i].checkpoint != NULL;
                if (refusals[i].checkpoint != NULL && refusals[i].checkpoint[0] != '\0')
                        (void) text_copy(bed.run.job.checkpoint.path, sizeof(bed.run.job.checkpoint.path),
                                         in_room(refusals[i].checkpoint));
                assert_true(run_folder_open(&bed.run, &code, &err) < 0);
                if (code != refusals[i].exit_code || strstr(err.msg, refusals[i].says) == NULL)
                        fail_msg("row %zu: want %d '%s', got %d '%s'", i, refusals[i].exit_code,
                                 refusals[i].says, code, err.msg);
                close_bed(&bed);
        }
        assert_int_equal(access(in_room("w/j/lock"), F_OK), -1); /* what is refused leaves no trace */
}

static void what_an_earlier_job_left_is_gone(void **state)
{
        char world[GUARD_PATH_BYTES], path[RUN_PATH_BYTES], lines[400];
        struct err err = { 0 };
        struct bed bed;
        json_t *line;
        int code;

        (void) state;
        make_folder("before");
        make_folder("before/j");
        write_file("before/j/summary.json", "{}");
        write_file("before/j/events.jsonl", "{}\n");
        (void) text_format(world, sizeof(world), "%s/" RUN_GUARD_PREFIX "0123456789", room);
        assert_int_equal(mkdir(world, 0700), 0);
        make_folder("other");
        (void) text_format(lines, sizeof(lines), "%s\n%s\nno path\n", world, in_room("other"));
        write_file("before/j/world", lines);
        write_file("before/j/said", "{\"loss\":1}\nno JSON\n{\"other\":2}\n{\"loss\":3}\n{\"loss\":[]}\n");
        open_bed(&bed, "before");
        bed.run.job.checkpoint.given = true;
        run_event(&bed.run, "Early", "before it had its folder");
        assert_int_equal(run_folder_open(&bed.run, &code, &err), 0);
        assert_int_equal(access(in_room("before/j/summary.json"), F_OK), -1);
        assert_int_equal(access(in_room("before/j/world"), F_OK), -1);
        assert_int_equal(access(world, F_OK), -1);
        assert_int_equal(access(in_room("other"), F_OK), 0); /* no world of ours */
        assert_int_equal(access(in_room("before/j/checkpoint"), F_OK), 0);
        line = run_folder_last_line(&bed.run, "events.jsonl", "reason");
        assert_string_equal(json_string_value(json_object_get(line, "reason")), "Early");
        json_decref(line);
        line = run_folder_last_line(&bed.run, "said", "loss");
        assert_int_equal(json_integer_value(json_object_get(line, "loss")), 3);
        json_decref(line);
        assert_null(run_folder_last_line(&bed.run, "none", "loss"));
        assert_true(run_folder_path(&bed.run, path, "none/x"));
        assert_true(run_folder_write_json(path, bed.run.events, &err) < 0);
        close_bed(&bed);
        assert_false(run_folder_path(&(struct run){ 0 }, path, "x"));
        assert_null(run_folder_last_line(&(struct run){ 0 }, "said", "loss"));
}

static bool is_there(const char *folder, const char *name)
{
        char path[300];

        (void) text_format(path, sizeof(path), "%s/%s", folder, name);
        return access(in_room(path), F_OK) == 0;
}

/* clang-format off */
static const struct { const char *what; bool given, resume, files, moved; } asides[] = {
        { "a run that begins anew",  true,  false, true,  true },
        { "one that goes on",        true,  true,  true,  false },
        { "one without checkpoints", false, false, true,  false },
        { "the first of its name",   true,  false, false, false },
};
/* clang-format on */

static void checkpoints_are_set_aside_or_gone_on_from(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(asides); i++) {
                struct bed bed;

                make_folder("saved");
                if (asides[i].files) {
                        write_file("saved/00000010.checkpoint", "x");
                        write_file("saved/joined", "x");
                }
                write_file("saved/notes", "x");
                open_bed(&bed, "w");
                bed.options.resume = asides[i].resume;
                if (asides[i].given)
                        (void) text_copy(bed.run.checkpoint, sizeof(bed.run.checkpoint), in_room("saved"));
                run_folder_set_aside(&bed.run);
                if (has_event(&bed, "CheckpointsSetAside", "1 of an earlier run") != asides[i].moved ||
                    is_there("saved", "joined") != (asides[i].files && !asides[i].moved) ||
                    is_there("saved", "00000010.checkpoint") != (asides[i].files && !asides[i].moved) ||
                    !is_there("saved", "notes"))
                        fail_msg("%s", asides[i].what);
                close_bed(&bed);
                remove_folder("saved");
        }
}

/* clang-format off */
static const struct { const char *summary, *phase, *says; } parents[] = {
        { "{\"phase\":\"Succeeded\"}", NULL,     NULL },
        { "{\"phase\":\"Failed\"}",    "Failed", "job p, which this one depends on, ended as Failed" },
        { "{}",                        "Failed", "job p, which this one depends on, ended as unknown" },
        { NULL,                        "Failed", "job p, which this one depends on, ended without a summary" },
};
/* clang-format on */

static void a_job_ends_with_those_it_depends_on(void **state)
{
        (void) state;
        make_folder("family");
        make_folder("family/p");
        make_folder("family/q");
        write_file("family/p/lock", "1\n");
        write_file("family/q/lock", "1\n");
        write_file("family/q/summary.json", "{\"phase\":\"Succeeded\"}");
        for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
                struct err err = { 0 };
                struct bed bed;
                int code;

                write_file("family/p/summary.json", parents[i].summary == NULL ? "{}" : parents[i].summary);
                open_bed(&bed, "family");
                add_parent(&bed, "p");
                add_parent(&bed, "q");
                if (run_folder_open(&bed.run, &code, &err) < 0)
                        fail_msg("parent %zu: %s", i, err.msg);
                if (parents[i].summary == NULL)
                        assert_int_equal(unlink(in_room("family/p/summary.json")), 0);
                run_folder_await_parents(&bed.run);
                if (parents[i].phase == NULL)
                        assert_null(bed.run.phase);
                else if (bed.run.phase == NULL || strcmp(bed.run.phase, parents[i].phase) != 0 ||
                         strcmp(bed.run.message, parents[i].says) != 0 ||
                         !has_event(&bed, "DependencyFailed", parents[i].says))
                        fail_msg("parent %zu: got '%s'", i, bed.run.message);
                close_bed(&bed);
        }
}

static void who_waits_for_a_parent_can_be_interrupted(void **state)
{
        CLEANUP(close_p) int runs = -1;
        struct err err = { 0 };
        sigset_t term, before;
        struct bed bed;
        int code;

        (void) state;
        make_folder("wait");
        make_folder("wait/p");
        runs = lock_file("wait/p/lock");
        open_bed(&bed, "wait");
        add_parent(&bed, "p");
        assert_int_equal(run_folder_open(&bed.run, &code, &err), 0); /* it runs: it may yet end well */
        (void) sigemptyset(&term);
        (void) sigaddset(&term, SIGTERM);
        assert_int_equal(sigprocmask(SIG_BLOCK, &term, &before), 0);
        assert_int_equal(raise(SIGTERM), 0);
        run_folder_await_parents(&bed.run);
        assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
        assert_true(bed.run.interrupted && bed.run.phase == NULL);
        assert_true(has_event(&bed, "WaitingForParent", "job p is still running"));
        close_bed(&bed);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_be_had_is_refused),
                cmocka_unit_test(what_an_earlier_job_left_is_gone),
                cmocka_unit_test(checkpoints_are_set_aside_or_gone_on_from),
                cmocka_unit_test(a_job_ends_with_those_it_depends_on),
                cmocka_unit_test(who_waits_for_a_parent_can_be_interrupted),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
