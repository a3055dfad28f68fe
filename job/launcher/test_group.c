/* A group that runs, and a manager that is played: what each order makes of it, how it ends, and what it says
 * when the manager is none, is gone, or knows another token. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/grpc/grpc_server.h"
#include "io/loop.h"
#include "job/launcher/group.h"
#include "job/launcher/subtask.h"
#include "job/launcher/trust/proof.h"
#include "tests/support/patience.h"

#define TOKEN       "0123456789abcdef"
#define STEPS_MAX   9
#define ANSWERS_MAX 8

enum step_kind {
        END_OF_STEPS,
        WELCOME,  /* with the manager's proof */
        STRANGER, /* with that of another token */
        JUNK,     /* bytes that are no order */
        PART,     /* a subtask for .number chips */
        START,    /* a daemon: .word */
        STOP,
        TERMINATE,
        GO,      /* the job ended with .number */
        HANG_UP, /* the call ends with status .number */
        SIGNAL,  /* .number, to the group */
        RUN,     /* a rank 0, which ends by SIGTERM and does not say so */
        REPORT,  /* it is said to have ended */
        SEEN,    /* wait until it is told that it runs, */
        ENDED,   /* has ended, */
        LEAVING, /* or that the group goes */
        REPLY,   /* to what was told first, as late as this */
        WRITE    /* .word: the file that names the manager */
};

struct step {
        enum step_kind kind;
        int number;
        const char *word;
        const char *answer; /* its message has this word; NULL = none is waited for */
        int exit_code;      /* of the answer */
};

struct row {
        const char *what;
        struct step steps[STEPS_MAX];
        unsigned turned_away; /* so many joins are first refused: a group of this name has joined */
        bool no_greeting, by_file, deaf, slow; /* slow: there is a REPLY */
        int exit_code;
        const char *says; /* in its log; NULL = whatever */
};

/* clang-format off */
static const struct row rows[] = {
        { .what = "the manager knows another token", .steps = { { .kind = STRANGER } },
          .exit_code = EXIT_USAGE, .says = "does not know the job's token" },
        { .what = "the first order is no welcome", .steps = { { .kind = GO } },
          .exit_code = EXIT_USAGE, .says = "does not know the job's token" },
        { .what = "the first order is none", .steps = { { .kind = JUNK } },
          .exit_code = EXIT_USAGE, .says = "does not know the job's token" },
        { .what = "the greeting is none", .no_greeting = true,
          .exit_code = EXIT_USAGE, .says = "the manager's greeting is none" },
        { .what = "refused for good", .steps = { { .kind = HANG_UP, .number = GRPC_INVALID_ARGUMENT, .word = "no such group" } },
          .exit_code = EXIT_USAGE, .says = "no such group" },
        { .what = "an earlier one of its name is not yet missed", .turned_away = 2, .steps = { { .kind = WELCOME }, { .kind = STOP, .answer = "" }, { .kind = GO } },
          .exit_code = EXIT_DONE, .says = "has joined already" },
        { .what = "the job is over", .steps = { { .kind = WELCOME }, { .kind = GO, .number = 1 } }, .exit_code = EXIT_DONE },
        { .what = "orders that it refuses",
          .steps = { { .kind = WELCOME }, { .kind = PART, .number = 3, .answer = "3 ranks for 2 chips", .exit_code = EXIT_USAGE },
                     { .kind = START, .word = "sh", .answer = "'sh' is not orted", .exit_code = EXIT_FAILED },
                     { .kind = START, .word = "/bin/sh", .answer = "is not orted", .exit_code = EXIT_FAILED },
                     { .kind = START, .word = NULL, .answer = "is not orted", .exit_code = EXIT_FAILED }, { .kind = JUNK }, { .kind = STOP, .answer = "" }, { .kind = GO } },
          .exit_code = EXIT_DONE, .says = "not a rendezvous message" },
        { .what = "its daemon ends", .steps = { { .kind = WELCOME }, { .kind = PART, .number = 2, .answer = "" }, { .kind = START, .word = "orted", .answer = "", .exit_code = 7 }, { .kind = GO } },
          .exit_code = EXIT_DONE, .says = "has its subtask" },
        { .what = "it has a daemon already",
          .steps = { { .kind = WELCOME }, { .kind = START, .word = "/x/orted stays" }, { .kind = START, .word = "orted", .answer = "a daemon is running here already", .exit_code = EXIT_FAILED },
                     { .kind = STOP, .answer = "" }, { .kind = START, .word = "orted", .answer = "", .exit_code = 7 }, { .kind = GO } },
          .exit_code = EXIT_DONE },
        { .what = "the manager goes and does not come back", .steps = { { .kind = WELCOME }, { .kind = STOP, .answer = "" }, { .kind = HANG_UP, .number = GRPC_UNAVAILABLE, .word = "" } },
          .exit_code = EXIT_FAILED, .says = "the manager did not come back within 0 s (--rejoin-seconds)" },
        { .what = "it is asked to end", .steps = { { .kind = WELCOME }, { .kind = PART, .number = 2, .answer = "" }, { .kind = SIGNAL, .number = SIGTERM } }, .exit_code = 128 + SIGTERM },
        { .what = "it is interrupted", .steps = { { .kind = WELCOME }, { .kind = PART, .number = 2, .answer = "" }, { .kind = TERMINATE }, { .kind = STOP, .answer = "" }, { .kind = SIGNAL, .number = SIGINT } },
          .exit_code = EXIT_INTERRUPTED },
        { .what = "what an order makes it see is told", .steps = { { .kind = WELCOME }, { .kind = PART, .number = 2, .answer = "" }, { .kind = REPORT }, { .kind = TERMINATE }, { .kind = ENDED }, { .kind = GO } },
          .exit_code = EXIT_DONE },
        { .what = "what it cannot tell yet is told then", .slow = true,
          .steps = { { .kind = WELCOME }, { .kind = PART, .number = 2, .answer = "" }, { .kind = RUN }, { .kind = SEEN }, { .kind = SIGNAL, .number = SIGTERM }, { .kind = REPLY }, { .kind = LEAVING }, { .kind = REPORT } }, .exit_code = 128 + SIGTERM },
        { .what = "the manager takes no answer", .deaf = true, .steps = { { .kind = WELCOME }, { .kind = STOP, .answer = "" }, { .kind = STOP, .answer = "" }, { .kind = GO } },
          .exit_code = EXIT_DONE, .says = "not now" },
        { .what = "one world after the other", .by_file = true, .steps = { { .kind = WELCOME }, { .kind = STOP, .answer = "" }, { .kind = GO, .number = 1 }, { .kind = WRITE, .word = "end\n" } },
          .exit_code = EXIT_DONE, .says = "waits for the next world" },
        { .what = "its manager goes, the next world's is waited for", .by_file = true,
          .steps = { { .kind = WELCOME }, { .kind = STOP, .answer = "" }, { .kind = HANG_UP, .number = GRPC_UNAVAILABLE, .word = "gone" }, { .kind = WRITE, .word = "end\n" } },
          .exit_code = EXIT_DONE, .says = "gone" },
        { .what = "what names the manager is no such file", .by_file = true, .steps = { { .kind = WELCOME }, { .kind = GO, .number = 1 }, { .kind = WRITE, .word = "soon\n" } },
          .exit_code = EXIT_USAGE, .says = "does not hold WORLD ADDRESS:PORT" },
        { .what = "the job succeeded", .by_file = true, .steps = { { .kind = WELCOME }, { .kind = GO, .number = 0 } }, .exit_code = EXIT_DONE },
};
/* clang-format on */

static char folder[64];

struct play {
        const struct row *row;
        size_t next; /* step */
        struct grpc_server *server;
        struct grpc_call *join;
        char nonce[SHA256_HEX_BYTES], proof[SHA256_HEX_BYTES];
        unsigned joins, answers, waiting; /* waiting: for answers */
        uint64_t order;
        bool seen, ended, leaving; /* what was told */
        struct grpc_call *told;    /* and is not answered */
        pid_t rank;
        pid_t group; /* 0 = it has ended */
        int status;
        struct err err;
};

/* A file of a play; of all of them, where there is none. */
static const char *path_of(const struct play *play, const char *name)
{
        static char paths[8][160];
        static size_t next;
        char *path = paths[next++ % ARRAY_SIZE(paths)];

        if (play == NULL)
                (void) text_format(path, sizeof(paths[0]), "%s/%s", folder, name);
        else
                (void) text_format(path, sizeof(paths[0]), "%s/%zu/%s", folder, (size_t) (play->row - rows),
                                   name);
        return path;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
        char new[200];
        FILE *f;

        (void) text_format(new, sizeof(new), "%s.new", path);
        f = fopen(new, "w");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chmod(new, mode), 0);
        assert_int_equal(rename(new, path), 0);
}

static int make_folder(void **state)
{
        char path[200];

        (void) state;
        (void) text_copy(folder, sizeof(folder), "/tmp/remuda-group-test-XXXXXX");
        if (mkdtemp(folder) == NULL)
                return -1;
        write_file(path_of(NULL, "token"), TOKEN "\n", 0600);
        write_file(path_of(NULL, "programs.yaml"), "programs:\n  cpu: {path: /bin/true}\n", 0644);
        write_file(path_of(NULL, "orted"), "#!/bin/sh\n[ \"$1\" = stays ] && exec sleep 60\nexit 7\n", 0755);
        (void) text_format(path, sizeof(path), "%s:/usr/bin:/bin", folder);
        return setenv("PATH", path, 1);
}

static int remove_folder(void **state)
{
        char command[96];

        (void) state;
        (void) text_format(command, sizeof(command), "rm -rf %s", folder);
        return system(command);
}

static void play_on(struct play *play);

static void send_order(struct play *play, Rendezvous__Order *order)
{
        CLEANUP(free_p) uint8_t *bytes = NULL;
        size_t size;

        order->id = ++play->order;
        bytes = pb_pack(order, &size);
        assert_int_equal(grpc_call_send(play->join, bytes, size), 0);
}

static void send_part(struct play *play, int chips)
{
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;
        Subtask__Group groups[1], *list[1];
        Subtask__Plan *plan, sent;
        struct pb_arena arena;
        struct err err = { 0 };
        json_t *value = json_pack("{s:s, s:i, s:i, s:[{s:s, s:s, s:i}]}", "job", "j", "global_batch", 8,
                                  "samples", 16, "groups", "name", "g1", "runtime", "cpu", "chips", chips);

        pb_arena_init(&arena, SUBTASK_ARENA_BYTES);
        if (subtask_read(value, &arena, &plan, &err) < 0)
                fail_msg("%s", err.msg);
        json_decref(value);
        plan->groups[0]->used = true;
        plan->groups[0]->port = 29500;
        (void) text_copy(plan->groups[0]->address, SUBTASK_ADDRESS_BYTES, "127.0.0.1");
        assert_int_equal(subtask_cut(plan, &err), 0);
        sent = subtask_sent(plan, groups, list);
        order.kind = RENDEZVOUS__ORDER__KIND__subtask;
        order.plan = &sent;
        send_order(play, &order);
        pb_arena_free(&arena);
}

static void send_start(struct play *play, const char *line)
{
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;
        char words[80] = "", *argv[2] = { words, NULL }, *blank;

        (void) text_copy(words, sizeof(words), line == NULL ? "" : line);
        blank = strchr(words, ' ');
        if (blank != NULL) {
                *blank = '\0';
                argv[1] = blank + 1;
        }
        order.kind = RENDEZVOUS__ORDER__KIND__start;
        order.argv = argv;
        order.n_argv = line == NULL ? 0 : blank == NULL ? 1 : 2;
        send_order(play, &order);
}

static void send_plain(struct play *play, const struct step *step)
{
        static const Rendezvous__Order__Kind kinds[] = { [WELCOME] = RENDEZVOUS__ORDER__KIND__welcome,
                                                         [STRANGER] = RENDEZVOUS__ORDER__KIND__welcome,
                                                         [STOP] = RENDEZVOUS__ORDER__KIND__stop,
                                                         [TERMINATE] = RENDEZVOUS__ORDER__KIND__terminate,
                                                         [GO] = RENDEZVOUS__ORDER__KIND__go };
        Rendezvous__Order order = RENDEZVOUS__ORDER__INIT;

        order.kind = kinds[step->kind];
        order.exit_code = step->number;
        order.proof = play->proof;
        if (step->kind == STRANGER)
                order.proof = (char *) TOKEN;
        send_order(play, &order);
}

/* A rank and its launcher in one. */
static void run_rank(struct play *play)
{
        char report[100];
        sigset_t none;

        play->rank = fork();
        assert_true(play->rank >= 0);
        if (play->rank == 0) {
                (void) sigemptyset(&none); /* the loop has blocked some */
                (void) sigprocmask(SIG_SETMASK, &none, NULL);
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void) pause();
        }
        (void) text_format(report, sizeof(report), "{\"pid\":%d,\"launcher\":%d}", (int) play->rank,
                           (int) play->rank);
        write_file(path_of(play, "work/rank-0.report"), report, 0644);
}

static bool is_told(const struct play *play, enum step_kind kind)
{
        return kind == SEEN ? play->seen : kind == LEAVING ? play->leaving : play->ended;
}

/* The steps that are no orders. Return: is it one? */
static bool do_else(struct play *play, const struct step *step)
{
        switch (step->kind) {
        case END_OF_STEPS:
                return true;
        case HANG_UP:
                grpc_call_finish(TAKE(play->join), (enum grpc_status) step->number, step->word);
                break;
        case SIGNAL:
                if (play->group != 0) /* 0 would be this test, and whoever runs it */
                        (void) kill(play->group, step->number);
                break;
        case RUN:
                run_rank(play);
                break;
        case REPORT:
                write_file(path_of(play, "work/rank-0.report"),
                           "{\"pid\":1,\"exit_code\":0,\"ended_usec\":1}", 0644);
                break;
        case REPLY:
                if (play->told != NULL)
                        grpc_call_reply(TAKE(play->told), (const uint8_t *) "", 0);
                break;
        case SEEN:
        case LEAVING:
        case ENDED:
                if (!is_told(play, step->kind))
                        return true;
                break;
        case WRITE:
                write_file(path_of(play, "manager"), step->word, 0644);
                break;
        default:
                return false;
        }
        play->next++;
        play_on(play);
        return true;
}

/* The next step, unless an answer is waited for, or the last order is on its way. */
static void play_on(struct play *play)
{
        const struct step *step = &play->row->steps[play->next];
        static const uint8_t junk[] = { 0xff, 0xff, 0xff, 0xff };

        if (play->waiting > 0 || (play->join != NULL && grpc_call_busy(play->join)) || do_else(play, step))
                return;
        if (play->join == NULL)
                return;
        play->next++;
        play->waiting = step->answer != NULL;
        if (step->kind == PART)
                send_part(play, step->number);
        else if (step->kind == START)
                send_start(play, step->word);
        else if (step->kind == JUNK)
                assert_int_equal(grpc_call_send(play->join, junk, sizeof(junk)), 0);
        else
                send_plain(play, step);
}

static void on_idle(void *userdata, struct grpc_call *call)
{
        (void) call;
        play_on(userdata);
}

static void on_closed(void *userdata, struct grpc_call *call)
{
        (void) call;
        ((struct play *) userdata)->join = NULL;
}

static void on_greet(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct play *play = userdata;
        Rendezvous__Greeting greeting = RENDEZVOUS__GREETING__INIT;
        CLEANUP(free_p) uint8_t *answer = NULL;
        size_t size;

        (void) bytes;
        (void) size_bytes;
        assert_true(proof_nonce(play->nonce));
        greeting.version = MESSAGE_VERSION;
        greeting.nonce = play->row->no_greeting ? (char *) "short" : play->nonce;
        answer = pb_pack(&greeting, &size);
        grpc_call_reply(call, answer, size);
}

static void on_join(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct play *play = userdata;
        struct pb_arena arena;
        const Rendezvous__Join *join =
                message_read(&arena, &rendezvous__join__descriptor, bytes, size_bytes, &play->err);

        assert_non_null(join);
        if (play->joins++ < play->row->turned_away) {
                grpc_call_finish(call, GRPC_ALREADY_EXISTS, "a group of this name has joined already");
        } else {
                proof_make(TOKEN, PROOF_MANAGER, join->proof->nonce, join->proof->own,
                           grpc_call_binding(call), play->proof);
                play->join = call;
                grpc_call_keep(call, on_idle, on_closed, play);
                play_on(play);
        }
        pb_arena_free(&arena);
}

static void on_answer(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct play *play = userdata;
        const struct step *step = &play->row->steps[play->next - 1];
        struct pb_arena arena;
        const Rendezvous__Answer *answer =
                message_read(&arena, &rendezvous__answer__descriptor, bytes, size_bytes, &play->err);

        assert_non_null(answer);
        if (play->waiting == 0 || answer->exit_code != step->exit_code ||
            strstr(answer->message, step->answer) == NULL)
                fail_msg("%s: step %zu answered %d '%s'", play->row->what, play->next - 1, answer->exit_code,
                         answer->message);
        pb_arena_free(&arena);
        if (play->row->deaf)
                grpc_call_finish(call, GRPC_UNAVAILABLE, "not now");
        else
                grpc_call_reply(call, (const uint8_t *) "", 0);
        play->waiting = 0;
        play_on(play);
}

static void on_untold(void *userdata, struct grpc_call *call)
{
        (void) call;
        ((struct play *) userdata)->told = NULL;
}

static void on_seen(void *userdata, struct grpc_call *call, const uint8_t *bytes, size_t size_bytes)
{
        struct play *play = userdata;
        struct pb_arena arena;
        const Rendezvous__Seen *seen =
                message_read(&arena, &rendezvous__seen__descriptor, bytes, size_bytes, &play->err);

        assert_non_null(seen);
        play->leaving = play->leaving || seen->leaving;
        play->seen = play->seen || (seen->n_ranks > 0 && seen->ranks[0]->pid > 0);
        play->ended = play->ended || (seen->n_ranks > 0 && seen->ranks[0]->ended);
        pb_arena_free(&arena);
        if (play->row->slow && play->told == NULL && play->seen && !play->leaving) {
                play->told = call;
                grpc_call_keep(call, NULL, on_untold, play);
        } else {
                grpc_call_reply(call, (const uint8_t *) "", 0);
        }
        play_on(play);
}

static const struct grpc_method methods[] = {
        { MESSAGE_GREET, on_greet },
        { MESSAGE_JOIN, on_join },
        { MESSAGE_ANSWER, on_answer },
        { MESSAGE_SEEN, on_seen },
        { NULL, NULL },
};

static pid_t start_group(const struct play *play, const char *address)
{
        const struct row *row = play->row;
        const struct log log = { .program = "remuda-launch" };
        const struct rendezvous_options options = { .log = &log,
                                                    .address = row->by_file ? NULL : address,
                                                    .join_file =
                                                            row->by_file ? path_of(play, "manager") : NULL,
                                                    .token_file = path_of(NULL, "token"),
                                                    .programs = path_of(NULL, "programs.yaml"),
                                                    .work_dir = path_of(play, "work"),
                                                    .group = "g1",
                                                    .runtime = "cpu",
                                                    .chips = 2,
                                                    .wait_seconds = 60,
                                                    .rejoin_seconds = 0,
                                                    .grace_seconds = 60 };
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                int fd = open(path_of(play, "log"), O_WRONLY | O_CREAT | O_TRUNC, 0644);

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) dup2(fd, STDOUT_FILENO);
                (void) dup2(fd, STDERR_FILENO);
                _exit(group_run(&options));
        }
        return pid;
}

static bool log_says(const struct play *play, const char *words)
{
        CLEANUP(fclose_p) FILE *f = fopen(path_of(play, "log"), "re");
        char text[8192];

        assert_non_null(f);
        text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
        if (words != NULL && strstr(text, words) == NULL)
                print_error("# the group said: %s", text);
        return words == NULL || strstr(text, words) != NULL;
}

static void open_play(struct play *play, sd_event *loop)
{
        const struct grpc_server_options options = { .address = "127.0.0.1:0",
                                                     .methods = methods,
                                                     .userdata = play };
        char line[100];

        assert_int_equal(mkdir(path_of(play, ""), 0755), 0);
        assert_int_equal(grpc_server_new(loop, &options, &play->server, &play->err), 0);
        (void) text_format(line, sizeof(line), "1 %s\n", grpc_server_address(play->server));
        write_file(path_of(play, "manager"), line, 0644);
        play->status = -1;
        play->group = start_group(play, grpc_server_address(play->server));
}

/* Return: has it ended, or was there no more patience with it? */
static bool has_ended(struct play *play, uint64_t end_usec)
{
        if (play->group != 0 && clock_monotonic_usec() > end_usec)
                (void) kill(play->group, SIGKILL);
        if (play->group != 0 && waitpid(play->group, &play->status, WNOHANG) == play->group)
                play->group = 0;
        return play->group == 0;
}

static void check_play(const struct play *play)
{
        const struct row *row = play->row;

        if (!WIFEXITED(play->status) || WEXITSTATUS(play->status) != row->exit_code ||
            !log_says(play, row->says) || row->steps[play->next].kind != END_OF_STEPS)
                fail_msg("%s: status %d after %zu steps", row->what, play->status, play->next);
}

/* All at once: each of them waits most of its time. */
static void a_group_does_as_it_is_told(void **state)
{
        static struct play plays[ARRAY_SIZE(rows)];
        uint64_t end = clock_monotonic_usec() + patience_usec();
        size_t running = ARRAY_SIZE(rows);
        struct err err = { 0 };
        sd_event *loop = NULL;

        (void) state;
        assert_int_equal(loop_new(&loop, &err), 0);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                plays[i].row = &rows[i];
                open_play(&plays[i], loop);
        }
        while (running > 0) {
                running = 0;
                for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                        running += !has_ended(&plays[i], end);
                (void) sd_event_run(loop, 10000);
        }
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                check_play(&plays[i]);
                if (plays[i].rank != 0 && kill(plays[i].rank, SIGKILL) == 0)
                        assert_int_equal(waitpid(plays[i].rank, NULL, 0), plays[i].rank);
                grpc_server_free(plays[i].server);
        }
        sd_event_unref(loop);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(a_group_does_as_it_is_told) };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
