/* The rules of TLS that the programs rely on, on a socket pair. Built twice: test_tls with GnuTLS, and
 * test_tls_static with io/static/tls.c, which remuda-launch has in its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "io/tls/tls.h"
#include "io/tls/tls_keys.h"

#define NAME       "manager.example"
#define GROUP_NAME "group.example"
#define TEN_YEARS  (UINT64_C(3650) * 86400 * 1000000)
#define LONG_BYTES 200000

static struct tls_keys keys, others, old, future, always;
static struct tls_keys unsaid; /* pair 0 says nothing of what it is for, pair 1 serves */

/* Of every authority, as of a job: pair 0 serves (and calls), pair 1 calls. */
static void make(const char *name, uint64_t now, struct tls_keys *ret)
{
        const struct tls_keys_purpose purposes[] = { { { name, "second.example" }, true, true },
                                                     { { GROUP_NAME }, false, true } };

        assert_int_equal(tls_keys_make(purposes, now, ret, NULL), 0);
}

static int make_keys(void **state)
{
        uint64_t now = clock_realtime_usec();
        const struct tls_keys_purpose none[] = { { { NAME }, false, false }, { { NAME }, true, false } };

        (void) state;
        make(NAME, now, &keys);
        make("other.example", now, &others);
        make(NAME, now - 2 * TEN_YEARS, &old);
        make(NAME, now + TEN_YEARS, &future);
        make(NAME, TLS_KEYS_ALWAYS, &always);
        assert_int_equal(tls_keys_make(none, now, &unsaid, NULL), 0);
        return 0;
}

static int free_keys(void **state)
{
        (void) state;
        tls_keys_free(&keys);
        tls_keys_free(&others);
        tls_keys_free(&old);
        tls_keys_free(&future);
        tls_keys_free(&always);
        tls_keys_free(&unsaid);
        return 0;
}

/* What keys' pair of this number shows, to those of the CA of `trust`. */
static struct tls_identity identity(const struct tls_keys *own, size_t pair, const struct tls_keys *trust)
{
        return (struct tls_identity){ .certificate = { own->pairs[pair].certificate, "the file 'c'" },
                                      .key = { own->pairs[pair].key, "the file 'k'" },
                                      .ca = { trust->ca, "the file 'a'" } };
}

static struct tls *open_named(struct tls_identity id, bool server, const char *name, const char *client_name)
{
        const struct tls_options options = { .identity = id,
                                             .server = server,
                                             .name = name,
                                             .name_hint = "see --name",
                                             .client_name = client_name,
                                             .peer = server ? "group" : "manager",
                                             .authority = "this job's CA" };
        struct tls *tls = NULL;
        struct err err = { 0 };

        if (tls_new(&options, &tls, &err) < 0)
                fail_msg("%s", err.msg);
        return tls;
}

static struct tls *open_side(struct tls_identity id, bool server, const char *name)
{
        return open_named(id, server, name, NULL);
}

struct end {
        struct tls *tls;
        struct transport *transport;
        int fd;
        const char *to_write;
        size_t to_write_bytes;
        char read[LONG_BYTES];
        size_t read_bytes;
        bool over;
};

struct pair {
        struct end server, client;
};

static struct pair *open_pair(struct tls *server, struct tls *client)
{
        struct pair *p = calloc(1, sizeof(*p));
        int fds[2];

        assert_non_null(p);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        p->server = (struct end){ .tls = server, .fd = fds[0] };
        p->client = (struct end){ .tls = client, .fd = fds[1] };
        if (server != NULL)
                p->server.transport = tls_wrap(server, fds[0]);
        if (client != NULL)
                p->client.transport = tls_wrap(client, fds[1]);
        return p;
}

static void close_end(struct end *end)
{
        if (end->transport != NULL)
                end->transport->free(end->transport);
        tls_free(end->tls);
        close_p(&end->fd);
}

static void close_pair(struct pair *p)
{
        close_end(&p->client);
        close_end(&p->server);
        free(p);
}

static bool drive(struct end *end)
{
        ssize_t n;
        bool moved = false;

        if (end->transport == NULL || end->over)
                return false;
        if (end->to_write_bytes > 0) {
                n = end->transport->write(end->transport, (const uint8_t *) end->to_write,
                                          end->to_write_bytes);
                if (n > 0) {
                        end->to_write += n;
                        end->to_write_bytes -= (size_t) n;
                        moved = true;
                }
        }
        n = end->transport->read(end->transport, (uint8_t *) end->read + end->read_bytes,
                                 sizeof(end->read) - end->read_bytes);
        if (n > 0)
                end->read_bytes += (size_t) n;
        end->over = n != -EAGAIN && n <= 0;
        if (end->over) /* as its owner would */
                (void) shutdown(end->fd, SHUT_RDWR);
        return moved || n > 0 || end->over;
}

/* Both sides turn by turn, until nothing moves any more. */
static void talk(struct pair *p)
{
        for (unsigned idle = 0; idle < 20;) {
                bool client = drive(&p->client), server = drive(&p->server);

                idle = client || server ? 0 : idle + 1;
        }
}

static void say(struct end *end, const char *bytes, size_t size_bytes)
{
        end->to_write = bytes;
        end->to_write_bytes = size_bytes;
}

static bool says(const struct end *end, const char *words)
{
        if (strstr(end->transport->why, words) != NULL)
                return true;
        print_error("not '%s' but '%s'\n", words, end->transport->why);
        return false;
}

static time_t wall_clock;

static time_t read_wall_clock(time_t *ret)
{
        if (ret != NULL)
                *ret = wall_clock;
        return wall_clock;
}

/* The keys of a job go with its Secret, and its nodes' clocks are nobody's business. */
static void keys_for_always_serve_whatever_the_clock_says(void **state)
{
        static const time_t clocks[] = { 86400, 315532800 /* 1980 */, 4102444800 /* 2100 */ };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
                struct pair *p;

                wall_clock = clocks[i];
                gnutls_global_set_time_function(read_wall_clock);
                p = open_pair(open_side(identity(&always, 0, &always), true, NAME),
                              open_side(identity(&always, 1, &always), false, NAME));
                say(&p->client, "hello", 5);
                talk(p);
                assert_memory_equal(p->server.read, "hello", 5);
                assert_false(p->client.over || p->server.over);
                close_pair(p);
        }
        gnutls_global_set_time_function(time);
}

static void both_sides_talk_once_they_trust_each_other(void **state)
{
        struct pair *p = open_pair(open_side(identity(&keys, 0, &keys), true, NAME),
                                   open_side(identity(&keys, 1, &keys), false, NAME));
        CLEANUP(free_p) char *much = malloc(LONG_BYTES);

        (void) state;
        memset(much, 'x', LONG_BYTES);
        say(&p->client, "hello", 5);
        say(&p->server, much, LONG_BYTES - 1);
        talk(p);
        assert_int_equal(p->server.read_bytes, 5);
        assert_memory_equal(p->server.read, "hello", 5);
        assert_int_equal(p->client.read_bytes, LONG_BYTES - 1);
        assert_memory_equal(p->client.read, much, LONG_BYTES - 1);
        assert_false(p->client.over || p->server.over);
        close_pair(p);
}

static void an_end_that_was_announced_is_quiet(void **state)
{
        struct pair *p = open_pair(open_side(identity(&keys, 0, &keys), true, NAME),
                                   open_side(identity(&keys, 1, &keys), false, NAME));

        (void) state;
        say(&p->client, "hello", 5);
        talk(p);
        p->client.transport->free(p->client.transport);
        p->client.transport = NULL;
        talk(p);
        assert_true(p->server.over);
        assert_string_equal(p->server.transport->why, "");
        assert_false(p->server.transport->refused);
        close_pair(p);
}

/* What was decrypted and not yet taken is no event of the socket's. */
static void what_is_left_in_the_tunnel_is_known(void **state)
{
        struct pair *p = open_pair(open_side(identity(&keys, 0, &keys), true, NAME),
                                   open_side(identity(&keys, 1, &keys), false, NAME));
        uint8_t bytes[8];

        (void) state;
        assert_false(p->server.transport->pending(p->server.transport));
        talk(p);
        assert_false(p->server.transport->pending(p->server.transport));
        assert_int_equal(p->client.transport->write(p->client.transport, (const uint8_t *) "hello", 5), 5);
        assert_int_equal(p->server.transport->read(p->server.transport, bytes, 2), 2);
        assert_true(p->server.transport->pending(p->server.transport));
        assert_int_equal(p->server.transport->read(p->server.transport, bytes, sizeof(bytes)), 3);
        assert_false(p->server.transport->pending(p->server.transport));
        close_pair(p);
}

static void a_reader_that_is_slow_is_waited_for(void **state)
{
        struct pair *p = open_pair(open_side(identity(&keys, 0, &keys), true, NAME),
                                   open_side(identity(&keys, 1, &keys), false, NAME));
        CLEANUP(free_p) uint8_t *much = calloc(1, LONG_BYTES);
        size_t written = 0;
        ssize_t n;

        (void) state;
        assert_non_null(much);
        talk(p);
        while ((n = p->server.transport->write(p->server.transport, much, 8000)) > 0)
                written += (size_t) n;
        assert_int_equal(n, -EAGAIN);
        assert_true(p->server.transport->wants_write);
        for (unsigned idle = 0; idle < 20 && written > p->client.read_bytes;) {
                p->client.read_bytes = p->client.read_bytes > LONG_BYTES / 2 ? 0 : p->client.read_bytes;
                idle = drive(&p->client) ? 0 : idle + 1;
        }
        assert_int_equal(p->server.transport->write(p->server.transport, much, 8000), 8000);
        assert_false(p->client.over || p->server.over);
        close_pair(p);
}

static void a_server_that_leaves_at_once_is_named(void **state)
{
        struct pair *p = open_pair(NULL, open_side(identity(&keys, 1, &keys), false, NAME));

        (void) state;
        (void) drive(&p->client); /* which greets it */
        assert_int_equal(shutdown(p->server.fd, SHUT_RDWR), 0);
        talk(p);
        assert_true(p->client.over && p->client.transport->refused);
        assert_true(says(&p->client, "the manager does not speak TLS"));
        p->client.over = false; /* and asked once more it has nothing else to say */
        talk(p);
        assert_true(p->client.over);
        assert_int_equal(p->client.transport->write(p->client.transport, (const uint8_t *) "x", 1), -EPROTO);
        close_pair(p);
}

static void a_server_of_another_ca_is_refused(void **state)
{
        struct pair *p = open_pair(open_side(identity(&others, 0, &others), true, "other.example"),
                                   open_side(identity(&keys, 1, &keys), false, "other.example"));

        (void) state;
        say(&p->client, "secret", 6);
        talk(p);
        assert_true(p->client.over && p->client.transport->refused);
        assert_true(says(&p->client, "the manager's certificate is not of this job's CA"));
        assert_true(p->server.over && p->server.transport->refused);
        assert_true(says(&p->server, "the group refuses this side's certificate"));
        assert_int_equal(p->server.read_bytes, 0);
        close_pair(p);
}

static void a_client_of_another_ca_is_refused_and_told(void **state)
{
        struct tls_identity stranger = identity(&others, 1, &others);
        CLEANUP(free_p) char *both = malloc(strlen(keys.ca) + strlen(others.ca) + 1);
        struct pair *p;

        (void) state;
        (void) stpcpy(stpcpy(both, keys.ca), others.ca); /* it believes the server */
        stranger.ca.text = both;
        p = open_pair(open_side(identity(&keys, 0, &keys), true, NAME), open_side(stranger, false, NAME));
        say(&p->client, "let me in", 9);
        talk(p);
        assert_true(p->server.over && p->server.transport->refused);
        assert_true(says(&p->server, "the group's certificate is not of this job's CA"));
        assert_int_equal(p->server.read_bytes, 0);
        assert_true(p->client.over && p->client.transport->refused);
        assert_true(says(&p->client, "the manager refuses this side's certificate"));
        close_pair(p);
}

static void who_leaves_at_once_is_not_worth_a_word(void **state)
{
        struct pair *p = open_pair(open_side(identity(&keys, 0, &keys), true, NAME), NULL);

        (void) state;
        assert_int_equal(shutdown(p->client.fd, SHUT_RDWR), 0);
        talk(p);
        assert_true(p->server.over && !p->server.transport->refused);
        close_pair(p);
}

static void a_server_of_another_name_is_refused(void **state)
{
        struct pair *p = open_pair(open_side(identity(&keys, 0, &keys), true, NAME),
                                   open_side(identity(&keys, 1, &keys), false, "three.example"));

        (void) state;
        talk(p);
        assert_true(p->client.over && p->client.transport->refused);
        assert_true(says(&p->client, "does not have the name 'three.example'; see --name"));
        close_pair(p);
}

static void a_client_that_speaks_plainly_is_told_in_its_way(void **state)
{
        struct pair *p = open_pair(open_side(identity(&keys, 0, &keys), true, NAME), NULL);
        unsigned char answer[16];

        (void) state;
        assert_int_equal(write(p->client.fd, "PRI * HTTP/2.0", 14), 14);
        talk(p);
        assert_true(p->server.over && p->server.transport->refused);
        assert_true(says(&p->server, "the group does not speak TLS"));
        assert_int_equal(read(p->client.fd, answer, sizeof(answer)), 7);
        assert_int_equal(answer[0], 0x15); /* an alert */
        close_pair(p);
}

static void a_server_that_speaks_plainly_is_recognised(void **state)
{
        struct pair *p = open_pair(NULL, open_side(identity(&keys, 1, &keys), false, NAME));

        (void) state;
        assert_int_equal(write(p->server.fd, "\0\0\6\4\0\0\0\0\0\0\3\0\0\0\144", 15), 15); /* SETTINGS */
        talk(p);
        assert_true(p->client.over && p->client.transport->refused);
        assert_true(says(&p->client, "the manager does not speak TLS"));
        close_pair(p);
}

static void who_asks_for_the_other_name_needs_no_certificate(void **state)
{
        const struct tls_options options = { .identity = identity(&keys, 0, &keys),
                                             .server = true,
                                             .name = NAME,
                                             .other = identity(&others, 0, &others),
                                             .other_name = "second.example" };
        struct tls_identity nobody = { .ca = { others.ca, "the file 'a'" } };
        struct tls *server = NULL;
        struct pair *p;

        (void) state;
        assert_int_equal(tls_new(&options, &server, NULL), 0);
        p = open_pair(server, open_side(nobody, false, "second.example"));
        say(&p->client, "hello", 5);
        talk(p);
        assert_int_equal(p->server.read_bytes, 5);
        assert_false(p->server.transport->named);
        assert_true(p->client.transport->named);
        assert_memory_equal(p->server.transport->binding, p->client.transport->binding,
                            TRANSPORT_BINDING_BYTES);
        close_pair(p);
        assert_int_equal(tls_new(&options, &server, NULL), 0);
        p = open_pair(server, open_side(identity(&keys, 1, &keys), false, NAME));
        say(&p->client, "hello", 5);
        talk(p);
        assert_int_equal(p->server.read_bytes, 5);
        assert_true(p->server.transport->named);
        close_pair(p);
        nobody.ca.text = keys.ca;
        assert_int_equal(tls_new(&options, &server, NULL), 0);
        p = open_pair(server, open_side(nobody, false, NAME));
        say(&p->client, "hello", 5);
        talk(p);
        assert_int_equal(p->server.read_bytes, 0);
        assert_true(says(&p->server, "the client's certificate is missing"));
        close_pair(p);
}

/* A group's key at the manager's place, on a server that does not ask itself whether it may: what is shown to
 * those who ask for another name is not judged by tls_new(). */
static void a_key_made_for_clients_serves_nobody(void **state)
{
        const struct tls_options impostor = { .identity = identity(&keys, 0, &keys),
                                              .server = true,
                                              .other = identity(&keys, 1, &keys),
                                              .other_name = NAME };
        struct tls *server = NULL;
        struct pair *p;

        (void) state;
        assert_int_equal(tls_new(&impostor, &server, NULL), 0);
        p = open_pair(server, open_side(identity(&keys, 1, &keys), false, NAME));
        say(&p->client, "token", 5);
        talk(p);
        assert_int_equal(p->server.read_bytes, 0);
        assert_true(p->client.over && p->client.transport->refused);
        /* mbedTLS does not even show it */
        assert_true(strstr(p->client.transport->why, "certificate is not made for a server") != NULL ||
                    strstr(p->client.transport->why, "refuses this side's certificate") != NULL);
        close_pair(p);
}

static void a_key_made_for_servers_calls_nobody(void **state)
{
        struct tls *tls = NULL;

        (void) state;
        assert_int_equal(
                tls_new(&(struct tls_options){ .identity = identity(&unsaid, 1, &unsaid), .name = NAME },
                        &tls, NULL),
                -EINVAL);
        assert_null(tls);
}

static void a_client_has_the_groups_name_or_the_servers(void **state)
{
        struct pair *p = open_pair(open_named(identity(&keys, 0, &keys), true, NAME, GROUP_NAME),
                                   open_side(identity(&keys, 1, &keys), false, NAME));

        (void) state;
        say(&p->client, "hello", 5);
        talk(p);
        assert_int_equal(p->server.read_bytes, 5);
        close_pair(p);
        p = open_pair(open_named(identity(&keys, 0, &keys), true, NAME, "somebody.example"),
                      open_side(identity(&keys, 0, &keys), false, NAME)); /* mpirun's start agent */
        say(&p->client, "hello", 5);
        talk(p);
        assert_int_equal(p->server.read_bytes, 5);
        close_pair(p);
        p = open_pair(open_named(identity(&keys, 0, &keys), true, NAME, "somebody.example"),
                      open_side(identity(&keys, 1, &keys), false, NAME));
        say(&p->client, "hello", 5);
        talk(p);
        assert_int_equal(p->server.read_bytes, 0);
        assert_true(says(&p->server, "the group's certificate does not have the name 'somebody.example'"));
        close_pair(p);
}

static void refused(struct tls_identity id, bool server, const char *name, const char *words)
{
        const struct tls_options options = { .identity = id, .server = server, .name = name };
        struct tls *tls = NULL;
        struct err err = { 0 };

        assert_int_equal(tls_new(&options, &tls, &err), -EINVAL);
        assert_null(tls);
        if (strstr(err.msg, words) == NULL)
                fail_msg("not '%s' but '%s'", words, err.msg);
}

static void what_every_peer_would_refuse_is_refused_at_once(void **state)
{
        struct tls_identity id = identity(&keys, 0, &keys);

        (void) state;
        refused(identity(&old, 0, &old), false, NAME, "the file 'c' has expired");
        refused(identity(&future, 0, &future), false, NAME, "the file 'c' is not valid yet");
        refused(identity(&keys, 0, &others), false, NAME, "the file 'c' is not of the CA (the file 'a')");
        refused(identity(&keys, 0, &keys), true, "three.example", "does not have the name 'three.example'");
        refused(identity(&keys, 1, &keys), true, GROUP_NAME, "is not made for a server");
        refused(identity(&unsaid, 0, &unsaid), true, NAME, "is not made for a server");
        refused(identity(&unsaid, 1, &unsaid), false, NAME, "is not made for a client");
        id.key.text = keys.pairs[1].key;
        refused(id, false, NAME, "the file 'k' is not the key of the file 'c'");
        id = identity(&keys, 0, &keys);
        id.certificate.text = "nothing";
        refused(id, false, NAME, "the file 'c'");
        id = identity(&keys, 0, &keys);
        id.ca.text = "nothing";
        refused(id, false, NAME, "the file 'a' holds no certificate");
}

static void a_pair_may_be_checked_alone(void **state)
{
        struct tls_identity id = identity(&keys, 0, &keys);

        (void) state;
        id.ca.text = NULL;
        assert_int_equal(tls_check(&id, NULL), 0);
        id.key.text = keys.pairs[1].key;
        assert_int_equal(tls_check(&id, NULL), -EINVAL);
        id = identity(&old, 0, &old); /* when it is valid is for tls_new() */
        assert_int_equal(tls_check(&id, NULL), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(both_sides_talk_once_they_trust_each_other),
                cmocka_unit_test(an_end_that_was_announced_is_quiet),
                cmocka_unit_test(what_is_left_in_the_tunnel_is_known),
                cmocka_unit_test(a_reader_that_is_slow_is_waited_for),
                cmocka_unit_test(a_server_that_leaves_at_once_is_named),
                cmocka_unit_test(a_server_of_another_ca_is_refused),
                cmocka_unit_test(keys_for_always_serve_whatever_the_clock_says),
                cmocka_unit_test(a_client_of_another_ca_is_refused_and_told),
                cmocka_unit_test(who_leaves_at_once_is_not_worth_a_word),
                cmocka_unit_test(a_server_of_another_name_is_refused),
                cmocka_unit_test(a_client_that_speaks_plainly_is_told_in_its_way),
                cmocka_unit_test(a_server_that_speaks_plainly_is_recognised),
                cmocka_unit_test(who_asks_for_the_other_name_needs_no_certificate),
                cmocka_unit_test(a_key_made_for_clients_serves_nobody),
                cmocka_unit_test(a_key_made_for_servers_calls_nobody),
                cmocka_unit_test(a_client_has_the_groups_name_or_the_servers),
                cmocka_unit_test(what_every_peer_would_refuse_is_refused_at_once),
                cmocka_unit_test(a_pair_may_be_checked_alone),
        };

        return cmocka_run_group_tests(tests, make_keys, free_keys);
}
