/* TLS with mbedTLS: it fits into a static program of less than 2 MB, which GnuTLS does not (ADR 0050). Linked
 * into remuda-launch alone. mbedTLS 2.28 does not compare IP addresses, so names are compared here. */
#include "io/tls/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/oid.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/sha256.h"
#include "base/text.h"
#include "io/tls/tls_reason.h"

#define SAN_DNS  2 /* tags of a subject's alternative names, RFC 5280 4.2.1.6 */
#define SAN_IP   7
#define TAG_MASK 0x1f

struct identity {
        mbedtls_x509_crt own, ca;
        mbedtls_pk_context key;
};

struct tls {
        struct tls_reason_words words;
        char other_name[TLS_NAME_BYTES];
        mbedtls_entropy_context entropy;
        mbedtls_ctr_drbg_context random;
        struct identity main, other;
        mbedtls_ssl_config config;
};

struct tunnel {
        struct transport base;
        const struct tls *tls;
        int fd;
        bool begun, open; /* the first byte was looked at; the handshake is over */
        bool wrote, heard;
        mbedtls_ssl_context ssl;
};

static bool is_ip(const mbedtls_x509_buf *san, const char *name)
{
        unsigned char bytes[16];

        if (san->len == 4 && inet_pton(AF_INET, name, bytes) == 1)
                return memcmp(san->p, bytes, 4) == 0;
        return san->len == 16 && inet_pton(AF_INET6, name, bytes) == 1 && memcmp(san->p, bytes, 16) == 0;
}

static bool is_dns(const unsigned char *p, size_t length, const char *name)
{
        const char *dot = strchr(name, '.');

        if (length == strlen(name) && strncasecmp((const char *) p, name, length) == 0)
                return true;
        return length > 2 && p[0] == '*' && dot != NULL && length - 1 == strlen(dot) &&
               strncasecmp((const char *) p + 1, dot, length - 1) == 0;
}

static bool certificate_has(const mbedtls_x509_crt *certificate, const char *name)
{
        bool any = false;

        if ((certificate->ext_types & MBEDTLS_X509_EXT_SUBJECT_ALT_NAME) != 0)
                for (const mbedtls_x509_sequence *s = &certificate->subject_alt_names; s != NULL;
                     s = s->next) {
                        any = any || s->buf.len > 0;
                        if ((s->buf.tag & TAG_MASK) == SAN_IP && is_ip(&s->buf, name))
                                return true;
                        if ((s->buf.tag & TAG_MASK) == SAN_DNS && is_dns(s->buf.p, s->buf.len, name))
                                return true;
                }
        for (const mbedtls_x509_name *n = &certificate->subject; !any && n != NULL; n = n->next)
                if (MBEDTLS_OID_CMP(MBEDTLS_OID_AT_CN, &n->oid) == 0 && is_dns(n->val.p, n->val.len, name))
                        return true;
        return false;
}

/* The library takes a certificate without the extension for anything; here it has to say it. */
static bool is_for(const mbedtls_x509_crt *certificate, bool server)
{
        return (certificate->ext_types & MBEDTLS_X509_EXT_EXTENDED_KEY_USAGE) != 0 &&
               (server ? mbedtls_x509_crt_check_extended_key_usage(certificate, MBEDTLS_OID_SERVER_AUTH,
                                                                   MBEDTLS_OID_SIZE(MBEDTLS_OID_SERVER_AUTH))
                       : mbedtls_x509_crt_check_extended_key_usage(
                                 certificate, MBEDTLS_OID_CLIENT_AUTH,
                                 MBEDTLS_OID_SIZE(MBEDTLS_OID_CLIENT_AUTH))) == 0;
}

static enum tls_reason reason_of(uint32_t flags)
{
        if ((flags & MBEDTLS_X509_BADCERT_EXPIRED) != 0)
                return TLS_REASON_EXPIRED;
        if ((flags & MBEDTLS_X509_BADCERT_FUTURE) != 0)
                return TLS_REASON_NOT_YET_VALID;
        if ((flags & MBEDTLS_X509_BADCERT_MISSING) != 0)
                return TLS_REASON_NO_CERTIFICATE;
        if ((flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) != 0)
                return TLS_REASON_UNTRUSTED;
        if ((flags & MBEDTLS_X509_BADCERT_EXT_KEY_USAGE) != 0)
                return TLS_REASON_PURPOSE;
        return (flags & MBEDTLS_X509_BADCERT_CN_MISMATCH) != 0 ? TLS_REASON_OTHER_NAME : TLS_REASON_UNFIT;
}

static int no_pem(const struct tls_pem *pem, int code, struct err *err)
{
        return err_set(err, -EINVAL, "%s is not what it should be, in PEM (mbedTLS error -0x%04x)", pem->from,
                       (unsigned) -code);
}

static int parse(mbedtls_x509_crt *certificate, const struct tls_pem *pem, struct err *err)
{
        int code =
                mbedtls_x509_crt_parse(certificate, (const unsigned char *) pem->text, strlen(pem->text) + 1);

        return code != 0 ? no_pem(pem, code, err) : 0;
}

static int load(const struct tls_identity *from, struct identity *id, struct err *err)
{
        int r = from->certificate.text == NULL ? 0 : parse(&id->own, &from->certificate, err);

        if (r == 0 && from->ca.text != NULL && parse(&id->ca, &from->ca, NULL) < 0)
                return err_set(err, -EINVAL, "%s holds no certificate", from->ca.from);
        if (r < 0 || from->certificate.text == NULL)
                return r;
        r = mbedtls_pk_parse_key(&id->key, (const unsigned char *) from->key.text, strlen(from->key.text) + 1,
                                 NULL, 0);
        if (r != 0)
                return no_pem(&from->key, r, err);
        if (mbedtls_pk_check_pair(&id->own.pk, &id->key) != 0)
                return err_set(err, -EINVAL, "%s is not the key of %s", from->key.from,
                               from->certificate.from);
        return 0;
}

static void identity_init(struct identity *id)
{
        mbedtls_x509_crt_init(&id->own);
        mbedtls_x509_crt_init(&id->ca);
        mbedtls_pk_init(&id->key);
}

static void identity_free(struct identity *id)
{
        mbedtls_pk_free(&id->key);
        mbedtls_x509_crt_free(&id->ca);
        mbedtls_x509_crt_free(&id->own);
}

int tls_check(const struct tls_identity *identity, struct err *err)
{
        struct identity id;
        int r;

        identity_init(&id);
        r = load(identity, &id, err);
        identity_free(&id);
        return r;
}

/* Whoever asks for the other name is shown its certificate, and need not show one. */
static int choose_identity(void *context, mbedtls_ssl_context *ssl, const unsigned char *name, size_t bytes)
{
        struct tls *tls = context;

        if (bytes != strlen(tls->other_name) || memcmp(name, tls->other_name, bytes) != 0)
                return 0;
        mbedtls_ssl_set_hs_authmode(ssl, MBEDTLS_SSL_VERIFY_NONE);
        return mbedtls_ssl_set_hs_own_cert(ssl, &tls->other.own, &tls->other.key);
}

/* What every peer would refuse is better refused here, where it is known where it is from. */
static int judge_own(struct tls *tls, const struct tls_options *options, struct err *err)
{
        uint32_t flags = 0;

        if (mbedtls_x509_crt_verify(&tls->main.own, &tls->main.ca, NULL, NULL, &flags, NULL, NULL) != 0)
                return tls_reason_own(&tls->words, options, reason_of(flags), err);
        if (!is_for(&tls->main.own, options->server))
                return tls_reason_own(&tls->words, options, TLS_REASON_PURPOSE, err);
        if (options->server && options->name != NULL && !certificate_has(&tls->main.own, options->name))
                return tls_reason_own(&tls->words, options, TLS_REASON_OTHER_NAME, err);
        return 0;
}

/* Of each certificate of a peer's chain; its own is the one of depth 0. A handshake that ends for these marks
 * is told so by reason_of(). */
static int judge_peer(void *context, mbedtls_x509_crt *certificate, int depth, uint32_t *flags)
{
        const struct tls_reason_words *words = &((const struct tls *) context)->words;

        if (depth != 0)
                return 0;
        if (!is_for(certificate, !words->server))
                *flags |= MBEDTLS_X509_BADCERT_EXT_KEY_USAGE;
        if ((!words->server || words->client_name[0] != '\0') && !certificate_has(certificate, words->name) &&
            !(words->server && certificate_has(certificate, words->client_name)))
                *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
        return 0;
}

static int configure(struct tls *tls, struct err *err)
{
        static const char *protocols[] = { "h2", NULL };
        int code = mbedtls_ctr_drbg_seed(&tls->random, mbedtls_entropy_func, &tls->entropy, NULL, 0);

        if (code == 0)
                code = mbedtls_ssl_config_defaults(
                        &tls->config, tls->words.server ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
                        MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
        if (code == 0 && tls->main.own.raw.len > 0)
                code = mbedtls_ssl_conf_own_cert(&tls->config, &tls->main.own, &tls->main.key);
        if (code == 0)
                code = mbedtls_ssl_conf_alpn_protocols(&tls->config, protocols);
        if (code != 0)
                return err_set(err, -EINVAL, "TLS cannot be set up (mbedTLS error -0x%04x)",
                               (unsigned) -code);
        mbedtls_ssl_conf_rng(&tls->config, mbedtls_ctr_drbg_random, &tls->random);
        mbedtls_ssl_conf_ca_chain(&tls->config, &tls->main.ca, NULL);
        if (tls->other_name[0] != '\0')
                mbedtls_ssl_conf_sni(&tls->config, choose_identity, tls);
        mbedtls_ssl_conf_authmode(&tls->config, MBEDTLS_SSL_VERIFY_REQUIRED);
        mbedtls_ssl_conf_verify(&tls->config, judge_peer, tls);
        mbedtls_ssl_conf_min_version(&tls->config, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
        return 0;
}

int tls_new(const struct tls_options *options, struct tls **ret, struct err *err)
{
        struct tls *tls = calloc(1, sizeof(*tls));
        int r;

        if (tls == NULL)
                return err_set(err, -ENOMEM, "no memory for TLS");
        tls_reason_words_set(&tls->words, options);
        mbedtls_entropy_init(&tls->entropy);
        mbedtls_ctr_drbg_init(&tls->random);
        identity_init(&tls->main);
        identity_init(&tls->other);
        mbedtls_ssl_config_init(&tls->config);
        r = load(&options->identity, &tls->main, err);
        if (r == 0 && options->identity.certificate.text != NULL)
                r = judge_own(tls, options, err);
        if (r == 0 && options->other_name != NULL) {
                (void) text_copy(tls->other_name, sizeof(tls->other_name), options->other_name);
                r = load(&options->other, &tls->other, err);
        }
        if (r == 0)
                r = configure(tls, err);
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
        mbedtls_ssl_config_free(&tls->config);
        identity_free(&tls->main);
        identity_free(&tls->other);
        mbedtls_ctr_drbg_free(&tls->random);
        mbedtls_entropy_free(&tls->entropy);
        free(tls);
}

static int on_send(void *context, const unsigned char *bytes, size_t size)
{
        struct tunnel *tunnel = context;
        ssize_t n = send(tunnel->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? MBEDTLS_ERR_SSL_WANT_WRITE
                                                         : MBEDTLS_ERR_SSL_CONN_EOF;
        tunnel->wrote = true;
        return (int) n;
}

static int on_receive(void *context, unsigned char *buffer, size_t size)
{
        struct tunnel *tunnel = context;
        ssize_t n = recv(tunnel->fd, buffer, size, MSG_DONTWAIT);

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? MBEDTLS_ERR_SSL_WANT_READ
                                                         : MBEDTLS_ERR_SSL_CONN_EOF;
        tunnel->heard = tunnel->heard || n > 0;
        return (int) n;
}

/* The handshake has failed: whose fault is it? */
static void explain(struct tunnel *tunnel, int code)
{
        const struct tls_reason_words *words = &tunnel->tls->words;
        struct transport *base = &tunnel->base;
        char what[40];

        switch (code) {
        case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
                tls_reason_refuse(words, reason_of(mbedtls_ssl_get_verify_result(&tunnel->ssl)), base);
                break;
        case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE:
                tls_reason_refuse(words, TLS_REASON_NO_CERTIFICATE, base);
                break;
        case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
                tls_reason_refuse(words, TLS_REASON_PEER_REFUSES, base);
                break;
        case MBEDTLS_ERR_SSL_INVALID_RECORD:
                tls_reason_refuse(words, TLS_REASON_PLAIN, base);
                break;
        case MBEDTLS_ERR_SSL_CONN_EOF:
                tls_reason_refuse(words,
                                  words->server   ? TLS_REASON_LEFT
                                  : tunnel->heard ? TLS_REASON_PEER_REFUSES
                                                  : TLS_REASON_PLAIN,
                                  base);
                if (words->server)
                        base->refused = tunnel->wrote; /* who connects and leaves is not worth a word */
                break;
        default:
                base->refused = true;
                (void) text_format(what, sizeof(what), "mbedTLS error -0x%04x", (unsigned) -code);
                tls_reason_broken(words, what, base);
        }
}

static int later_or_end(struct tunnel *tunnel, int code)
{
        if (code == MBEDTLS_ERR_SSL_WANT_READ || code == MBEDTLS_ERR_SSL_WANT_WRITE) {
                tunnel->base.wants_write = code == MBEDTLS_ERR_SSL_WANT_WRITE;
                return -EAGAIN;
        }
        return -EPROTO;
}

static void bind_channel(struct tunnel *tunnel)
{
        const mbedtls_x509_crt *peer = mbedtls_ssl_get_peer_cert(&tunnel->ssl), *server = peer;
        struct sha256 hash;

        tunnel->base.named = peer != NULL;
        if (tunnel->tls->words.server)
                server = peer != NULL ? &tunnel->tls->main.own : &tunnel->tls->other.own;
        if (server == NULL) /* a client always has the server's: it demands one */
                return;
        sha256_init(&hash);
        sha256_update(&hash, server->raw.p, server->raw.len);
        sha256_final(&hash, tunnel->base.binding);
}

/* Return: 0 once the peer is known and trusted. */
static int greet(struct tunnel *tunnel)
{
        const struct tls_reason_words *words = &tunnel->tls->words;
        int code;

        if (tunnel->open)
                return 0;
        if (tunnel->base.why[0] != '\0' || /* refused before */
            tls_reason_is_plain(words, tunnel->fd, &tunnel->begun, &tunnel->base))
                return -EPROTO;
        code = mbedtls_ssl_handshake(&tunnel->ssl);
        if (code == MBEDTLS_ERR_SSL_WANT_READ || code == MBEDTLS_ERR_SSL_WANT_WRITE)
                return later_or_end(tunnel, code);
        if (code != 0) {
                explain(tunnel, code);
                return -EPROTO;
        }
        tunnel->open = true;
        bind_channel(tunnel);
        return 0;
}

static ssize_t tunnel_read(struct transport *transport, uint8_t *buffer, size_t size_bytes)
{
        struct tunnel *tunnel = (struct tunnel *) transport;
        int code = greet(tunnel);

        if (code < 0) /* 0 would be a quiet end; a broken one is named by `why` */
                return code == -EAGAIN ? code : 0;
        code = mbedtls_ssl_read(&tunnel->ssl, buffer, size_bytes);
        if (code >= 0)
                return code;
        code = later_or_end(tunnel, code);
        return code == -EAGAIN ? code : 0;
}

static ssize_t tunnel_write(struct transport *transport, const uint8_t *bytes, size_t size_bytes)
{
        struct tunnel *tunnel = (struct tunnel *) transport;
        int code = greet(tunnel);

        if (code < 0)
                return code;
        code = mbedtls_ssl_write(&tunnel->ssl, bytes, size_bytes);
        return code >= 0 ? code : later_or_end(tunnel, code);
}

static bool tunnel_pending(const struct transport *transport)
{
        const struct tunnel *tunnel = (const struct tunnel *) transport;

        return tunnel->open && mbedtls_ssl_get_bytes_avail(&tunnel->ssl) > 0;
}

static void tunnel_free(struct transport *transport)
{
        struct tunnel *tunnel = (struct tunnel *) transport;

        if (tunnel->open)
                (void) mbedtls_ssl_close_notify(&tunnel->ssl);
        mbedtls_ssl_free(&tunnel->ssl);
        free(tunnel);
}

struct transport *tls_wrap(void *tls, int fd)
{
        struct tunnel *tunnel = calloc(1, sizeof(*tunnel));
        const struct tls_reason_words *words = &((const struct tls *) tls)->words;

        if (tunnel == NULL)
                return NULL;
        tunnel->base = (struct transport){
                .read = tunnel_read, .write = tunnel_write, .pending = tunnel_pending, .free = tunnel_free
        };
        tunnel->tls = tls;
        tunnel->fd = fd;
        mbedtls_ssl_init(&tunnel->ssl);
        if (mbedtls_ssl_setup(&tunnel->ssl, &tunnel->tls->config) != 0 ||
            (tls_reason_asks(words) && mbedtls_ssl_set_hostname(&tunnel->ssl, words->name) != 0)) {
                tunnel_free(&tunnel->base);
                return NULL;
        }
        mbedtls_ssl_set_bio(&tunnel->ssl, tunnel, on_send, on_receive, NULL);
        return &tunnel->base;
}
