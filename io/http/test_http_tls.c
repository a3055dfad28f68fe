/* Who gets in over TLS: our client at our server, with certificates made by openssl. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/http/http_client.h"
#include "io/http/http_server.h"
#include "io/loop.h"
#include "tests/support/http_child.h"

/* Our server and our client, with certificates made by openssl: a CA, a server and a client it signed, and a
 * client that another CA signed. Both ends share a loop. */
struct fixture {
        sd_event *loop;
        struct http_server *server;
        struct http_client *client;
        char folder[64];
        const char *client_names;
        const char *asked; /* the path */
        bool done;
        struct http_call_result result;
        char body[300];
};

static const char script[] = "cd %s && exec >log 2>&1 && set -e\n"
                             "ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
                             "-nodes -days 2 -subj /CN=$1 -keyout $1.key -out $1.crt; }\n"
                             "cert() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
                             "-subj /CN=$2 -keyout $2.key -out $2.csr;\n"
                             "  printf 'subjectAltName=IP:127.0.0.1%%s\\n' ${4-,DNS:extender.remuda} "
                             ">$2.ext; [ -z \"$3\" ] || printf 'extendedKeyUsage=%%s\\n' $3 >>$2.ext;\n"
                             "  openssl x509 -req -in $2.csr -CA $1.crt -CAkey $1.key -CAcreateserial -days "
                             "2 -extfile $2.ext -out $2.crt; }\n"
                             "ca good; ca bad; cert good server serverAuth; cert good client clientAuth; "
                             "cert good unsaid; cert bad stranger clientAuth\n"
                             "cert bad next serverAuth; cert good common clientAuth ''; cat good.crt bad.crt "
                             ">both.crt\n";

static char *path(struct fixture *f, const char *name)
{
        char *whole = malloc(200);

        (void) text_format(whole, 200, "%s/%s", f->folder, name);
        return whole;
}

static int make_certificates(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));
        char commands[2048];

        (void) text_copy(f->folder, sizeof(f->folder), "/tmp/remuda-tls-XXXXXX");
        if (mkdtemp(f->folder) == NULL)
                return -1;
        (void) text_format(commands, sizeof(commands), script, f->folder);
        f->asked = "/";
        *state = f;
        return system(commands);
}

static int remove_certificates(void **state)
{
        struct fixture *f = *state;
        char command[100];

        (void) text_format(command, sizeof(command), "rm -rf %s", f->folder);
        free(f);
        return system(command);
}

static void hello(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        (void) request;
        http_reply_text(reply, 200, "text/plain", "hello");
}

static void is_certified(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        http_reply_text(reply, 200, "text/plain", http_request_is_certified(request) ? "yes" : "no");
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/certified", .handler = is_certified },
        { .method = "GET", .path = "/", .handler = hello },
        { .method = "POST", .path = "/", .handler = hello },
        { 0 }
};

static int serve(struct fixture *f, const char *address, const char *certificate, const char *key,
                 const char *ca, struct err *err)
{
        CLEANUP(free_p) char *certificate_file = path(f, certificate);
        CLEANUP(free_p) char *key_file = path(f, key);
        CLEANUP(free_p) char *ca_file = ca != NULL ? path(f, ca) : NULL;
        struct http_server_options options = { .address = address,
                                               .loopback_only = true,
                                               .tls = { { certificate_file, key_file, ca_file },
                                                        f->client_names },
                                               .routes = routes };

        if (f->loop == NULL)
                assert_int_equal(loop_new(&f->loop, NULL), 0);
        return http_server_new(f->loop, &options, &f->server, err);
}

static void stop(struct fixture *f)
{
        http_client_free(f->client);
        http_server_free(f->server);
        sd_event_unref(f->loop);
        f->client = NULL;
        f->server = NULL;
        f->loop = NULL;
}

static void on_done(void *userdata, const struct http_call_result *result)
{
        struct fixture *f = userdata;

        f->done = true;
        f->result = *result;
        (void) text_copy(f->body, sizeof(f->body), result->body);
}

/* The connection is kept for the next question. */
static void ask_again(struct fixture *f)
{
        const struct http_call_options call = {
                .method = "GET", .path = f->asked, .timeout_usec = 5000000, .done = on_done, .userdata = f
        };

        f->done = false;
        assert_int_equal(http_call_start(f->client, &call, NULL), 0);
        while (!f->done)
                (void) sd_event_run(f->loop, 1000000);
}

static void ask(struct fixture *f, const char *ca, const char *who, const char *server_name)
{
        CLEANUP(free_p) char *ca_file = ca != NULL ? path(f, ca) : NULL;
        char certificate[200], key[200], url[64];
        struct http_client_options options = {
                .base_url = url, .ca_file = ca_file, .insecure = ca == NULL, .tls_server_name = server_name
        };

        (void) text_format(url, sizeof(url), "https://%s", http_server_address(f->server));
        (void) text_format(certificate, sizeof(certificate), "%s/%s.crt", f->folder, who != NULL ? who : "");
        (void) text_format(key, sizeof(key), "%s/%s.key", f->folder, who != NULL ? who : "");
        if (who != NULL) {
                options.certificate_file = certificate;
                options.key_file = key;
        }
        http_client_free(f->client);
        f->client = NULL;
        assert_int_equal(http_client_new(f->loop, &options, &f->client, NULL), 0);
        ask_again(f);
}

static void a_client_with_our_certificate_is_served(void **state)
{
        struct fixture *f = *state;
        struct err err = { 0 };

        assert_int_equal(serve(f, "127.0.0.1:0", "server.crt", "server.key", "good.crt", &err), 0);
        ask(f, "good.crt", "client", NULL);
        assert_int_equal(f->result.status, 200);
        assert_string_equal(f->body, "hello");
        ask(f, "good.crt", "client", "extender.remuda");
        assert_int_equal(f->result.status, 200);
        f->asked = "/certified";
        ask_again(f);
        assert_string_equal(f->body, "yes");
        f->asked = "/";
        stop(f);
}

static void others_are_refused(void **state)
{
        struct fixture *f = *state;
        struct err err = { 0 };

        assert_int_equal(serve(f, "127.0.0.1:0", "server.crt", "server.key", "good.crt", &err), 0);
        ask(f, "good.crt", NULL, NULL);
        assert_int_equal(f->result.status, 403);
        assert_non_null(strstr(f->body, "a client certificate signed by the configured CA is required"));
        ask(f, "good.crt", "stranger", NULL);
        assert_true(f->result.status != 200);
        ask(f, "bad.crt", "client", NULL); /* the client refuses the server */
        assert_int_equal(f->result.error, -EPROTO);
        ask(f, "good.crt", "client", "somebody.else");
        assert_int_equal(f->result.error, -EPROTO);
        stop(f);
}

static void a_client_shows_what_is_made_for_clients(void **state)
{
        static const char *const others[] = { "server", "unsaid" };
        struct fixture *f = *state;
        struct err err = { 0 };

        assert_int_equal(serve(f, "127.0.0.1:0", "server.crt", "server.key", "good.crt", &err), 0);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                ask(f, "good.crt", others[i], NULL);
                if (f->result.status == 200) /* 403, or the handshake ends */
                        fail_msg("%s: %u %s", others[i], f->result.status, f->body);
        }
        stop(f);
}

static void a_client_has_one_of_the_names(void **state)
{
        static const struct {
                const char *who, *names;
                unsigned status;
        } rows[] = {
                { "client", "client", 403 }, /* its common name: it has a DNS name */
                { "client", "a,extender.remuda", 200 },
                { "client", "a,b", 403 },
                { "common", "a,common", 200 },
                { "common", "commo", 403 },
                { "common", "", 403 },
                { "common", "extender.remuda", 403 },
        };
        struct fixture *f = *state;
        struct err err = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                f->client_names = rows[i].names;
                assert_int_equal(serve(f, "127.0.0.1:0", "server.crt", "server.key", "good.crt", &err), 0);
                ask(f, "good.crt", rows[i].who, NULL);
                if (f->result.status != rows[i].status)
                        fail_msg("'%s' of '%s': %u %s", rows[i].names, rows[i].who, f->result.status,
                                 f->body);
                stop(f);
        }
        f->client_names = "client";
        assert_int_equal(serve(f, "127.0.0.1:0", "server.crt", "server.key", NULL, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "give a client CA"));
        stop(f);
        f->client_names = NULL;
}

static void copy(struct fixture *f, const char *from, const char *to)
{
        char command[300];

        (void) text_format(command, sizeof(command), "cd %s && cp %s.crt %s.crt.new && mv %s.crt.new %s.crt",
                           f->folder, from, to, to, to);
        assert_int_equal(system(command), 0);
        (void) text_format(command, sizeof(command),
                           "cd %s && [ ! -f %s.key ] || { cp %s.key %s.key.new && mv %s.key.new %s.key; }",
                           f->folder, from, from, to, to, to);
        assert_int_equal(system(command), 0);
        (void) usleep(1100000); /* files are looked at once a second */
}

/* From files that may be changed. */
static void serve_copies(struct fixture *f)
{
        struct err err = { 0 };

        copy(f, "server", "served");
        copy(f, "good", "trusted");
        assert_int_equal(serve(f, "127.0.0.1:0", "served.crt", "served.key", "trusted.crt", &err), 0);
}

/* Certificate, key and CA change under a server that runs: who connects next meets the new ones. */
static void files_that_change_count_from_the_next_connection_on(void **state)
{
        struct fixture *f = *state;
        struct text page = { 0 };
        char command[200];

        serve_copies(f);
        ask(f, "good.crt", "client", NULL);
        assert_int_equal(f->result.status, 200);
        copy(f, "next", "served");
        ask(f, "bad.crt", "client", NULL);
        if (f->result.status != 200)
                fail_msg("%d %s", f->result.error, f->result.sentence);
        assert_int_equal(f->result.status, 200);
        ask(f, "good.crt", "client", NULL);
        assert_int_equal(f->result.error, -EPROTO);
        copy(f, "bad", "trusted");
        ask(f, "bad.crt", "stranger", NULL);
        assert_int_equal(f->result.status, 200);
        ask(f, "bad.crt", "client", NULL);
        assert_true(f->result.status != 200);
        (void) text_format(command, sizeof(command), "cp %s/client.crt %s/served.crt", f->folder, f->folder);
        assert_int_equal(system(command), 0); /* no pair: what was read before goes on to count */
        (void) usleep(1100000);
        ask(f, "bad.crt", "stranger", NULL);
        assert_int_equal(f->result.status, 200);
        http_server_metrics(f->server, "remuda_x_tls_certificate_expiry_seconds",
                            "remuda_x_tls_reloads_total", &page);
        assert_non_null(strstr(page.data, "remuda_x_tls_reloads_total{result=\"read\"} 2\n"));
        assert_non_null(strstr(page.data, "remuda_x_tls_reloads_total{result=\"failed\"} 1\n"));
        assert_non_null(strstr(page.data, "remuda_x_tls_certificate_expiry_seconds "));
        text_free(&page);
        stop(f);
}

/* Whom nobody trusts any more is refused also on a connection that he has, and within a second of it. */
static void a_ca_that_goes_takes_its_connections_with_it(void **state)
{
        struct fixture *f = *state;
        struct err err = { 0 };

        copy(f, "good", "trusted");
        assert_int_equal(serve(f, "127.0.0.1:0", "server.crt", "server.key", "trusted.crt", &err), 0);
        ask(f, "good.crt", "client", NULL);
        assert_int_equal(f->result.status, 200);
        copy(f, "both", "trusted");
        ask_again(f);
        assert_int_equal(f->result.status, 200);
        copy(f, "bad", "trusted");
        ask_again(f);
        assert_int_equal(f->result.status, 403);
        copy(f, "good", "trusted"); /* and by a new connection he is what he is now */
        ask_again(f);
        assert_int_equal(f->result.status, 200);
        stop(f);
}

static void a_ca_counts_also_beside_a_pair_that_is_none(void **state)
{
        struct fixture *f = *state;
        struct text page = { 0 };
        char command[200];

        serve_copies(f);
        (void) text_format(command, sizeof(command), "cp %s/client.crt %s/served.crt", f->folder, f->folder);
        assert_int_equal(system(command), 0);
        copy(f, "bad", "trusted");
        ask(f, "good.crt", "stranger", NULL);
        if (f->result.status != 200)
                fail_msg("%u %s %s", f->result.status, f->body, f->result.sentence);
        ask(f, "good.crt", "client", NULL);
        assert_true(f->result.status != 200);
        http_server_metrics(f->server, "x_expiry", "x_reloads", &page);
        assert_non_null(strstr(page.data, "x_reloads{result=\"read\"} 1\n"));
        assert_non_null(strstr(page.data, "x_reloads{result=\"failed\"} 1\n"));
        text_free(&page);
        stop(f);
}

/* In a process of its own: the other end blocks. */
static void older_than_tls_1_2_is_refused(void **state)
{
        static const struct {
                const char *version;
                bool served;
        } rows[] = { { "-tls1", false }, { "-tls1_1", false }, { "-tls1_2", true }, { "-tls1_3", true } };
        struct fixture *f = *state;
        CLEANUP(free_p) char *certificate = path(f, "server.crt");
        CLEANUP(free_p) char *key = path(f, "server.key");
        struct http_child server = http_child_start_with((struct http_server_options){
                .address = "127.0.0.1:0", .tls = { { certificate, key, NULL }, NULL } });
        char command[300];

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                (void) text_format(command, sizeof(command),
                                   "openssl s_client -connect %s %s -cipher ALL:@SECLEVEL=0 </dev/null 2>&1 "
                                   "| grep -q 'Cipher is [A-Z]'",
                                   server.address, rows[i].version);
                if ((system(command) == 0) != rows[i].served)
                        fail_msg("%s", rows[i].version);
        }
        http_child_stop(&server);
}

static void without_a_client_ca_anybody_on_loopback_is_served(void **state)
{
        struct fixture *f = *state;
        struct err err = { 0 };

        assert_int_equal(serve(f, "127.0.0.1:0", "server.crt", "server.key", NULL, &err), 0);
        ask(f, "good.crt", NULL, NULL);
        assert_int_equal(f->result.status, 200);
        f->asked = "/certified";
        ask_again(f);
        assert_string_equal(f->body, "no");
        f->asked = "/";
        stop(f);
}

static void other_machines_need_a_client_ca(void **state)
{
        struct fixture *f = *state;
        struct err err = { 0 };

        assert_int_equal(serve(f, "0.0.0.0:0", "server.crt", "server.key", NULL, &err), -EACCES);
        sd_event_unref(f->loop);
        f->loop = NULL;
        assert_int_equal(serve(f, "0.0.0.0:0", "server.crt", "server.key", "good.crt", &err), 0);
        stop(f);
}

/* A client that has said half a greeting: the library says without end that there is something to do. */
static int dial_halfway(struct fixture *f)
{
        struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        to.sin_port = htons((uint16_t) atoi(strrchr(http_server_address(f->server), ':') + 1));
        assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof(to)), 0);
        assert_int_equal(send(fd, "\x16\x03\x01\x02\x00\x01", 6, MSG_NOSIGNAL), 6);
        return fd;
}

/* What others have to say is read meanwhile, however long it is; and where nobody has, nothing turns. */
static void a_handshake_that_waits_holds_nobody_up(void **state)
{
        struct fixture *f = *state;
        struct err err = { 0 };
        size_t size = 200 << 10;
        char *asked = malloc(size + 1);
        uint64_t best_usec = UINT64_MAX, end;
        unsigned turns = 0;
        int fd;

        assert_int_equal(serve(f, "127.0.0.1:0", "server.crt", "server.key", NULL, &err), 0);
        fd = dial_halfway(f);
        memset(asked, 'a', size);
        asked[0] = '/';
        asked[size] = '\0';
        f->asked = asked;
        for (int i = 0; i < 3 && best_usec > 2000000; i++) {
                uint64_t begin = clock_monotonic_usec(), took;

                ask(f, "good.crt", NULL, NULL);
                assert_int_equal(f->result.status, 414);
                took = clock_monotonic_usec() - begin;
                best_usec = took < best_usec ? took : best_usec;
        }
        assert_in_range(best_usec, 0, 2000000);
        http_client_free(TAKE(f->client));
        for (end = clock_monotonic_usec() + 500000; clock_monotonic_usec() < end; turns++)
                (void) sd_event_run(f->loop, 500000);
        assert_in_range(turns, 1, 60); /* 1, 2, 4 ... 100 ms; thousands where none is put off */
        (void) close(fd);
        f->asked = "/";
        free(asked);
        stop(f);
}

static void broken_files_are_named(void **state)
{
        struct fixture *f = *state;
        struct err err = { 0 };
        struct http_server_options options = { .address = "127.0.0.1:0",
                                               .tls = { { NULL, NULL, "/tmp/x" }, NULL },
                                               .routes = routes };

        assert_int_equal(serve(f, "127.0.0.1:0", "server.crt", "client.key", NULL, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "client.key"));
        assert_int_equal(serve(f, "127.0.0.1:0", "missing.crt", "server.key", NULL, &err), -ENOENT);
        assert_non_null(strstr(err.msg, "missing.crt"));
        assert_int_equal(serve(f, "127.0.0.1:0", "server.crt", "server.key", "log", &err), -EINVAL);
        assert_non_null(strstr(err.msg, "holds no certificate"));
        assert_int_equal(http_server_new(f->loop, &options, &f->server, &err), -EINVAL);
        assert_int_equal(serve(f, "127.0.0.1:0", "client.crt", "client.key", NULL, &err), -EINVAL);
        assert_non_null(
                strstr(err.msg, "client.crt': is not made for servers (extended key usage serverAuth)"));
        sd_event_unref(f->loop);
        f->loop = NULL;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_client_with_our_certificate_is_served),
                cmocka_unit_test(others_are_refused),
                cmocka_unit_test(a_client_shows_what_is_made_for_clients),
                cmocka_unit_test(a_client_has_one_of_the_names),
                cmocka_unit_test(files_that_change_count_from_the_next_connection_on),
                cmocka_unit_test(a_ca_that_goes_takes_its_connections_with_it),
                cmocka_unit_test(a_ca_counts_also_beside_a_pair_that_is_none),
                cmocka_unit_test(older_than_tls_1_2_is_refused),
                cmocka_unit_test(without_a_client_ca_anybody_on_loopback_is_served),
                cmocka_unit_test(other_machines_need_a_client_ca),
                cmocka_unit_test(a_handshake_that_waits_holds_nobody_up),
                cmocka_unit_test(broken_files_are_named),
        };

        return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
