/* A manager that runs, and groups that are played: whom it takes, whom it refuses and why, and what it does
 * when one refuses its part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
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
#include "base/exit_code.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "job/launcher/manager.h"
#include "job/launcher/trust/proof.h"
#include "tests/support/patience.h"

#define TOKEN "0123456789abcdef"
#define PLAN                                                                                                 \
        "{\"job\":\"j\",\"global_batch\":8,\"samples\":16,\"groups\":["                                      \
        "{\"name\":\"g1\",\"runtime\":\"cpu\",\"chips\":2},{\"name\":\"g2\",\"runtime\":\"cpu\",\"chips\":"  \
        "1}]}"

static char folder[64];

/* One call: what came, and how it ended. */
struct reply {
        bool done;
        enum grpc_status status;
        char sentence[300];
        unsigned messages;
        uint64_t part; /* the order that gives it its subtask; 0 = none came */
        char nonce[SHA256_HEX_BYTES];
};

struct peer {
        sd_event *loop;
        struct grpc_client *client;
        char nonce[SHA256_HEX_BYTES], own[SHA256_HEX_BYTES], text[SHA256_HEX_BYTES];
};

static const char *path_of(const char *name)
{
        static char paths[8][160];
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
        (void) text_copy(folder, sizeof(folder), "/tmp/remuda-members-XXXXXX");
        if (mkdtemp(folder) == NULL)
                return -1;
        write_file("token", TOKEN "\n", 0600);
        write_file("plan", PLAN, 0644);
        write_file("mpirun", "#!/bin/sh\nexit 0\n", 0755);
        return 0;
}

static int remove_folder(void **state)
{
        char command[96];

        (void) state;
        (void) text_format(command, sizeof(command), "rm -rf %s", folder);
        return system(command);
}

static bool log_says(const char *words, char line[200])
{
        CLEANUP(fclose_p) FILE *f = fopen(path_of("log"), "re");

        while (f != NULL && fgets(line, 200, f) != NULL)
                if (strstr(line, words) != NULL)
                        return true;
        return false;
}

/* *ret_address: where it listens. */
static pid_t start_manager(char ret_address[64])
{
        const struct log log = { .program = "remuda-launch" };
        const struct rendezvous_options options = { .log = &log,
                                                    .address = "127.0.0.1:0",
                                                    .token_file = path_of("token"),
                                                    .plan = path_of("plan"),
                                                    .mpirun = path_of("mpirun"),
                                                    .wait_seconds = 60,
                                                    .grace_seconds = 1 };
        uint64_t end = clock_monotonic_usec() + patience_usec();
        char line[200];
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                int fd = open(path_of("log"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);

                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) dup2(fd, STDERR_FILENO);
                _exit(manager_run(&options));
        }
        while (!log_says(" groups\n", line)) {
                (void) usleep(5000);
                if (clock_monotonic_usec() > end)
                        fail_msg("the manager does not listen");
        }
        assert_int_equal(sscanf(strstr(line, "listening on "), "listening on %63s", ret_address), 1);
        return pid;
}

static void on_message(void *userdata, const uint8_t *message, size_t size_bytes)
{
        struct reply *reply = userdata;
        struct pb_arena arena;
        const Rendezvous__Greeting *greeting =
                message_read(&arena, &rendezvous__greeting__descriptor, message, size_bytes, NULL);

        reply->messages++;
        if (greeting != NULL && sha256_is_hex(greeting->nonce))
                (void) text_copy(reply->nonce, sizeof(reply->nonce), greeting->nonce);
        pb_arena_free(&arena);
}

static void on_order(void *userdata, const uint8_t *message, size_t size_bytes)
{
        struct reply *reply = userdata;
        struct pb_arena arena;
        const Rendezvous__Order *order =
                message_read(&arena, &rendezvous__order__descriptor, message, size_bytes, NULL);

        assert_non_null(order);
        reply->messages++;
        if (order->kind == RENDEZVOUS__ORDER__KIND__subtask)
                reply->part = order->id;
        pb_arena_free(&arena);
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct reply *reply = userdata;

        reply->done = true;
        reply->status = status;
        (void) text_copy(reply->sentence, sizeof(reply->sentence), sentence == NULL ? "" : sentence);
}

#define AWAIT(peer, what)                                                                                    \
        do {                                                                                                 \
                uint64_t end_ = clock_monotonic_usec() + patience_usec();                                    \
                while (!(what)) {                                                                            \
                        if (clock_monotonic_usec() > end_)                                                   \
                                fail_msg("never came: %s", #what);                                           \
                        (void) sd_event_run((peer)->loop, 10000);                                            \
                }                                                                                            \
        } while (false)

static struct reply call(struct peer *peer, const char *path, const void *message)
{
        static const uint8_t junk[] = { 0xff, 0xff, 0xff, 0xff };
        struct reply reply = { 0 };
        const struct grpc_client_handlers handlers = { .on_message = on_message,
                                                       .on_done = on_done,
                                                       .userdata = &reply };

        assert_int_equal(
                message == NULL ? grpc_client_call(peer->client, path, junk, sizeof(junk), 0, &handlers, NULL)
                                : message_call(peer->client, path, message, 0, &handlers, NULL),
                0);
        AWAIT(peer, reply.done);
        return reply;
}

static void expect(struct reply reply, enum grpc_status status, const char *says)
{
        if (reply.status != status || strstr(reply.sentence, says) == NULL)
                fail_msg("want %d '%s', got %d '%s'", (int) status, says, (int) reply.status, reply.sentence);
}

static void meet(struct peer *peer, sd_event *loop, const char *address)
{
        const struct grpc_client_options options = { .address = address };
        struct err err = { 0 };

        *peer = (struct peer){ .loop = loop };
        assert_int_equal(grpc_client_new(loop, &options, &peer->client, &err), 0);
        assert_true(proof_nonce(peer->own) && proof_nonce(peer->nonce)); /* of nobody, before it is greeted */
}

static void greet(struct peer *peer)
{
        Rendezvous__Greet what = RENDEZVOUS__GREET__INIT;
        struct reply reply;

        what.version = MESSAGE_VERSION;
        reply = call(peer, MESSAGE_GREET, &what);
        expect(reply, GRPC_OK, "");
        (void) text_copy(peer->nonce, sizeof(peer->nonce), reply.nonce);
}

static Rendezvous__Proof prove(struct peer *peer, const char *token, const char *role)
{
        Rendezvous__Proof proof = RENDEZVOUS__PROOF__INIT;

        proof_make(token, role, peer->nonce, peer->own, grpc_client_binding(peer->client), peer->text);
        proof.version = MESSAGE_VERSION;
        proof.nonce = peer->nonce;
        proof.own = peer->own;
        proof.text = peer->text;
        return proof;
}

static Rendezvous__Join offer(const char *group, const char *runtime, unsigned chips,
                              Rendezvous__Proof *proof)
{
        Rendezvous__Join join = RENDEZVOUS__JOIN__INIT;

        join.proof = proof;
        join.group = (char *) group;
        join.runtime = (char *) runtime;
        join.chips = chips;
        return join;
}

static void expect_no_join(struct peer *peer, Rendezvous__Join join, enum grpc_status status,
                           const char *says)
{
        expect(call(peer, MESSAGE_JOIN, &join), status, says);
}

/* clang-format off */
static const struct { const char *group, *runtime, *token; unsigned chips; enum grpc_status status; const char *says; } joins[] = {
        { "g3", "cpu",  TOKEN,              2, GRPC_NOT_FOUND,        "the job has no group of this name" },
        { "g1", "cuda", TOKEN,              2, GRPC_INVALID_ARGUMENT, "the job plans another runtime for this group" },
        { "g1", "cpu",  TOKEN,              1, GRPC_INVALID_ARGUMENT, "the job plans more chips for this group than it has" },
        { "g1", "cpu",  "another token 123", 2, GRPC_UNAUTHENTICATED,  "the token is wrong" },
        { "G1", "cpu",  TOKEN,              2, GRPC_INVALID_ARGUMENT, "is not 1 to 63 small letters" },
};
/* clang-format on */

static void expect_refusals(struct peer *peer)
{
        static const char *const paths[] = { MESSAGE_JOIN, MESSAGE_ANSWER, MESSAGE_START, MESSAGE_SEEN,
                                             MESSAGE_STATUS };
        Rendezvous__Proof proof = prove(peer, TOKEN, PROOF_GROUP);
        Rendezvous__Answer answer = RENDEZVOUS__ANSWER__INIT;
        Rendezvous__Start start = RENDEZVOUS__START__INIT;
        Rendezvous__Seen seen = RENDEZVOUS__SEEN__INIT;
        Rendezvous__Ask ask = RENDEZVOUS__ASK__INIT;

        expect_no_join(peer, offer("g1", "cpu", 2, &proof), GRPC_UNAVAILABLE, "was not greeted");
        greet(peer);
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                expect(call(peer, paths[i], NULL), GRPC_INVALID_ARGUMENT, "not a rendezvous message");
        for (size_t i = 0; i < ARRAY_SIZE(joins); i++) {
                proof = prove(peer, joins[i].token, PROOF_GROUP);
                expect_no_join(peer, offer(joins[i].group, joins[i].runtime, joins[i].chips, &proof),
                               joins[i].status, joins[i].says);
        }
        proof = prove(peer, TOKEN, PROOF_START); /* good for another role alone */
        expect_no_join(peer, offer("g1", "cpu", 2, &proof), GRPC_UNAUTHENTICATED, "the token is wrong");
        start.proof = &proof;
        start.host = (char *) "g1";
        expect(call(peer, MESSAGE_START, &start), GRPC_NOT_FOUND,
               "no such group, or it has a daemon already");
        proof.version = 2;
        expect_no_join(peer, offer("g1", "cpu", 2, &proof), GRPC_FAILED_PRECONDITION,
                       "speaks another version");
        expect_no_join(peer, offer("g1", "cpu", 2, NULL), GRPC_FAILED_PRECONDITION, "speaks another version");
        expect(call(peer, MESSAGE_STATUS, &ask), GRPC_FAILED_PRECONDITION, "speaks another version");
        proof = prove(peer, TOKEN, PROOF_STATUS);
        ask.proof = &proof;
        assert_int_equal(call(peer, MESSAGE_STATUS, &ask).messages, 1);
        proof = prove(peer, "another token 123", PROOF_STATUS);
        expect(call(peer, MESSAGE_STATUS, &ask), GRPC_UNAUTHENTICATED, "the token is wrong");
        answer.group = seen.group = (char *) "g1";
        expect(call(peer, MESSAGE_ANSWER, &answer), GRPC_UNAUTHENTICATED,
               "has not joined over this connection");
        expect(call(peer, MESSAGE_SEEN, &seen), GRPC_UNAUTHENTICATED, "has not joined over this connection");
}

/* It stays: *reply is told its orders. */
static void join(struct peer *peer, const char *group, unsigned chips, struct reply *reply)
{
        const struct grpc_client_handlers handlers = { .on_message = on_order,
                                                       .on_done = on_done,
                                                       .userdata = reply };
        Rendezvous__Proof proof = prove(peer, TOKEN, PROOF_GROUP);
        Rendezvous__Join what = offer(group, "cpu", chips, &proof);

        assert_int_equal(message_call(peer->client, MESSAGE_JOIN, &what, 0, &handlers, NULL), 0);
        AWAIT(peer, reply->messages > 0); /* it is welcome */
}

/* What a group of the job may say, whatever it is. */
static void say_odd_things(struct peer *peer, const char *group)
{
        Rendezvous__RankSeen rank = RENDEZVOUS__RANK_SEEN__INIT, *list[] = { &rank };
        Rendezvous__Answer answer = RENDEZVOUS__ANSWER__INIT;
        Rendezvous__Seen seen = RENDEZVOUS__SEEN__INIT;

        answer.group = seen.group = (char *) group;
        expect(call(peer, MESSAGE_ANSWER, &answer), GRPC_OK, ""); /* to no order */
        answer.id = 1 << 20;
        expect(call(peer, MESSAGE_ANSWER, &answer), GRPC_OK, ""); /* to none that there was */
        seen.ranks = list;
        seen.n_ranks = 1;
        for (uint32_t world = 1; world < 3; world++) { /* nothing runs yet; nor in another world */
                seen.world = world;
                rank.rank = 7;
                expect(call(peer, MESSAGE_SEEN, &seen), GRPC_OK, "");
        }
}

static void who_belongs_to_the_job_is_taken(void **state)
{
        Rendezvous__Answer no = RENDEZVOUS__ANSWER__INIT;
        struct reply first = { 0 }, second = { 0 };
        Rendezvous__Proof proof;
        struct peer g1, g2;
        sd_event *loop = NULL;
        struct err err = { 0 };
        char address[64], line[200];
        int status = -1;
        pid_t manager;

        (void) state;
        manager = start_manager(address);
        assert_int_equal(loop_new(&loop, &err), 0);
        meet(&g1, loop, address);
        meet(&g2, loop, address);
        expect_refusals(&g1);
        join(&g1, "g1", 2, &first);
        greet(&g2);
        proof = prove(&g2, TOKEN, PROOF_GROUP);
        expect_no_join(&g2, offer("g1", "cpu", 2, &proof), GRPC_ALREADY_EXISTS, "has joined already");
        say_odd_things(&g1, "g1");
        join(&g2, "g2", 1, &second);
        AWAIT(&g1, first.part > 0 && second.part > 0);
        no.group = (char *) "g1"; /* in whose name nobody else answers */
        no.id = first.part;
        no.exit_code = EXIT_USAGE;
        no.message = (char *) "no such folder";
        expect(call(&g2, MESSAGE_ANSWER, &no), GRPC_UNAUTHENTICATED, "has not joined over this connection");
        expect(call(&g1, MESSAGE_ANSWER, &no), GRPC_OK, "");
        AWAIT(&g1, waitpid(manager, &status, WNOHANG) == manager);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), EXIT_FAILED);
        assert_true(log_says("SubtaskRefused: group g1 refused its subtask: no such folder", line));
        grpc_client_free(g1.client);
        grpc_client_free(g2.client);
        sd_event_unref(loop);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(who_belongs_to_the_job_is_taken) };

        return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
