/* Our client at our server, and both against peers that break the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/grpc/grpc_address.h"
#include "io/grpc/grpc_client.h"
#include "io/grpc/grpc_server.h"

#define MESSAGE_MAX 100000

struct pair {
        sd_event *loop;
        char directory[64], address[128];
        struct grpc_server *server;
        struct grpc_client *client;
        struct grpc_call *kept; /* what the server keeps */
        unsigned idle, closed;
};

struct outcome {
        unsigned messages, done;
        size_t bytes;
        char last[64];
        enum grpc_status status;
        char sentence[GRPC_SENTENCE_BYTES];
        struct grpc_client *free_on_message; /* what a callback may do to its client */
};

static void echo(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size)
{
        (void) userdata;
        grpc_call_reply(call, message, size);
}

static void refuse(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size)
{
        (void) userdata;
        (void) message;
        (void) size;
        grpc_call_finish(call, GRPC_NOT_FOUND, "100% of nothing");
}

static void forget(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size)
{
        (void) userdata;
        (void) call;
        (void) message;
        (void) size;
}

static void on_idle(void *userdata, struct grpc_call *call)
{
        struct pair *pair = userdata;

        (void) call;
        pair->idle++;
}

static void on_closed(void *userdata, struct grpc_call *call)
{
        struct pair *pair = userdata;

        assert_ptr_equal(call, pair->kept);
        pair->kept = NULL;
        pair->closed++;
}

static void keep(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size)
{
        struct pair *pair = userdata;

        pair->kept = call;
        grpc_call_keep(call, on_idle, on_closed, pair);
        if (size > 0)
                assert_int_equal(grpc_call_send(call, message, size), 0);
}

static const struct grpc_method methods[] = { { "/t/Echo", echo },
                                              { "/t/Refuse", refuse },
                                              { "/t/Forget", forget },
                                              { "/t/Keep", keep },
                                              { NULL, NULL } };

static void on_message(void *userdata, const uint8_t *message, size_t size)
{
        struct outcome *outcome = userdata;

        outcome->messages++;
        outcome->bytes = size;
        (void) text_format(outcome->last, sizeof(outcome->last), "%.*s", (int) (size < 63 ? size : 63),
                           (const char *) message);
        if (outcome->free_on_message != NULL)
                grpc_client_free(TAKE(outcome->free_on_message));
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct outcome *outcome = userdata;

        outcome->done++;
        outcome->status = status;
        (void) text_copy(outcome->sentence, sizeof(outcome->sentence), sentence);
}

static void start_server(struct pair *pair, const char *address)
{
        struct grpc_server_options options = { .address = address,
                                               .methods = methods,
                                               .userdata = pair,
                                               .message_max_bytes = MESSAGE_MAX,
                                               .connections_max = 3 };
        struct err err = { 0 };

        if (grpc_server_new(pair->loop, &options, &pair->server, &err) < 0)
                fail_msg("%s", err.msg);
}

static struct grpc_client *new_client(struct pair *pair, const char *address)
{
        struct grpc_client_options options = { .address = address, .message_max_bytes = MESSAGE_MAX };
        struct grpc_client *client = NULL;

        assert_int_equal(grpc_client_new(pair->loop, &options, &client, NULL), 0);
        return client;
}

static void pair_begin(struct pair *pair)
{
        memset(pair, 0, sizeof(*pair));
        (void) text_copy(pair->directory, sizeof(pair->directory), "/tmp/remuda-grpc-XXXXXX");
        assert_non_null(mkdtemp(pair->directory));
        (void) text_format(pair->address, sizeof(pair->address), "unix:%s/s", pair->directory);
        assert_true(sd_event_new(&pair->loop) >= 0);
        start_server(pair, pair->address);
        pair->client = new_client(pair, pair->address);
}

static void pair_end(struct pair *pair)
{
        grpc_client_free(pair->client);
        grpc_server_free(pair->server);
        assert_int_equal(rmdir(pair->directory), 0); /* no file is left */
        sd_event_unref(pair->loop);
}

/* For at least so long, and so often that a busy machine's pauses do not matter. */
static void turn(struct pair *pair, unsigned usec)
{
        uint64_t until = 0, now;
        unsigned turns = 0;

        (void) sd_event_now(pair->loop, CLOCK_MONOTONIC, &until);
        do {
                assert_true(sd_event_run(pair->loop, usec > 0 ? 1000 : 0) >= 0);
                (void) sd_event_now(pair->loop, CLOCK_MONOTONIC, &now);
                turns++;
        } while (usec > 1 && (now < until + usec || turns < 40));
}

static struct grpc_client_call *call(struct grpc_client *client, const char *path, const void *message,
                                     size_t size, uint64_t timeout, struct outcome *outcome)
{
        struct grpc_client_handlers handlers = { .on_message = on_message,
                                                 .on_done = on_done,
                                                 .userdata = outcome };
        struct grpc_client_call *handle = NULL;

        memset(outcome, 0, sizeof(*outcome));
        assert_int_equal(grpc_client_call(client, path, message, size, timeout, &handlers, &handle), 0);
        assert_int_equal(outcome->done, 0); /* never from inside */
        return handle;
}

static void finish(struct pair *pair, const struct outcome *outcome)
{
        for (unsigned i = 0; i < 5000 && outcome->done == 0; i++)
                turn(pair, 1);
        assert_int_equal(outcome->done, 1);
}

static void calls_and_answers(void **state)
{
        CLEANUP(free_p) char *large = malloc(MESSAGE_MAX + 1);
        struct outcome o;
        struct pair pair;

        (void) state;
        assert_non_null(large);
        memset(large, 'x', MESSAGE_MAX + 1);
        pair_begin(&pair);
        for (unsigned i = 0; i < 200; i++) {
                (void) call(pair.client, "/t/Echo", "hello", 5, 0, &o);
                finish(&pair, &o);
                assert_int_equal(o.status, GRPC_OK);
                assert_int_equal(o.messages, 1);
                assert_string_equal(o.last, "hello");
        }
        assert_int_equal(grpc_server_connections(pair.server), 1);
        (void) call(pair.client, "/t/Echo", NULL, 0, 0, &o);
        finish(&pair, &o);
        assert_true(o.status == GRPC_OK && o.messages == 1 && o.bytes == 0);
        (void) call(pair.client, "/t/Echo", large, MESSAGE_MAX, 0, &o);
        finish(&pair, &o);
        assert_true(o.status == GRPC_OK && o.bytes == MESSAGE_MAX);
        (void) call(pair.client, "/t/Echo", large, MESSAGE_MAX + 1, 0, &o);
        finish(&pair, &o);
        assert_int_equal(o.status, GRPC_RESOURCE_EXHAUSTED);
        (void) call(pair.client, "/t/Refuse", "x", 1, 0, &o);
        finish(&pair, &o);
        assert_int_equal(o.status, GRPC_NOT_FOUND);
        assert_string_equal(o.sentence, "100% of nothing");
        (void) call(pair.client, "/t/Nothing", "x", 1, 0, &o);
        finish(&pair, &o);
        assert_int_equal(o.status, GRPC_UNIMPLEMENTED);
        (void) call(pair.client, "/t/Forget", "x", 1, 0, &o);
        finish(&pair, &o);
        assert_int_equal(o.status, GRPC_INTERNAL);
        pair_end(&pair);
}

static void deadlines(void **state)
{
        struct outcome o;
        struct pair pair;

        (void) state;
        pair_begin(&pair);
        (void) call(pair.client, "/t/Keep", NULL, 0, 20000, &o);
        finish(&pair, &o);
        assert_int_equal(o.status, GRPC_DEADLINE_EXCEEDED);
        turn(&pair, 30000);
        assert_null(pair.kept); /* the server let go too */
        assert_int_equal(pair.closed, 1);
        pair_end(&pair);
}

static void streams(void **state)
{
        struct grpc_client_call *handle;
        struct outcome o;
        struct pair pair;

        (void) state;
        pair_begin(&pair);
        handle = call(pair.client, "/t/Keep", "one", 3, 0, &o);
        for (unsigned i = 0; i < 100 && o.messages == 0; i++)
                turn(&pair, 1000);
        assert_string_equal(o.last, "one");
        assert_int_equal(pair.idle, 1);
        assert_int_equal(grpc_call_send(pair.kept, (const uint8_t *) "two", 3), 0);
        assert_int_equal(grpc_call_send(pair.kept, (const uint8_t *) "three", 5), -EBUSY);
        turn(&pair, 10000);
        assert_string_equal(o.last, "two");
        assert_false(grpc_call_busy(pair.kept));
        grpc_client_cancel(handle);
        turn(&pair, 10000);
        assert_int_equal(pair.closed, 1);
        assert_int_equal(o.done, 0); /* nothing follows a cancel */

        (void) call(pair.client, "/t/Keep", "again", 5, 0, &o);
        turn(&pair, 10000);
        assert_int_equal(grpc_call_send(pair.kept, (const uint8_t *) "last", 4), 0);
        grpc_call_finish(pair.kept, GRPC_ABORTED, "enough");
        pair.kept = NULL;
        finish(&pair, &o);
        assert_true(o.status == GRPC_ABORTED && o.messages == 2);
        assert_string_equal(o.last, "last");
        pair_end(&pair);
}

static void a_slow_reader_holds_one_message(void **state)
{
        CLEANUP(free_p) uint8_t *large = calloc(1, MESSAGE_MAX);
        struct outcome o;
        struct pair pair;
        unsigned sent = 0;
        int stuck;
        bool connecting;

        (void) state;
        pair_begin(&pair);
        (void) call(pair.client, "/t/Keep", "x", 1, 0, &o);
        turn(&pair, 10000);
        stuck = grpc_address_connect(pair.address, &connecting, NULL); /* never says or reads a thing */
        assert_true(stuck >= 0);
        /* the client's window is 64 KiB and it is in the same loop: without turns nothing is read */
        while (grpc_call_send(pair.kept, large, MESSAGE_MAX) == 0)
                sent++;
        assert_int_equal(sent, 1);
        turn(&pair, 20000);
        assert_int_equal(o.bytes, MESSAGE_MAX);
        assert_int_equal(grpc_call_send(pair.kept, large, MESSAGE_MAX), 0);
        turn(&pair, 20000);
        assert_int_equal(o.messages, 3);
        (void) close(stuck);
        pair_end(&pair);
        assert_int_equal(pair.closed, 1);
}

static void answers_as_the_server_goes(void **state)
{
        struct outcome o;
        struct pair pair;

        (void) state;
        pair_begin(&pair);
        (void) call(pair.client, "/t/Keep", NULL, 0, 0, &o);
        turn(&pair, 10000);
        grpc_call_finish(pair.kept, GRPC_ABORTED, "enough");
        grpc_server_free(TAKE(pair.server));
        finish(&pair, &o);
        assert_int_equal(o.status, GRPC_ABORTED);
        assert_string_equal(o.sentence, "enough");
        pair_end(&pair);
}

static void the_server_goes_and_comes(void **state)
{
        struct outcome o, late;
        struct pair pair;

        (void) state;
        pair_begin(&pair);
        (void) call(pair.client, "/t/Keep", NULL, 0, 0, &o);
        turn(&pair, 10000);
        grpc_server_free(TAKE(pair.server));
        assert_int_equal(pair.closed, 1);
        finish(&pair, &o);
        assert_true(o.status == GRPC_UNAVAILABLE || o.status == GRPC_CANCELLED);
        (void) call(pair.client, "/t/Echo", "x", 1, 0, &late);
        finish(&pair, &late);
        assert_int_equal(late.status, GRPC_UNAVAILABLE);
        assert_non_null(strstr(late.sentence, pair.directory)); /* whom it could not reach */
        start_server(&pair, pair.address);
        (void) call(pair.client, "/t/Echo", "x", 1, 0, &late);
        finish(&pair, &late);
        assert_int_equal(late.status, GRPC_OK);
        pair_end(&pair);
}

static void a_retired_server_serves_whom_it_has(void **state)
{
        struct outcome o;
        struct pair pair;
        struct grpc_server *old;

        (void) state;
        pair_begin(&pair);
        (void) call(pair.client, "/t/Echo", "x", 1, 0, &o);
        finish(&pair, &o);
        assert_true(grpc_server_listening(pair.server));
        grpc_server_retire(pair.server);
        assert_false(grpc_server_listening(pair.server));
        old = pair.server;
        start_server(&pair, pair.address);
        (void) call(pair.client, "/t/Echo", "y", 1, 0, &o);
        finish(&pair, &o);
        assert_int_equal(o.status, GRPC_OK);
        assert_int_equal(grpc_server_connections(old), 1);
        assert_int_equal(grpc_server_connections(pair.server), 0);
        grpc_server_free(old);
        turn(&pair, 5000);
        assert_true(grpc_server_listening(pair.server)); /* the old one took its own file only */
        pair_end(&pair);
}

static void the_socket_is_ours_alone(void **state)
{
        char path[128];
        struct stat status;
        struct pair pair;
        struct grpc_server_options again = { .methods = methods };
        struct grpc_server *second = NULL;
        struct err err = { 0 };

        (void) state;
        pair_begin(&pair);
        (void) text_format(path, sizeof(path), "%s/s", pair.directory);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        again.address = pair.address;
        assert_int_equal(grpc_server_new(pair.loop, &again, &second, &err), -EADDRINUSE);
        assert_non_null(strstr(err.msg, path));
        again.address = "unix:/nonexistent/s";
        assert_int_equal(grpc_server_new(pair.loop, &again, &second, &err), -ENOENT);
        again.address = "unix:/tmp/"
                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                        "aaaaaaaaaaaaaaaaaaaaaaaaa";
        assert_int_equal(grpc_server_new(pair.loop, &again, &second, &err), -ENAMETOOLONG);
        again.address = "somewhere";
        assert_int_equal(grpc_server_new(pair.loop, &again, &second, &err), -EINVAL);
        pair_end(&pair);
}

static void over_tcp_too(void **state)
{
        struct grpc_server *local;
        struct outcome o;
        struct pair pair;

        (void) state;
        pair_begin(&pair);
        local = pair.server;
        start_server(&pair, "127.0.0.1:0");
        grpc_client_free(pair.client);
        pair.client = new_client(&pair, grpc_server_address(pair.server));
        (void) call(pair.client, "/t/Echo", "far", 3, 1000000, &o);
        finish(&pair, &o);
        assert_int_equal(o.status, GRPC_OK);
        assert_string_equal(o.last, "far");
        grpc_server_free(TAKE(pair.server));
        turn(&pair, 5000);
        (void) call(pair.client, "/t/Echo", "far", 3, 1000000, &o);
        finish(&pair, &o);
        assert_int_equal(o.status, GRPC_UNAVAILABLE);
        pair.server = local;
        pair_end(&pair);
}

static void callbacks_may_free_their_client(void **state)
{
        struct grpc_client *client;
        struct outcome o;
        struct pair pair;

        (void) state;
        pair_begin(&pair);
        client = new_client(&pair, pair.address);
        (void) call(client, "/t/Keep", "x", 1, 0, &o);
        o.free_on_message = client;
        turn(&pair, 20000);
        assert_int_equal(o.messages, 1);
        assert_int_equal(o.done, 0);
        assert_int_equal(pair.closed, 1);
        pair_end(&pair);
}

static void too_many_connections_push_out_the_idle(void **state)
{
        struct grpc_client *others[4];
        struct outcome busy, o;
        struct pair pair;

        (void) state;
        pair_begin(&pair); /* three at most */
        (void) call(pair.client, "/t/Keep", "x", 1, 0, &busy);
        turn(&pair, 10000);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                others[i] = new_client(&pair, pair.address);
                (void) call(others[i], "/t/Echo", "x", 1, 0, &o);
                finish(&pair, &o);
                assert_int_equal(o.status, GRPC_OK);
        }
        assert_int_equal(grpc_server_connections(pair.server), 3);
        assert_int_equal(busy.done, 0); /* a stream is not idle */
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                grpc_client_free(others[i]);
        turn(&pair, 5000);
        assert_int_equal(grpc_server_connections(pair.server), 1);
        pair_end(&pair);
}

static void keep_alive_finds_the_dead(void **state)
{
        struct grpc_client_options options = { .keepalive_usec = 10000, .keepalive_timeout_usec = 5000000 };
        struct grpc_client *client;
        struct outcome o;
        struct pair pair;
        char address[128];
        int silent;

        (void) state;
        pair_begin(&pair);
        options.address = pair.address;
        assert_int_equal(grpc_client_new(pair.loop, &options, &client, NULL), 0);
        (void) call(client, "/t/Keep", "x", 1, 0, &o);
        turn(&pair, 100000); /* several PINGs, all answered */
        assert_int_equal(o.done, 0);
        grpc_client_free(client);

        (void) text_format(address, sizeof(address), "unix:%s/silent", pair.directory);
        silent = grpc_address_listen(address, 0600, NULL);
        options.keepalive_timeout_usec = 10000;
        options.address = address;
        assert_int_equal(grpc_client_new(pair.loop, &options, &client, NULL), 0);
        (void) call(client, "/t/Keep", "x", 1, 0, &o);
        finish(&pair, &o);
        assert_int_equal(o.status, GRPC_UNAVAILABLE);
        assert_non_null(strstr(o.sentence, "keep-alive"));
        grpc_client_free(client);
        (void) close(silent);
        (void) unlink(address + strlen("unix:"));
        pair_end(&pair);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(calls_and_answers),
                cmocka_unit_test(deadlines),
                cmocka_unit_test(streams),
                cmocka_unit_test(a_slow_reader_holds_one_message),
                cmocka_unit_test(answers_as_the_server_goes),
                cmocka_unit_test(the_server_goes_and_comes),
                cmocka_unit_test(a_retired_server_serves_whom_it_has),
                cmocka_unit_test(the_socket_is_ours_alone),
                cmocka_unit_test(over_tcp_too),
                cmocka_unit_test(callbacks_may_free_their_client),
                cmocka_unit_test(too_many_connections_push_out_the_idle),
                cmocka_unit_test(keep_alive_finds_the_dead),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
