/* A certificate of the authority itself and two it signs; its key is freed before anybody sees them. */
#include "io/tls/tls_keys.h"

#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define VALID_SECONDS ((time_t) 3650 * 86400)
#define CLOCKS_DIFFER 3600
#define NO_END        ((time_t) 253402300799) /* RFC 5280 4.1.2.5: 99991231235959Z */

struct maker {
        time_t from, until;
        gnutls_x509_crt_t ca;
        gnutls_x509_privkey_t ca_key;
};

static int make_key(gnutls_x509_privkey_t *ret)
{
        int r = gnutls_x509_privkey_init(ret);

        return r < 0 ? r
                     : gnutls_x509_privkey_generate(*ret, GNUTLS_PK_ECDSA,
                                                    GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
}

/* What all certificates have; RFC 5280 wants serial numbers that do not repeat. */
static int begin(const struct maker *m, gnutls_x509_privkey_t key, const char *name, gnutls_x509_crt_t *ret)
{
        unsigned char serial[16] = { 0 };
        int r = gnutls_x509_crt_init(ret);

        if (r >= 0)
                r = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));
        serial[0] &= 0x7f;
        if (r >= 0)
                r = gnutls_x509_crt_set_version(*ret, 3);
        if (r >= 0)
                r = gnutls_x509_crt_set_serial(*ret, serial, sizeof(serial));
        if (r >= 0)
                r = gnutls_x509_crt_set_activation_time(*ret, m->from);
        if (r >= 0)
                r = gnutls_x509_crt_set_expiration_time(*ret, m->until);
        if (r >= 0)
                r = gnutls_x509_crt_set_dn_by_oid(*ret, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                                  (unsigned) strlen(name));
        return r < 0 ? r : gnutls_x509_crt_set_key(*ret, key);
}

/* Whoever trusts two authorities of one name tells them apart by their keys (RFC 5280 4.2.1.1, 4.2.1.2). */
static int set_key_ids(gnutls_x509_crt_t certificate, gnutls_x509_crt_t issuer)
{
        unsigned char own[64], of_issuer[64];
        size_t own_bytes = sizeof(own), issuer_bytes = sizeof(of_issuer);
        int r = gnutls_x509_crt_get_key_id(certificate, 0, own, &own_bytes);

        if (r >= 0)
                r = gnutls_x509_crt_set_subject_key_id(certificate, own, own_bytes);
        if (r >= 0)
                r = gnutls_x509_crt_get_key_id(issuer, 0, of_issuer, &issuer_bytes);
        return r < 0 ? r : gnutls_x509_crt_set_authority_key_id(certificate, of_issuer, issuer_bytes);
}

static int export(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key, char **ret)
{
        gnutls_datum_t pem = { NULL, 0 };
        int r = certificate != NULL ? gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &pem)
                                    : gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem);

        if (r >= 0) {
                *ret = strndup((const char *) pem.data, pem.size);
                r = *ret == NULL ? GNUTLS_E_MEMORY_ERROR : 0;
        }
        gnutls_free(pem.data);
        return r;
}

static int make_ca(struct maker *m, struct tls_keys *ret)
{
        int r = make_key(&m->ca_key);

        if (r >= 0)
                r = begin(m, m->ca_key, "remuda job", &m->ca);
        if (r >= 0)
                r = gnutls_x509_crt_set_basic_constraints(m->ca, 1, 0);
        if (r >= 0)
                r = gnutls_x509_crt_set_key_usage(m->ca, GNUTLS_KEY_KEY_CERT_SIGN);
        if (r >= 0)
                r = set_key_ids(m->ca, m->ca);
        if (r >= 0)
                r = gnutls_x509_crt_sign2(m->ca, m->ca, m->ca_key, GNUTLS_DIG_SHA256, 0);
        return r < 0 ? r : export(m->ca, NULL, &ret->ca);
}

static int set_purpose(gnutls_x509_crt_t certificate, const struct tls_keys_purpose *purpose)
{
        int r = 0;

        for (size_t i = 0; i < TLS_KEYS_NAMES && purpose->names[i] != NULL && r >= 0; i++)
                r = gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_DNSNAME, purpose->names[i],
                                                         (unsigned) strlen(purpose->names[i]),
                                                         i == 0 ? GNUTLS_FSAN_SET : GNUTLS_FSAN_APPEND);
        if (r >= 0 && purpose->serves)
                r = gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0);
        if (r >= 0 && purpose->calls)
                r = gnutls_x509_crt_set_key_purpose_oid(certificate, GNUTLS_KP_TLS_WWW_CLIENT, 0);
        return r;
}

static int make_pair(const struct maker *m, const struct tls_keys_purpose *purpose, struct tls_keys_pair *ret)
{
        gnutls_x509_crt_t certificate = NULL;
        gnutls_x509_privkey_t key = NULL;
        int r = make_key(&key);

        if (r >= 0)
                r = begin(m, key, purpose->names[0], &certificate);
        if (r >= 0)
                r = gnutls_x509_crt_set_basic_constraints(certificate, 0, -1);
        if (r >= 0)
                r = gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE);
        if (r >= 0)
                r = set_purpose(certificate, purpose);
        if (r >= 0)
                r = set_key_ids(certificate, m->ca);
        if (r >= 0)
                r = gnutls_x509_crt_sign2(certificate, m->ca, m->ca_key, GNUTLS_DIG_SHA256, 0);
        if (r >= 0)
                r = export(certificate, NULL, &ret->certificate);
        if (r >= 0)
                r = export(NULL, key, &ret->key);
        if (certificate != NULL)
                gnutls_x509_crt_deinit(certificate);
        if (key != NULL)
                gnutls_x509_privkey_deinit(key);
        return r;
}

int tls_keys_make(const struct tls_keys_purpose purposes[TLS_KEYS_PAIRS], uint64_t now_usec,
                  struct tls_keys *ret, struct err *err)
{
        time_t now = (time_t) (now_usec / 1000000);
        struct maker m = { .from = now - CLOCKS_DIFFER, .until = now + VALID_SECONDS };
        int r;

        if (now_usec == TLS_KEYS_ALWAYS)
                m = (struct maker){ .from = 0, .until = NO_END };

        *ret = (struct tls_keys){ 0 };
        r = make_ca(&m, ret);
        for (size_t i = 0; i < TLS_KEYS_PAIRS && r >= 0; i++)
                r = make_pair(&m, &purposes[i], &ret->pairs[i]);
        if (m.ca != NULL)
                gnutls_x509_crt_deinit(m.ca);
        if (m.ca_key != NULL)
                gnutls_x509_privkey_deinit(m.ca_key);
        if (r == GNUTLS_E_MEMORY_ERROR)
                return err_set(err, -ENOMEM, "no memory for TLS keys");
        return r < 0 ? err_set(err, -EIO, "TLS keys cannot be made: %s", gnutls_strerror(r)) : 0;
}

void tls_keys_free(struct tls_keys *keys)
{
        for (size_t i = 0; i < TLS_KEYS_PAIRS; i++) {
                if (keys->pairs[i].key != NULL)
                        explicit_bzero(keys->pairs[i].key, strlen(keys->pairs[i].key));
                free(keys->pairs[i].certificate);
                free(keys->pairs[i].key);
        }
        free(keys->ca);
        *keys = (struct tls_keys){ 0 };
}
