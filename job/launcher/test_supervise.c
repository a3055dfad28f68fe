/* A program below a launcher and its keeper: how it ends, who is told, and that nothing of it stays. */
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
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "job/launcher/rank_watch.h"
#include "job/launcher/supervise.h"
#include "tests/support/patience.h"

static char folder[64];

/* How supervise() returned. */
struct outcome {
        int result, exit_code;
        char words[400];
};

struct launcher {
        pid_t pid;
        int says; /* an outcome, or nothing if it was killed */
};

static const char *path_of(const char *name)
{
        static char paths[4][160];
        static size_t next;
        char *path = paths[next++ % ARRAY_SIZE(paths)];

        (void) text_format(path, sizeof(paths[0]), "%s/%s", folder, name);
        return path;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
        FILE *f = fopen(path_of(name), "w");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chmod(path_of(name), mode), 0);
}

static int make_folder(void **state)
{
        (void) state;
        (void) text_copy(folder, sizeof(folder), "/tmp/remuda-supervise-XXXXXX");
        return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
        char command[96];

        (void) state;
        (void) text_format(command, sizeof(command), "rm -rf %s", folder);
        return system(command);
}

/* In a process of its own: it adopts orphans and blocks signals. */
static struct launcher launch(const struct supervise_what *what)
{
        struct launcher launcher = { 0 };
        int says[2];

        assert_int_equal(pipe2(says, O_CLOEXEC), 0);
        launcher.pid = fork();
        assert_true(launcher.pid >= 0);
        if (launcher.pid == 0) {
                struct outcome outcome = { 0 };
                struct err err = { 0 };

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                outcome.result = supervise(what, &outcome.exit_code, &err);
                (void) text_copy(outcome.words, sizeof(outcome.words), err.msg);
                _exit(write(says[1], &outcome, sizeof(outcome)) == (ssize_t) sizeof(outcome) ? 0 : 1);
        }
        (void) close(says[1]);
        launcher.says = says[0];
        return launcher;
}

/* .result 1: it was killed. */
static struct outcome outcome_of(struct launcher launcher)
{
        struct outcome outcome = { .result = 1 };

        if (read(launcher.says, &outcome, sizeof(outcome)) != (ssize_t) sizeof(outcome))
                outcome = (struct outcome){ .result = 1 };
        (void) close(launcher.says);
        assert_int_equal(waitpid(launcher.pid, NULL, 0), launcher.pid);
        return outcome;
}

static char *environment[] = { (char *) "PATH=/usr/bin:/bin", NULL };

/* Borrows @argv. */
static struct supervise_what shell(const char *script, char *argv[4])
{
        argv[0] = (char *) "/bin/sh";
        argv[1] = (char *) "-c";
        argv[2] = (char *) script;
        argv[3] = NULL;
        (void) unlink(path_of("report"));
        (void) unlink(path_of("ready"));
        return (struct supervise_what){ .path = "/bin/sh",
                                        .argv = argv,
                                        .environment = environment,
                                        .stdout_path = path_of("out"),
                                        .report_path = path_of("report"),
                                        .sha256 = "",
                                        .keep_fds = { -1, -1 },
                                        .grace_usec = 20000000,
                                        .farewell_usec = 100000 };
}

static void await_file(const char *name)
{
        for (uint64_t end = clock_monotonic_usec() + patience_usec(); access(path_of(name), F_OK) < 0;) {
                (void) usleep(5000);
                if (clock_monotonic_usec() > end)
                        fail_msg("there never was a file '%s'", name);
        }
}

static struct rank_watch_report report_of(const char *name)
{
        struct rank_watch_report report;

        assert_true(rank_watch_report(path_of(name), &report));
        return report;
}

static void a_program_ends_as_it_ends(void **state)
{
        static const struct {
                const char *script;
                int exit_code;
        } rows[] = {
                { "exit 0", 0 },
                { "exit 7", 7 },
                { "kill -SEGV $$", 139 },
                { "sleep 60 & exit 3", 3 }, /* what it left behind is asked to go */
                { "trap '' TERM; (trap '' TERM; exec sleep 60) & exit 4", 4 }, /* and made to */
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char *argv[4];
                const struct supervise_what what = shell(rows[i].script, argv);
                uint64_t before = clock_monotonic_usec();
                struct outcome outcome = outcome_of(launch(&what));
                struct rank_watch_report report = report_of("report");

                assert_int_equal(outcome.result, 0);
                assert_int_equal(outcome.exit_code, rows[i].exit_code);
                assert_true(report.ended && report.exit_code == rows[i].exit_code && !report.asked);
                assert_true(report.ended_usec >= before && report.ended_usec <= clock_monotonic_usec());
        }
}

static void what_cannot_be_started_is_said(void **state)
{
        CLEANUP(free_p) char *large = malloc(300000);
        static const struct {
                const char *path, *out, *err;
                int result;
                const char *says;
        } rows[] = {
                { "script", "out", NULL, -ENOENT, "the interpreter of its first line" },
                { "bare", "out", NULL, -ENOEXEC, "a script without '#!' in its first line" },
                { "true", "out", NULL, -E2BIG, "give fewer arguments or a smaller environment" },
                { "true", "none/out", NULL, -ENOENT, "none/out' cannot be opened: No such file" },
                { "true", "out", "script/err", -ENOTDIR, "script/err' cannot be opened: Not a directory" },
                { "none", "out", NULL, -ENOENT, "could not be started: No such file" },
        };

        (void) state;
        assert_non_null(large);
        memset(large, 'x', 299999);
        large[299999] = '\0';
        write_file("script", "#!/no/such/shell\n", 0755);
        write_file("bare", "exit 0\n", 0755);
        if (access(path_of("true"), F_OK) < 0)
                assert_int_equal(symlink("/bin/true", path_of("true")), 0);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char path[160], out[160], err[160];
                char *argv[] = { path, rows[i].result == -E2BIG ? large : NULL, NULL };
                struct supervise_what what = shell("", (char *[4]){ 0 });
                struct outcome outcome;

                (void) text_copy(path, sizeof(path), path_of(rows[i].path));
                (void) text_copy(out, sizeof(out), path_of(rows[i].out));
                (void) text_copy(err, sizeof(err), rows[i].err == NULL ? "" : path_of(rows[i].err));
                what.path = path;
                what.argv = argv;
                what.stdout_path = out;
                what.stderr_path = rows[i].err == NULL ? NULL : err;
                what.report_path = NULL;
                outcome = outcome_of(launch(&what));
                if (outcome.result != rows[i].result || strstr(outcome.words, rows[i].says) == NULL)
                        fail_msg("row %zu: want %d '%s', got %d '%s'", i, rows[i].result, rows[i].says,
                                 outcome.result, outcome.words);
        }
}

static void who_is_asked_to_end_may_do_so_in_time(void **state)
{
        static const struct {
                const char *script;
                unsigned grace_usec;
                int signal_number, exit_code;
                bool asked;
        } rows[] = {
                { "trap 'exit 5' TERM; : >ready; while :; do sleep 0.02; done", 20000000, SIGTERM, 5, true },
                { "trap '' TERM; : >ready; while :; do sleep 0.02; done", 100000, SIGTERM, 137, true },
                { "trap 'exit 6' USR1; : >ready; while :; do sleep 0.02; done", 20000000, SIGUSR1, 6, false },
                { ": >ready; kill -STOP $$; exit 8", 20000000, SIGTERM, 143,
                  true }, /* stopped, and goes on */
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char script[200], *argv[4];
                struct supervise_what what;
                struct rank_watch_report report;
                struct launcher launcher;
                struct outcome outcome;

                (void) text_format(script, sizeof(script), "cd %s; %s", folder, rows[i].script);
                what = shell(script, argv);
                what.grace_usec = rows[i].grace_usec;
                launcher = launch(&what);
                await_file("ready");
                (void) kill(launcher.pid, rows[i].signal_number);
                outcome = outcome_of(launcher);
                report = report_of("report");
                if (outcome.result != 0 || outcome.exit_code != rows[i].exit_code ||
                    report.exit_code != rows[i].exit_code || report.asked != rows[i].asked)
                        fail_msg("row %zu: result %d, code %d, asked %d", i, outcome.result,
                                 outcome.exit_code, report.asked);
        }
}

static pid_t child_of(pid_t pid)
{
        CLEANUP(fclose_p) FILE *f = NULL;
        char path[64];
        int child = 0;

        (void) text_format(path, sizeof(path), "/proc/%d/task/%d/children", (int) pid, (int) pid);
        f = fopen(path, "re");
        return f != NULL && fscanf(f, "%d", &child) == 1 ? child : 0;
}

static void await_end(pid_t pid)
{
        for (uint64_t end = clock_monotonic_usec() + patience_usec(); kill(pid, 0) == 0;) {
                char state = rank_watch_process(pid);

                if (state == 0 || state == 'Z') /* nobody but init would wait for it */
                        return;
                (void) usleep(5000);
                if (clock_monotonic_usec() > end)
                        fail_msg("process %d outlived those who watched over it", (int) pid);
        }
}

/* Whoever of the three is killed, the program goes; by whom it was is in the report. */
static void nothing_outlives_who_watches_over_it(void **state)
{
        static const struct {
                const char *victim;
                int result, exit_code;
                bool ended, asked;
        } rows[] = {
                { "program", 0, 137, true, false },
                { "keeper", 0, 137, false, false },
                { "launcher", 1, 0, true, true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char script[200], *argv[4];
                struct rank_watch_report report;
                struct supervise_what what;
                struct launcher launcher;
                struct outcome outcome;
                pid_t keeper;

                (void) text_format(script, sizeof(script), "cd %s; : >ready; exec sleep 60", folder);
                what = shell(script, argv);
                launcher = launch(&what);
                await_file("ready");
                await_file("report");
                report = report_of("report");
                keeper = child_of(launcher.pid);
                assert_int_equal(report.launcher, launcher.pid);
                assert_int_equal(child_of(keeper), report.pid);
                (void) kill(i == 0 ? report.pid : i == 1 ? keeper : launcher.pid, SIGKILL);
                outcome = outcome_of(launcher);
                await_end(report.pid);
                await_end(keeper);
                report = report_of("report");
                if (outcome.result != rows[i].result || outcome.exit_code != rows[i].exit_code ||
                    report.ended != rows[i].ended || report.asked != rows[i].asked)
                        fail_msg("%s killed: result %d, code %d, ended %d, asked %d", rows[i].victim,
                                 outcome.result, outcome.exit_code, report.ended, report.asked);
        }
}

static void a_program_has_the_descriptors_it_is_to_keep(void **state)
{
        char script[200], *argv[4];
        int kept = open("/dev/null", O_WRONLY | O_CLOEXEC), closed = open("/dev/null", O_WRONLY);
        struct supervise_what what;

        (void) state;
        assert_true(kept > 2 && closed > 2);
        (void) text_format(script, sizeof(script), "[ -e /proc/$$/fd/%d ] && [ ! -e /proc/$$/fd/%d ]", kept,
                           closed);
        what = shell(script, argv);
        what.keep_fds[0] = kept;
        assert_int_equal(outcome_of(launch(&what)).exit_code, 0);
        (void) close(kept);
        (void) close(closed);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_program_ends_as_it_ends),
                cmocka_unit_test(what_cannot_be_started_is_said),
                cmocka_unit_test(who_is_asked_to_end_may_do_so_in_time),
                cmocka_unit_test(nothing_outlives_who_watches_over_it),
                cmocka_unit_test(a_program_has_the_descriptors_it_is_to_keep),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
