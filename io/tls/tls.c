/* TLS with GnuTLS, for every program but the static remuda-launch. */
#include "io/tls/tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/text.h"
#include "io/tls/tls_certificate.h"
#include "io/tls/tls_reason.h"

#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
#define CHAIN_MAX  16

struct tls {
        gnutls_certificate_credentials_t own, other;
        char other_name[TLS_NAME_BYTES];
        struct tls_reason_words words;
};

struct tunnel {
        struct transport base;
        const struct tls *tls;
        gnutls_session_t session;
        int fd;
        bool begun, open, heard; /* the first byte was looked at; the handshake is over; something was read */
        bool nameless;           /* a client that asked for the other name shows no certificate */
        enum tls_reason reason;  /* why trust() refused the peer */
};

static gnutls_datum_t datum(const struct tls_pem *pem)
{
        return (gnutls_datum_t){ (unsigned char *) pem->text,
                                 pem->text == NULL ? 0 : (unsigned) strlen(pem->text) };
}

/* Return: 0; -ENOMEM; -EINVAL and which of the three is to blame. */
static int load(const struct tls_identity *id, gnutls_certificate_credentials_t *ret, struct err *err)
{
        gnutls_datum_t certificate = datum(&id->certificate), key = datum(&id->key), ca;
        gnutls_certificate_credentials_t credentials;
        int r = gnutls_certificate_allocate_credentials(&credentials);

        if (r < 0)
                return err_set(err, -ENOMEM, "no memory for TLS");
        if (id->certificate.text != NULL)
                r = gnutls_certificate_set_x509_key_mem(credentials, &certificate, &key, GNUTLS_X509_FMT_PEM);
        if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
                r = err_set(err, -EINVAL, "%s is not the key of %s", id->key.from, id->certificate.from);
        else if (r < 0)
                r = err_set(err, -EINVAL, "%s with %s: %s", id->certificate.from, id->key.from,
                            gnutls_strerror(r));
        if (r == 0 && id->ca.text != NULL) {
                ca = datum(&id->ca);
                if (gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM) <= 0)
                        r = err_set(err, -EINVAL, "%s holds no certificate", id->ca.from);
        }
        if (r < 0)
                gnutls_certificate_free_credentials(credentials);
        else
                *ret = credentials;
        return r;
}

int tls_check(const struct tls_identity *identity, struct err *err)
{
        gnutls_certificate_credentials_t credentials;
        int r = load(identity, &credentials, err);

        if (r == 0)
                gnutls_certificate_free_credentials(credentials);
        return r;
}

static enum tls_reason reason_of(unsigned status)
{
        if ((status & GNUTLS_CERT_EXPIRED) != 0)
                return TLS_REASON_EXPIRED;
        if ((status & GNUTLS_CERT_NOT_ACTIVATED) != 0)
                return TLS_REASON_NOT_YET_VALID;
        if ((status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNATURE_FAILURE)) != 0)
                return TLS_REASON_UNTRUSTED;
        return (status & GNUTLS_CERT_UNEXPECTED_OWNER) != 0 ? TLS_REASON_OTHER_NAME : TLS_REASON_UNFIT;
}

static void free_chain(gnutls_x509_crt_t *chain, unsigned count)
{
        for (unsigned i = 0; i < count; i++)
                gnutls_x509_crt_deinit(chain[i]);
}

/* What every peer would refuse is better refused here, where it is known where it is from. */
static int judge_own(const struct tls *tls, const struct tls_options *o, struct err *err)
{
        gnutls_datum_t certificate = datum(&o->identity.certificate), ca = datum(&o->identity.ca);
        gnutls_x509_crt_t chain[CHAIN_MAX], trusted[CHAIN_MAX];
        unsigned count = CHAIN_MAX, trusted_count = CHAIN_MAX, status = 0;
        int r = gnutls_x509_crt_list_import(chain, &count, &certificate, GNUTLS_X509_FMT_PEM, 0);

        if (r < 0)
                return err_set(err, -EINVAL, "%s: %s", o->identity.certificate.from, gnutls_strerror(r));
        r = gnutls_x509_crt_list_import(trusted, &trusted_count, &ca, GNUTLS_X509_FMT_PEM, 0);
        if (r < 0)
                trusted_count = 0;
        r = gnutls_x509_crt_list_verify(chain, count, trusted, trusted_count, NULL, 0, 0, &status);
        if (r < 0 || status != 0)
                r = tls_reason_own(&tls->words, o, reason_of(status), err);
        else if (!tls_certificate_is_for(chain[0], o->server))
                r = tls_reason_own(&tls->words, o, TLS_REASON_PURPOSE, err);
        else if (o->server && o->name != NULL && gnutls_x509_crt_check_hostname(chain[0], o->name) == 0)
                r = tls_reason_own(&tls->words, o, TLS_REASON_OTHER_NAME, err);
        free_chain(chain, count);
        free_chain(trusted, trusted_count);
        return r;
}

int tls_new(const struct tls_options *options, struct tls **ret, struct err *err)
{
        struct tls *tls = calloc(1, sizeof(*tls));
        int r;

        if (tls == NULL)
                return err_set(err, -ENOMEM, "no memory for TLS");
        tls_reason_words_set(&tls->words, options);
        r = load(&options->identity, &tls->own, err);
        if (r == 0 && options->identity.certificate.text != NULL)
                r = judge_own(tls, options, err);
        if (r == 0 && options->other_name != NULL) {
                (void) text_copy(tls->other_name, sizeof(tls->other_name), options->other_name);
                r = load(&options->other, &tls->other, err);
        }
        if (r < 0)
                tls_free(tls);
        else
                *ret = tls;
        return r;
}

void tls_free(struct tls *tls)
{
        if (tls == NULL)
                return;
        if (tls->own != NULL)
                gnutls_certificate_free_credentials(tls->own);
        if (tls->other != NULL)
                gnutls_certificate_free_credentials(tls->other);
        free(tls);
}

/* A peer's certificate: of the CA, valid now, made for its side, and of its name. */
static enum tls_reason judge_peer(const struct tls_reason_words *words, gnutls_x509_crt_t certificate,
                                  unsigned status)
{
        if (status != 0)
                return reason_of(status);
        if (!tls_certificate_is_for(certificate, !words->server))
                return TLS_REASON_PURPOSE;
        if (words->server && words->client_name[0] == '\0')
                return TLS_REASON_NONE;
        if (gnutls_x509_crt_check_hostname(certificate, words->name) != 0 ||
            (words->server && gnutls_x509_crt_check_hostname(certificate, words->client_name) != 0))
                return TLS_REASON_NONE;
        return TLS_REASON_OTHER_NAME;
}

/* Called in the handshake. Return: 0; -1 = the peer is refused. */
static int trust(gnutls_session_t session)
{
        struct tunnel *tunnel = gnutls_session_get_ptr(session);
        unsigned count = 0, status = 0;
        const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &count);
        gnutls_x509_crt_t certificate = NULL;

        if (shown == NULL && tunnel->tls->words.server && tunnel->nameless)
                return 0;
        tunnel->reason = TLS_REASON_UNFIT;
        if (shown == NULL)
                tunnel->reason = TLS_REASON_NO_CERTIFICATE;
        else if (gnutls_certificate_verify_peers2(session, &status) == 0 &&
                 gnutls_x509_crt_init(&certificate) == 0 &&
                 gnutls_x509_crt_import(certificate, &shown[0], GNUTLS_X509_FMT_DER) == 0)
                tunnel->reason = judge_peer(&tunnel->tls->words, certificate, status);
        if (certificate != NULL)
                gnutls_x509_crt_deinit(certificate);
        tunnel->base.named = tunnel->reason == TLS_REASON_NONE;
        return tunnel->base.named ? 0 : -1;
}

static void bind_channel(struct tunnel *tunnel)
{
        unsigned count = 0;
        const gnutls_datum_t *server = tunnel->tls->words.server
                                               ? gnutls_certificate_get_ours(tunnel->session)
                                               : gnutls_certificate_get_peers(tunnel->session, &count);
        struct sha256 hash;

        if (server == NULL)
                return;
        sha256_init(&hash);
        sha256_update(&hash, server->data, server->size);
        sha256_final(&hash, tunnel->base.binding);
}

/* The session has failed: whose fault is it? */
static void explain(struct tunnel *tunnel, int code)
{
        const struct tls_reason_words *words = &tunnel->tls->words;

        if (tunnel->base.why[0] != '\0')
                return;
        switch (code) {
        case GNUTLS_E_CERTIFICATE_ERROR:
                tls_reason_refuse(words, tunnel->reason, &tunnel->base);
                break;
        case GNUTLS_E_NO_CERTIFICATE_FOUND:
        case GNUTLS_E_CERTIFICATE_REQUIRED:
                tls_reason_refuse(words, TLS_REASON_NO_CERTIFICATE, &tunnel->base);
                break;
        case GNUTLS_E_FATAL_ALERT_RECEIVED:
                tls_reason_refuse(words, TLS_REASON_PEER_REFUSES, &tunnel->base);
                break;
        case GNUTLS_E_UNEXPECTED_PACKET_LENGTH:
        case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
        case GNUTLS_E_RECORD_OVERFLOW:
        case GNUTLS_E_UNEXPECTED_PACKET:
                tls_reason_refuse(words, TLS_REASON_PLAIN, &tunnel->base);
                break;
        case GNUTLS_E_PREMATURE_TERMINATION:
                tls_reason_refuse(words, words->server ? TLS_REASON_LEFT : TLS_REASON_PLAIN, &tunnel->base);
                if (words->server) /* who connects and leaves is not worth a word */
                        tunnel->base.refused = (int) gnutls_handshake_get_last_out(tunnel->session) >= 0;
                break;
        default:
                tls_reason_broken(words, gnutls_strerror(code), &tunnel->base);
        }
}

static bool is_for_later(struct tunnel *tunnel, int code)
{
        if (gnutls_error_is_fatal(code) != 0)
                return false;
        tunnel->base.wants_write = gnutls_record_get_direction(tunnel->session) == 1;
        return true;
}

/* Return: 0 once the peer is known and trusted. */
static ssize_t greet(struct tunnel *tunnel)
{
        int code;

        if (tunnel->open)
                return 0;
        if (tunnel->base.why[0] != '\0' || /* refused before */
            tls_reason_is_plain(&tunnel->tls->words, tunnel->fd, &tunnel->begun, &tunnel->base))
                return -EPROTO;
        code = gnutls_handshake(tunnel->session);
        if (code < 0 && is_for_later(tunnel, code))
                return -EAGAIN;
        if (code < 0) {
                explain(tunnel, code);
                (void) gnutls_alert_send_appropriate(tunnel->session, code); /* so that the peer knows why */
                return -EPROTO;
        }
        tunnel->open = true;
        bind_channel(tunnel);
        return 0;
}

/* With TLS 1.3 a client learns only here, after its handshake, that its certificate is refused. */
static ssize_t tunnel_read(struct transport *transport, uint8_t *buffer, size_t size_bytes)
{
        struct tunnel *tunnel = (struct tunnel *) transport;
        ssize_t code = greet(tunnel);

        if (code < 0) /* 0 would be a quiet end; a broken one is named by `why` */
                return code == -EAGAIN ? code : 0;
        code = gnutls_record_recv(tunnel->session, buffer, size_bytes);
        tunnel->heard = tunnel->heard || code > 0;
        if (code >= 0)
                return code;
        if (is_for_later(tunnel, (int) code))
                return -EAGAIN;
        if (!tunnel->heard && code == GNUTLS_E_FATAL_ALERT_RECEIVED)
                explain(tunnel, (int) code);
        else if (code != GNUTLS_E_PREMATURE_TERMINATION) /* without a goodbye; HTTP/2 has its own */
                tls_reason_broken(&tunnel->tls->words, gnutls_strerror((int) code), transport);
        return 0;
}

static ssize_t tunnel_write(struct transport *transport, const uint8_t *bytes, size_t size_bytes)
{
        struct tunnel *tunnel = (struct tunnel *) transport;
        ssize_t code = greet(tunnel);

        if (code < 0)
                return code;
        code = gnutls_record_send(tunnel->session, bytes, size_bytes);
        if (code >= 0)
                return code;
        return is_for_later(tunnel, (int) code) ? -EAGAIN : -EPROTO;
}

static bool tunnel_pending(const struct transport *transport)
{
        const struct tunnel *tunnel = (const struct tunnel *) transport;

        return tunnel->open && gnutls_record_check_pending(tunnel->session) > 0;
}

static void tunnel_free(struct transport *transport)
{
        struct tunnel *tunnel = (struct tunnel *) transport;

        if (tunnel->open)
                (void) gnutls_bye(tunnel->session, GNUTLS_SHUT_WR);
        if (tunnel->session != NULL)
                gnutls_deinit(tunnel->session);
        free(tunnel);
}

/* Whoever asks for the other name is shown its certificate, and need not show one. */
static int choose_identity(gnutls_session_t session)
{
        struct tunnel *tunnel = gnutls_session_get_ptr(session);
        char name[TLS_NAME_BYTES];
        size_t size = sizeof(name);
        unsigned type = 0;

        if (gnutls_server_name_get(session, name, &size, &type, 0) < 0 || tunnel->tls->other == NULL ||
            strcmp(name, tunnel->tls->other_name) != 0)
                return 0;
        tunnel->nameless = true;
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_IGNORE);
        return gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tunnel->tls->other);
}

static int set_up(struct tunnel *tunnel)
{
        static const gnutls_datum_t protocol = { (unsigned char *) "h2", 2 };
        const struct tls_reason_words *words = &tunnel->tls->words;
        int r = gnutls_init(&tunnel->session, (words->server ? GNUTLS_SERVER : GNUTLS_CLIENT) |
                                                      GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);

        if (r >= 0)
                r = gnutls_priority_set_direct(tunnel->session, PRIORITIES, NULL);
        if (r >= 0)
                r = gnutls_credentials_set(tunnel->session, GNUTLS_CRD_CERTIFICATE, tunnel->tls->own);
        if (r >= 0)
                r = gnutls_alpn_set_protocols(tunnel->session, &protocol, 1, 0);
        if (r < 0)
                return r;
        if (words->server) {
                gnutls_certificate_server_set_request(tunnel->session, GNUTLS_CERT_REQUIRE);
                gnutls_handshake_set_post_client_hello_function(tunnel->session, choose_identity);
        } else if (tls_reason_asks(words))
                (void) gnutls_server_name_set(tunnel->session, GNUTLS_NAME_DNS, words->name,
                                              strlen(words->name));
        gnutls_session_set_verify_function(tunnel->session, trust);
        gnutls_session_set_ptr(tunnel->session, tunnel);
        gnutls_transport_set_int(tunnel->session, tunnel->fd);
        gnutls_handshake_set_timeout(tunnel->session, GNUTLS_INDEFINITE_TIMEOUT); /* the call has one */
        return 0;
}

struct transport *tls_wrap(void *tls, int fd)
{
        struct tunnel *tunnel = calloc(1, sizeof(*tunnel));

        if (tunnel == NULL)
                return NULL;
        tunnel->base = (struct transport){
                .read = tunnel_read, .write = tunnel_write, .pending = tunnel_pending, .free = tunnel_free
        };
        tunnel->tls = tls;
        tunnel->fd = fd;
        if (set_up(tunnel) >= 0)
                return &tunnel->base;
        tunnel_free(&tunnel->base);
        return NULL;
}
