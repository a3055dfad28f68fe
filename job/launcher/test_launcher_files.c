/* What a launcher finds on its host: variables, devices, the files of its ranks and the agent's answers. Any
 * content is survived, and what is refused is refused with a sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/launcher/environment.h"
#include "job/launcher/group_devices.h"
#include "job/launcher/group_ranks.h"
#include "job/launcher/launch_client.h"
#include "job/launcher/rank_file.h"
#include "job/launcher/rank_watch.h"

static char folder[64];

static const char *path_of(const char *name)
{
        static char paths[4][160];
        static unsigned next;

        next = (next + 1) % ARRAY_SIZE(paths);
        (void) text_format(paths[next], sizeof(paths[next]), "%s/%s", folder, name);
        return paths[next];
}

static void write_file(const char *name, const char *text)
{
        FILE *f = fopen(path_of(name), "w");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static int make_folder(void **state)
{
        (void) state;
        (void) text_copy(folder, sizeof(folder), "/tmp/remuda-launcher-XXXXXX");
        return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
        char command[80];

        (void) state;
        (void) text_format(command, sizeof(command), "rm -rf %s", folder);
        return system(command);
}

static void variables_pass_by_name(void **state)
{
        static char long_name[400];
        char *wanted[] = { (char *) "OWN" };
        char *found[] = { (char *) "PATH=/bin", (char *) "OWN=1",      (char *) "RANK=7", (char *) "nothing",
                          (char *) "=empty",    (char *) "OMPI_X=a=b", long_name,         NULL };
        struct program_table_row row = { .environment = wanted, .environment_count = 1 };
        struct environment environment = { 0 };

        (void) state;
        memset(long_name, 'X', 300);
        (void) strcpy(long_name + 300, "=y");
        assert_int_equal(environment_filter(&environment, &row, found), 0);
        assert_int_equal(environment.count, 3);
        assert_string_equal(environment_get(&environment, "OMPI_X"), "a=b");
        assert_null(environment_get(&environment, "PATH"));
        assert_int_equal(environment_set(&environment, "OWN", "2"), 0);
        assert_string_equal(environment_get(&environment, "OWN"), "2");
        assert_int_equal(environment_add_frameworks(&environment, found), 0);
        assert_string_equal(environment_get(&environment, "RANK_ID"), "7"); /* as it was found */
        assert_string_equal(environment_get(&environment, "MASTER_ADDR"), "127.0.0.1");
        environment_free(&environment);
        row.inherits = true;
        assert_int_equal(environment_filter(&environment, &row, found), 0);
        assert_int_equal(environment.count, 4);
        for (int i = 0; i < 2 * ENVIRONMENT_MAX && environment.count < ENVIRONMENT_MAX; i++) {
                char name[20];

                (void) text_format(name, sizeof(name), "N%d", i);
                assert_int_equal(environment_set(&environment, name, ""), 0);
        }
        assert_int_equal(environment_set(&environment, "ONE_MORE", ""), -E2BIG);
        assert_int_equal(environment_set(&environment, "OWN", "3"), 0); /* it is there */
        environment_free(&environment);
}

static void devices_are_as_many_as_chips(void **state)
{
        struct group_devices devices;

        (void) state;
        (void) unsetenv("CUDA_VISIBLE_DEVICES");
        (void) setenv("REMUDA_DEVICES", "", 1);
        devices = group_devices_find("cuda", 2);
        assert_null(devices.names);
        (void) setenv("REMUDA_DEVICES", "4,5", 1);
        (void) setenv("CUDA_VISIBLE_DEVICES", "1,2,3", 1); /* three of two */
        devices = group_devices_find("cuda", 2);
        assert_string_equal(devices.names[1], "5");
        group_devices_free(&devices);
        (void) setenv("CUDA_VISIBLE_DEVICES", "1", 1);
        devices = group_devices_find("cuda", 1);
        assert_string_equal(devices.names[0], "1");
        group_devices_free(&devices);
        devices = group_devices_find("no-such-runtime", 2);
        assert_string_equal(devices.names[0], "4");
        group_devices_free(&devices);
        (void) unsetenv("CUDA_VISIBLE_DEVICES");
        (void) unsetenv("REMUDA_DEVICES");
}

/* clang-format off */
static const struct { const char *text, *rank, *says; } rank_files[] = {
        { "{\"ranks\":[{}]}",   "x",  "rank 'x' is not a number" },
        { "{\"ranks\":[{}]}",   "1",  "no entry for rank 1 among 1" },
        { "{\"ranks\":[7]}",    "0",  "no entry for rank 0 among 1" },
        { "{}",                 "0",  "no entry for rank 0 among 0" },
        { "{\"ranks\":",        "0",  "line 1" },
        { "{\"a\":1,\"a\":2}",  "0",  "duplicate" },
};
/* clang-format on */

static const struct program_table_row none = { .runtime = "cpu" }; /* lists no variables */

static void a_rank_finds_its_entry(void **state)
{
        struct rank_file_entry entry;
        struct environment environment = { 0 };
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rank_files); i++) {
                write_file("ranks", rank_files[i].text);
                if (rank_file_load(path_of("ranks"), rank_files[i].rank, &entry, &err) != -EINVAL ||
                    strstr(err.msg, rank_files[i].says) == NULL)
                        fail_msg("%s: want '%s', got '%s'", rank_files[i].text, rank_files[i].says, err.msg);
        }
        assert_int_equal(rank_file_load(path_of("none"), "0", &entry, &err), -ENOENT);
        write_file("ranks", "{\"ranks\":[null,{\"environment\":{\"A\":\"b\"},\"report\":\"r\"}]}");
        assert_int_equal(rank_file_load(path_of("ranks"), "1", &entry, &err), 0);
        assert_int_equal(rank_file_apply(&entry, &none, &environment, &err), 0);
        assert_string_equal(environment_get(&environment, "A"), "b");
        assert_string_equal(entry.report_path, "r");
        assert_null(entry.stdout_path);
        rank_file_free(&entry);
        write_file("ranks", "{\"ranks\":[{\"environment\":{\"A\":1}}]}");
        assert_int_equal(rank_file_load(path_of("ranks"), "0", &entry, &err), 0);
        assert_int_equal(rank_file_apply(&entry, &none, &environment, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "variable 'A'"));
        rank_file_free(&entry);
        environment_free(&environment);
}

/* Who made the rank file may be on another host: which code a program has is the word of its own table. */
static void what_brings_code_has_to_be_listed(void **state)
{
        static const char *const names[] = { "LD_PRELOAD", "OMP_TOOL_LIBRARIES", "CUDA_INJECTION64_PATH",
                                             "HSA_TOOLS_LIB", "ZE_ENABLE_ALT_DRIVERS" };
        struct program_table_row inherits = { .runtime = "cpu", .inherits = true };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char *listed[] = { (char *) names[i] };
                const struct program_table_row lists = { .environment = listed, .environment_count = 1 };
                struct rank_file_entry entry = { .file = json_pack("{s:s}", names[i], "/tmp/x.so") };
                struct environment environment = { 0 };
                struct err err = { 0 };

                entry.environment = entry.file;
                assert_int_equal(rank_file_apply(&entry, &none, &environment, &err), -EPERM);
                assert_non_null(strstr(err.msg, names[i]));
                assert_non_null(strstr(err.msg, "the table's row of cpu has to list it"));
                assert_null(environment_get(&environment, names[i]));
                assert_int_equal(rank_file_apply(&entry, &lists, &environment, &err), 0);
                assert_int_equal(rank_file_apply(&entry, &inherits, &environment, &err), 0);
                assert_string_equal(environment_get(&environment, names[i]), "/tmp/x.so");
                rank_file_free(&entry);
                environment_free(&environment);
        }
}

/* clang-format off */
static const struct { const char *line; bool good; enum progress_doubt doubt; double doubted; } lines[] = {
        { "{\"step\":3,\"samples\":9}",        true,  PROGRESS_BELIEVED, 0 },
        { "{}",                                true,  PROGRESS_BELIEVED, 0 },
        { "{\"step\":-2}",                     true,  PROGRESS_STEP, -2 },
        { "{\"step\":1,\"samples\":-7}",       true,  PROGRESS_SAMPLES, -7 },
        { "{\"step\":1,\"busy_seconds\":-1}",  true,  PROGRESS_BUSY, -1 },
        { "{\"samples_per_s\":-1.5}",          true,  PROGRESS_RATE, -1.5 },
        { "[1]",                               false, PROGRESS_BELIEVED, 0 },
        { "{\"step\":",                        false, PROGRESS_BELIEVED, 0 },
};
/* clang-format on */

static void lines_that_cannot_be_are_doubted(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                struct progress_line said;

                if (rank_watch_line(lines[i].line, strlen(lines[i].line), &said) != lines[i].good ||
                    said.doubt != lines[i].doubt || said.doubted != lines[i].doubted)
                        fail_msg("%s: doubt %d, %g", lines[i].line, said.doubt, said.doubted);
        }
}

static void progress_is_read_as_it_grows(void **state)
{
        struct progress_rank rank = { 0 };
        off_t offset = 0;
        struct text endless = { 0 };
        FILE *f;

        (void) state;
        assert_int_equal(rank_watch_progress(path_of("none"), &offset, &rank, 1), 0);
        write_file("progress", "{\"step\":1}\n\nnonsense\n{\"step\":2");
        assert_int_equal(rank_watch_progress(path_of("progress"), &offset, &rank, 1), 1);
        assert_true(rank.step == 1 && rank.doubt == PROGRESS_NO_LINE);
        assert_int_equal(offset, 21); /* the line that is not whole waits */
        assert_int_equal(rank_watch_progress(path_of("progress"), &offset, &rank, 1), 0);
        f = fopen(path_of("progress"), "a");
        assert_non_null(f);
        assert_true(fputs("}\n", f) >= 0 && fclose(f) == 0);
        assert_int_equal(rank_watch_progress(path_of("progress"), &offset, &rank, 2), 1);
        assert_int_equal(rank.step, 2);
        for (int i = 0; i < 1 << 15; i++)
                text_append(&endless, "01234567890123456789012345678901");
        write_file("endless", endless.data);
        text_free(&endless);
        offset = 0;
        assert_int_equal(rank_watch_progress(path_of("endless"), &offset, &rank, 2), 0);
        assert_int_equal(offset, 1 << 20); /* not ours to keep */
}

static void last_words_and_processes_are_found(void **state)
{
        char line[16];
        pid_t pid;

        (void) state;
        rank_watch_last_line(path_of("none"), line, sizeof(line));
        assert_string_equal(line, "");
        write_file("out", "");
        rank_watch_last_line(path_of("out"), line, sizeof(line));
        assert_string_equal(line, "");
        write_file("out", "many words before\nthe last\n");
        rank_watch_last_line(path_of("out"), line, sizeof(line));
        assert_string_equal(line, "the last");
        assert_int_equal(rank_watch_process(0), 0);
        pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) prctl(PR_SET_NAME, "a) b", 0, 0, 0);
                (void) raise(SIGSTOP);
                _exit(0);
        }
        for (int i = 0; i < 2000 && rank_watch_process(pid) != 'T'; i++)
                (void) usleep(10000);
        assert_int_equal(rank_watch_process(pid), 'T');
        (void) kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(rank_watch_process(pid), 0);
}

/* A look: a rank's report, its words, its end. */
static void ranks_are_looked_at_by_their_files(void **state)
{
        struct group_ranks ranks = { .folder = folder };
        const uint32_t shares[] = { 3, 5 };
        struct err err = { 0 };
        char report[120];
        pid_t pid;

        (void) state;
        assert_int_equal(group_ranks_begin(&ranks, 1, 0, 2, &err), 0);
        write_file("rank-0.out", "of an earlier world\n");
        group_ranks_clean(&ranks);
        assert_int_equal(access(path_of("rank-0.out"), F_OK), -1);
        assert_false(group_ranks_look(&ranks, 1));
        assert_int_equal(group_ranks_share(&ranks, 7, shares, 2, &err), 0);
        assert_int_equal(access(path_of("rank-0.shares"), F_OK), 0);
        pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void) pause();
        }
        (void) text_format(report, sizeof(report), "{\"pid\":%d,\"launcher\":%d}", (int) pid, (int) pid);
        write_file("rank-1.report", report);
        write_file("rank-1.progress", "{\"step\":-5}\n");
        assert_true(group_ranks_look(&ranks, 2));
        assert_int_equal(ranks.said[1].pid, pid);
        assert_int_equal(ranks.said[1].doubt, PROGRESS_STEP);
        assert_int_equal(group_ranks_running(&ranks), 1);
        assert_int_equal(group_ranks_terminate(&ranks), 1);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_int_equal(group_ranks_terminate(&ranks), 0); /* it is gone */
        write_file("rank-0.report", "{\"pid\":1,\"exit_code\":3,\"ended_usec\":9,\"asked\":true}");
        write_file("rank-0.out", "{\"accuracy\":0.5,\"loss\":0.25}\n");
        assert_true(group_ranks_look(&ranks, 8)); /* of a clock that is a little ahead */
        assert_true(ranks.said[0].asked && ranks.said[0].ended_ago_usec == 0);
        assert_true(ranks.said[0].ended && ranks.said[0].exit_code == 3 && ranks.said[0].accuracy == 0.5);
        assert_true(ranks.said[0].loss == 0.25);
        assert_int_equal(group_ranks_running(&ranks), 1);
        write_file("rank-0.report", "{\"pid\":1}"); /* what has ended stays so */
        assert_false(group_ranks_look(&ranks, 29));
        assert_int_equal(ranks.said[0].ended_ago_usec, 20);
        group_ranks_told(&ranks);
        assert_int_equal(ranks.said[1].n_paces, 0);
        group_ranks_free(&ranks);
}

/* clang-format off */
static const struct { const char *answer; int result; const char *says; } answers[] = {
        { "HTTP/1.1 200 OK\r\n\r\n{\"variables\":{\"REMUDA_VENDOR\":\"b\"}}", 0,       "" },
        { "HTTP/1.1 200 OK\r\n\r\n{\"environment\":{\"CUDA_VISIBLE_DEVICES\":\"0\"}}", 0, "" },
        { "HTTP/1.1 200 OK\r\n\r\n{\"variables\":7}",                    -EPROTO,       "without variables" },
        { "HTTP/1.1 200 OK\r\n\r\nnonsense",                             -EPROTO,       "without variables" },
        { "HTTP/1.1 200 OK\r\n\r\n{\"variables\":{\"A\":1}}",            -EPROTO,       "a variable that is none" },
        { "HTTP/1.1 200 OK\r\n\r\n{\"variables\":{\"\":\"b\"}}",         -EPROTO,       "a variable that is none" },
        { "HTTP/1.1 200 OK\r\n\r\n{\"variables\":{\"A=\":\"b\"}}",       -EPROTO,       "a variable that is none" },
        { "HTTP/1.1 200 OK\r\n\r\n{\"variables\":{\"LD_PRELOAD\":\"b\"}}", -EPERM,      "sets LD_PRELOAD" },
        { "HTTP/1.1 200 OK\r\n\r\n{\"variables\":{\"A\":\"b\"}}",        -EPERM,        "sets A, which no agent does" },
        { "HTTP/1.1 200 OK\r\n\r\n{\"variables\":{\"REMUDA_PLAN\":\"b\"}}", -EPERM,     "sets REMUDA_PLAN" },
        { "HTTP/1.1 403 No\r\n\r\n{\"message\":\"not yours\"}",          -EKEYREJECTED, "HTTP status 403: not yours" },
        { "HTTP/1.1 500 No\r\n\r\n",                                     -EPROTO,       "HTTP status 500: no message" },
        { "HTTP/1.1 503 No\r\n\r\n{}",                                   -EPROTO,       "HTTP status 503" },
        { "HTTP/2\r\n\r\n",                                              -EPROTO,       "not HTTP" },
        { "SSH-2.0-OpenSSH\r\n\r\n",                                     -EPROTO,       "not HTTP" },
        { "HTTP/1.1 200 OK\r\n",                                         -EPROTO,       "not HTTP" },
        { "",                                                            -EPROTO,       "not HTTP" },
};
/* clang-format on */

/* An agent that says this to whoever asks, as often as it is asked. */
static pid_t listen_at(const char *path, const char *answer)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        pid_t pid;

        (void) text_copy(address.sun_path, sizeof(address.sun_path), path);
        (void) unlink(path);
        assert_int_equal(bind(fd, (const struct sockaddr *) &address, sizeof(address)), 0);
        assert_int_equal(listen(fd, 8), 0);
        pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;) {
                        char request[4096];
                        int peer = accept(fd, NULL, NULL);

                        if (recv(peer, request, sizeof(request), 0) > 0)
                                (void) !write(peer, answer, strlen(answer));
                        (void) close(peer);
                }
        }
        (void) close(fd);
        return pid;
}

static void an_agents_answer_is_judged(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                pid_t pid = listen_at(path_of("socket"), answers[i].answer);
                struct launch_client_answer answer;
                struct err err = { 0 };
                int r = launch_client_ask(path_of("socket"), "cu da", "0,1", &answer, &err);

                if (r != answers[i].result || strstr(err.msg, answers[i].says) == NULL)
                        fail_msg("%s: %d %s", answers[i].answer, r, err.msg);
                if (r == 0) {
                        assert_int_equal(answer.variable_count, 1);
                        assert_non_null(strstr(answers[i].answer, answer.names[0]));
                        launch_client_answer_free(&answer);
                }
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
        }
}

static void a_socket_that_others_may_replace_is_not_believed(void **state)
{
        pid_t pid = listen_at(path_of("socket"), answers[0].answer);
        struct launch_client_answer answer;
        struct err err = { 0 };
        char far[200];

        (void) state;
        (void) setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
        assert_int_equal(launch_client_ask(path_of("socket"), "cuda", NULL, &answer, &err), -EPERM);
        assert_non_null(strstr(err.msg, "is mounted writable"));
        (void) unsetenv("KUBERNETES_SERVICE_HOST");
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        assert_int_equal(launch_client_ask(path_of("socket"), "cuda", NULL, &answer, &err), -ECONNREFUSED);
        assert_int_equal(launch_client_ask(path_of("none"), "cuda", NULL, &answer, &err), -ENOENT);
        memset(far, 'x', sizeof(far) - 1);
        far[sizeof(far) - 1] = '\0';
        assert_int_equal(launch_client_ask(far, "cuda", NULL, &answer, &err), -ENAMETOOLONG);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(variables_pass_by_name),
                cmocka_unit_test(devices_are_as_many_as_chips),
                cmocka_unit_test(a_rank_finds_its_entry),
                cmocka_unit_test(what_brings_code_has_to_be_listed),
                cmocka_unit_test(lines_that_cannot_be_are_doubted),
                cmocka_unit_test(progress_is_read_as_it_grows),
                cmocka_unit_test(last_words_and_processes_are_found),
                cmocka_unit_test(ranks_are_looked_at_by_their_files),
                cmocka_unit_test(an_agents_answer_is_judged),
                cmocka_unit_test(a_socket_that_others_may_replace_is_not_believed),
        };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
