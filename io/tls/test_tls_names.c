/* Which names a certificate is good for: DNS names, also with a star, addresses, and the common name where it
 * says nothing else. Built twice, as test_tls.c is: both libraries have to agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
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

struct authority {
        gnutls_x509_privkey_t key;
        gnutls_x509_crt_t certificate;
        char *pem;
};

struct shown {
        char *certificate, *key; /* PEM */
};

static gnutls_x509_privkey_t new_key(void)
{
        gnutls_x509_privkey_t key = NULL;

        assert_int_equal(gnutls_x509_privkey_init(&key), 0);
        assert_int_equal(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
                                                      GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
                         0);
        return key;
}

static char *copy_pem(gnutls_datum_t pem)
{
        char *text = strndup((const char *) pem.data, pem.size);

        assert_non_null(text);
        gnutls_free(pem.data);
        return text;
}

static gnutls_x509_crt_t begin(gnutls_x509_privkey_t key, const char *common_name)
{
        gnutls_x509_crt_t certificate = NULL;

        assert_int_equal(gnutls_x509_crt_init(&certificate), 0);
        assert_int_equal(gnutls_x509_crt_set_version(certificate, 3), 0);
        assert_int_equal(gnutls_x509_crt_set_serial(certificate, "\1", 1), 0);
        assert_int_equal(gnutls_x509_crt_set_activation_time(
                                 certificate, (time_t) (clock_realtime_usec() / 1000000) - 3600),
                         0);
        assert_int_equal(gnutls_x509_crt_set_expiration_time(
                                 certificate, (time_t) (clock_realtime_usec() / 1000000) + 864000),
                         0);
        assert_int_equal(gnutls_x509_crt_set_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0,
                                                       common_name, (unsigned) strlen(common_name)),
                         0);
        assert_int_equal(gnutls_x509_crt_set_key(certificate, key), 0);
        return certificate;
}

static char *sign(gnutls_x509_crt_t certificate, gnutls_x509_crt_t issuer, gnutls_x509_privkey_t issuer_key)
{
        gnutls_datum_t pem;

        assert_int_equal(gnutls_x509_crt_sign2(certificate, issuer, issuer_key, GNUTLS_DIG_SHA256, 0), 0);
        assert_int_equal(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &pem), 0);
        return copy_pem(pem);
}

static struct authority make_authority(void)
{
        struct authority ca = { .key = new_key() };

        ca.certificate = begin(ca.key, "test authority");
        assert_int_equal(gnutls_x509_crt_set_basic_constraints(ca.certificate, 1, 0), 0);
        assert_int_equal(gnutls_x509_crt_set_key_usage(ca.certificate, GNUTLS_KEY_KEY_CERT_SIGN), 0);
        ca.pem = sign(ca.certificate, ca.certificate, ca.key);
        return ca;
}

static void free_authority(struct authority *ca)
{
        gnutls_x509_crt_deinit(ca->certificate);
        gnutls_x509_privkey_deinit(ca->key);
        free(ca->pem);
}

/* @bytes: of the alternative name; 0 = there is none. */
static struct shown make_shown(const struct authority *ca, const char *common_name,
                               gnutls_x509_subject_alt_name_t kind, const void *name, unsigned bytes)
{
        gnutls_x509_privkey_t key = new_key();
        gnutls_x509_crt_t certificate = begin(key, common_name);
        struct shown shown;
        gnutls_datum_t pem;

        assert_int_equal(gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0), 0);
        assert_int_equal(gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_CLIENT, 0), 0);
        assert_int_equal(gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE), 0);
        if (bytes > 0)
                assert_int_equal(
                        gnutls_x509_crt_set_subject_alt_name(certificate, kind, name, bytes, GNUTLS_FSAN_SET),
                        0);
        shown.certificate = sign(certificate, ca->certificate, ca->key);
        assert_int_equal(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem), 0);
        shown.key = copy_pem(pem);
        gnutls_x509_crt_deinit(certificate);
        gnutls_x509_privkey_deinit(key);
        return shown;
}

static void free_shown(struct shown *shown)
{
        free(shown->certificate);
        free(shown->key);
}

static int open_side(const struct authority *ca, const struct shown *shown, bool server, const char *name,
                     struct tls **ret, struct err *err)
{
        const struct tls_options options = {
                .identity = { { shown->certificate, "c" }, { shown->key, "k" }, { ca->pem, "a" } },
                .server = server,
                .name = name,
        };

        return tls_new(&options, ret, err);
}

/* clang-format off */
static const struct {
        const char *what, *common_name;
        gnutls_x509_subject_alt_name_t kind;
        const char *name;
        unsigned bytes;
        const char *good[3], *bad[5];
} certificates[] = {
        { "a DNS name",     "x.example",   GNUTLS_SAN_DNSNAME,   "a.example", 9, { "a.example", "A.Example" },   { "x.example", "b.example", "a.example.org", "a.exampl", "127.0.0.1" } },
        { "a star",         "x",           GNUTLS_SAN_DNSNAME,   "*.example.org", 13, { "a.example.org", "bb.EXAMPLE.org" }, { "example.org", "a.b.example.org", "a.example.com", "a.sample.org", "org" } },
        { "an address",     "x",           GNUTLS_SAN_IPADDRESS, "\177\0\0\1", 4,   { "127.0.0.1" },            { "127.0.0.2", "::1", "a.example" } },
        { "a long address", "x",           GNUTLS_SAN_IPADDRESS, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16, { "::1", "0:0::1" }, { "::2", "127.0.0.1", "a.example" } },
        { "a common name",  "a.example",   GNUTLS_SAN_DNSNAME,   NULL, 0,      { "a.example" },                  { "b.example", "example" } },
};
/* clang-format on */

static void a_server_has_its_name_by_its_certificate(void **state)
{
        struct authority ca = make_authority();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(certificates); i++) {
                struct shown shown = make_shown(&ca, certificates[i].common_name, certificates[i].kind,
                                                certificates[i].name, certificates[i].bytes);

                for (size_t k = 0; k < ARRAY_SIZE(certificates[i].good); k++) {
                        struct tls *tls = NULL;
                        struct err err = { 0 };

                        if (certificates[i].good[k] != NULL &&
                            open_side(&ca, &shown, true, certificates[i].good[k], &tls, &err) < 0)
                                fail_msg("%s, %s: %s", certificates[i].what, certificates[i].good[k],
                                         err.msg);
                        tls_free(tls);
                }
                for (size_t k = 0; k < ARRAY_SIZE(certificates[i].bad); k++) {
                        struct tls *tls = NULL;
                        struct err err = { 0 };

                        if (certificates[i].bad[k] != NULL &&
                            (open_side(&ca, &shown, true, certificates[i].bad[k], &tls, &err) != -EINVAL ||
                             strstr(err.msg, "does not have the name") == NULL))
                                fail_msg("%s, %s: %s", certificates[i].what, certificates[i].bad[k], err.msg);
                        assert_null(tls);
                }
                free_shown(&shown);
        }
        free_authority(&ca);
}

/* Both sides turn by turn. Return: the bytes that came through. */
static ssize_t greet(struct transport *server, struct transport *client)
{
        uint8_t bytes[16];
        bool said = false;

        for (unsigned i = 0; i < 40; i++) {
                ssize_t n;

                if (!said)
                        said = client->write(client, (const uint8_t *) "hello", 5) == 5;
                n = server->read(server, bytes, sizeof(bytes));
                if (n > 0)
                        return n;
                (void) client->read(client, bytes, sizeof(bytes));
        }
        return 0;
}

/* An address is no name that a client may ask for (RFC 6066 3): it is compared all the same. */
static void a_client_calls_by_address_too(void **state)
{
        static const struct {
                const char *name;
                size_t of; /* whose certificate the server shows */
                bool through;
        } calls[] = {
                { "127.0.0.1", 2, true }, { "127.0.0.9", 2, false }, { "::1", 3, true }, { "::1", 0, false }
        };
        struct authority ca = make_authority();
        struct shown client_shown = make_shown(&ca, "client", GNUTLS_SAN_DNSNAME, "client", 6);

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
                size_t of = calls[i].of;
                struct shown shown = make_shown(&ca, certificates[of].common_name, certificates[of].kind,
                                                certificates[of].name, certificates[of].bytes);
                struct tls *server_tls = NULL, *client_tls = NULL;
                struct transport *server, *client;
                int fds[2];

                assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
                assert_int_equal(open_side(&ca, &shown, true, certificates[of].good[0], &server_tls, NULL),
                                 0);
                assert_int_equal(open_side(&ca, &client_shown, false, calls[i].name, &client_tls, NULL), 0);
                server = tls_wrap(server_tls, fds[0]);
                client = tls_wrap(client_tls, fds[1]);
                assert_true(server != NULL && client != NULL);
                if (greet(server, client) != (calls[i].through ? 5 : 0) ||
                    (strstr(client->why, "does not have the name") != NULL) == calls[i].through)
                        fail_msg("%s: '%s', '%s'", calls[i].name, client->why, server->why);
                client->free(client);
                server->free(server);
                tls_free(client_tls);
                tls_free(server_tls);
                close_p(&fds[0]);
                close_p(&fds[1]);
                free_shown(&shown);
        }
        free_shown(&client_shown);
        free_authority(&ca);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_server_has_its_name_by_its_certificate),
                cmocka_unit_test(a_client_calls_by_address_too),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
