/* TLS where the library itself refuses: every call of GnuTLS that can fail fails once, in keys that are made
 * and in two sides that greet each other. Nothing of it lets anybody in, and it is said what happened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/clock.h"
#include "io/tls/tls.h"
#include "io/tls/tls_keys.h"

#define NAME "manager.example"

static unsigned calls, refused; /* the number of the call that is refused; 0 = none */
static int answer;              /* of the refused call */
static const char *refused_name;

static bool refuses(const char *name)
{
        if (++calls != refused)
                return false;
        refused_name = name;
        return true;
}

/* For our code alone (the linker's --wrap, see the Makefile): the library's own calls are not touched. */
#define REFUSABLE(name, parameters, arguments)                                                               \
        int __wrap_##name parameters;                                                                        \
        int __real_##name parameters;                                                                        \
        int __wrap_##name parameters                                                                         \
        {                                                                                                    \
                return refuses(#name) ? answer : __real_##name arguments;                                    \
        }

/* clang-format off */
REFUSABLE(gnutls_x509_privkey_init, (gnutls_x509_privkey_t *a), (a))
REFUSABLE(gnutls_x509_privkey_generate, (gnutls_x509_privkey_t a, gnutls_pk_algorithm_t b, unsigned c, unsigned d), (a, b, c, d))
REFUSABLE(gnutls_x509_privkey_export2, (gnutls_x509_privkey_t a, gnutls_x509_crt_fmt_t b, gnutls_datum_t *c), (a, b, c))
REFUSABLE(gnutls_rnd, (gnutls_rnd_level_t a, void *b, size_t c), (a, b, c))
REFUSABLE(gnutls_x509_crt_init, (gnutls_x509_crt_t *a), (a))
REFUSABLE(gnutls_x509_crt_set_version, (gnutls_x509_crt_t a, unsigned b), (a, b))
REFUSABLE(gnutls_x509_crt_set_serial, (gnutls_x509_crt_t a, const void *b, size_t c), (a, b, c))
REFUSABLE(gnutls_x509_crt_set_activation_time, (gnutls_x509_crt_t a, time_t b), (a, b))
REFUSABLE(gnutls_x509_crt_set_expiration_time, (gnutls_x509_crt_t a, time_t b), (a, b))
REFUSABLE(gnutls_x509_crt_set_dn_by_oid, (gnutls_x509_crt_t a, const char *b, unsigned c, const void *d, unsigned e), (a, b, c, d, e))
REFUSABLE(gnutls_x509_crt_set_key, (gnutls_x509_crt_t a, gnutls_x509_privkey_t b), (a, b))
REFUSABLE(gnutls_x509_crt_get_key_id, (gnutls_x509_crt_t a, unsigned b, unsigned char *c, size_t *d), (a, b, c, d))
REFUSABLE(gnutls_x509_crt_set_subject_key_id, (gnutls_x509_crt_t a, const void *b, size_t c), (a, b, c))
REFUSABLE(gnutls_x509_crt_set_authority_key_id, (gnutls_x509_crt_t a, const void *b, size_t c), (a, b, c))
REFUSABLE(gnutls_x509_crt_set_basic_constraints, (gnutls_x509_crt_t a, unsigned b, int c), (a, b, c))
REFUSABLE(gnutls_x509_crt_set_key_usage, (gnutls_x509_crt_t a, unsigned b), (a, b))
REFUSABLE(gnutls_x509_crt_set_key_purpose_oid, (gnutls_x509_crt_t a, const void *b, unsigned c), (a, b, c))
REFUSABLE(gnutls_x509_crt_set_subject_alt_name, (gnutls_x509_crt_t a, gnutls_x509_subject_alt_name_t b, const void *c, unsigned d, unsigned e), (a, b, c, d, e))
REFUSABLE(gnutls_x509_crt_sign2, (gnutls_x509_crt_t a, gnutls_x509_crt_t b, gnutls_x509_privkey_t c, gnutls_digest_algorithm_t d, unsigned e), (a, b, c, d, e))
REFUSABLE(gnutls_x509_crt_export2, (gnutls_x509_crt_t a, gnutls_x509_crt_fmt_t b, gnutls_datum_t *c), (a, b, c))
REFUSABLE(gnutls_x509_crt_import, (gnutls_x509_crt_t a, const gnutls_datum_t *b, gnutls_x509_crt_fmt_t c), (a, b, c))
REFUSABLE(gnutls_x509_crt_list_import, (gnutls_x509_crt_t *a, unsigned *b, const gnutls_datum_t *c, gnutls_x509_crt_fmt_t d, unsigned e), (a, b, c, d, e))
REFUSABLE(gnutls_x509_crt_list_verify, (const gnutls_x509_crt_t *a, unsigned b, const gnutls_x509_crt_t *c, unsigned d, const gnutls_x509_crl_t *e, unsigned f, unsigned g, unsigned *h), (a, b, c, d, e, f, g, h))
REFUSABLE(gnutls_certificate_allocate_credentials, (gnutls_certificate_credentials_t *a), (a))
REFUSABLE(gnutls_certificate_set_x509_key_mem, (gnutls_certificate_credentials_t a, const gnutls_datum_t *b, const gnutls_datum_t *c, gnutls_x509_crt_fmt_t d), (a, b, c, d))
REFUSABLE(gnutls_certificate_set_x509_trust_mem, (gnutls_certificate_credentials_t a, const gnutls_datum_t *b, gnutls_x509_crt_fmt_t c), (a, b, c))
REFUSABLE(gnutls_certificate_verify_peers2, (gnutls_session_t a, unsigned *b), (a, b))
REFUSABLE(gnutls_init, (gnutls_session_t *a, unsigned b), (a, b))
REFUSABLE(gnutls_priority_set_direct, (gnutls_session_t a, const char *b, const char **c), (a, b, c))
REFUSABLE(gnutls_credentials_set, (gnutls_session_t a, gnutls_credentials_type_t b, void *c), (a, b, c))
REFUSABLE(gnutls_alpn_set_protocols, (gnutls_session_t a, const gnutls_datum_t *b, unsigned c, unsigned d), (a, b, c, d))
REFUSABLE(gnutls_handshake, (gnutls_session_t a), (a))
/* clang-format on */

static const struct tls_keys_purpose purposes[] = { { { NAME, "second.example" }, true, true },
                                                    { { "group.example" }, false, true } };

static void begin(unsigned call, int code)
{
        calls = 0;
        refused = call;
        answer = code;
        refused_name = NULL;
}

static void keys_are_made_whole_or_not_at_all(void **state)
{
        static const struct {
                int code, r;
                const char *says;
        } kinds[] = { { GNUTLS_E_INTERNAL_ERROR, -EIO, "TLS keys cannot be made: " },
                      { GNUTLS_E_MEMORY_ERROR, -ENOMEM, "no memory for TLS keys" } };

        (void) state;
        for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
                for (unsigned call = 1;; call++) {
                        struct tls_keys keys;
                        struct err err = { 0 };
                        int r;

                        begin(call, kinds[k].code);
                        r = tls_keys_make(purposes, clock_realtime_usec(), &keys, &err);
                        tls_keys_free(&keys);
                        if (refused_name == NULL) {
                                if (r < 0)
                                        fail_msg("%s", err.msg);
                                assert_true(call > 40);
                                break;
                        }
                        if (r != kinds[k].r || strstr(err.msg, kinds[k].says) == NULL)
                                fail_msg("%s: %d '%s'", refused_name, r, err.msg);
                }
}

static struct tls *open_side(const struct tls_keys *keys, bool server, struct err *err)
{
        const struct tls_keys_pair *own = &keys->pairs[server ? 0 : 1];
        const struct tls_options options = {
                .identity = { { own->certificate, "c" }, { own->key, "k" }, { keys->ca, "a" } },
                .server = server,
                .name = NAME,
        };
        struct tls *tls = NULL;

        return tls_new(&options, &tls, err) < 0 ? NULL : tls;
}

/* Return: the bytes that came through. */
static size_t greet(struct transport *server, struct transport *client)
{
        uint8_t bytes[16];
        bool said = false;

        for (unsigned i = 0; i < 40; i++) {
                ssize_t n;

                if (!said)
                        said = client->write(client, (const uint8_t *) "hello", 5) == 5;
                n = server->read(server, bytes, sizeof(bytes));
                if (n > 0)
                        return (size_t) n;
                (void) client->read(client, bytes, sizeof(bytes));
        }
        return 0;
}

/* Return: was a call refused? */
static bool talk(const struct tls_keys *keys, unsigned call, int code)
{
        struct transport *server = NULL, *client = NULL;
        struct err err = { 0 };
        struct tls *server_tls, *client_tls = NULL;
        size_t came = 0;
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
        begin(call, code);
        server_tls = open_side(keys, true, &err);
        if (server_tls != NULL)
                client_tls = open_side(keys, false, &err);
        if (client_tls != NULL) {
                server = tls_wrap(server_tls, fds[0]);
                client = tls_wrap(client_tls, fds[1]);
        } else
                assert_true(err.msg[0] != '\0');
        if (server != NULL && client != NULL)
                came = greet(server, client);
        if (refused_name == NULL)
                assert_int_equal(came, 5);
        else if (came != 0)
                fail_msg("call %u, %s, was refused, and %zu bytes came through", call, refused_name, came);
        else if (server != NULL && client != NULL)
                assert_true(server->why[0] != '\0' || client->why[0] != '\0');
        if (client != NULL)
                client->free(client);
        if (server != NULL)
                server->free(server);
        tls_free(client_tls);
        tls_free(server_tls);
        (void) close(fds[0]);
        (void) close(fds[1]);
        return refused_name != NULL;
}

static void nobody_is_let_in_by_a_library_that_fails(void **state)
{
        static const int codes[] = { GNUTLS_E_INTERNAL_ERROR, GNUTLS_E_NO_CERTIFICATE_FOUND,
                                     GNUTLS_E_RECORD_OVERFLOW };
        struct tls_keys keys;

        (void) state;
        begin(0, 0);
        assert_int_equal(tls_keys_make(purposes, clock_realtime_usec(), &keys, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
                unsigned call = 1;

                while (talk(&keys, call, codes[i]))
                        call++;
                assert_true(call > 15);
        }
        tls_keys_free(&keys);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(keys_are_made_whole_or_not_at_all),
                cmocka_unit_test(nobody_is_let_in_by_a_library_that_fails),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
