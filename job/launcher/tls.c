#include "job/launcher/tls.h"

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
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define NAME_BYTES 256
#define SAN_DNS    2 /* tags of a subject's alternative names, RFC 5280 4.2.1.6 */
#define SAN_IP     7
#define TAG_MASK   0x1f

/* What one side shows, and whom it believes. */
struct identity {
        mbedtls_x509_crt own, ca;
        mbedtls_pk_context key;
};

struct tls {
        bool manager;
        char name[NAME_BYTES]; /* that the manager's certificate must have */
        mbedtls_entropy_context entropy;
        mbedtls_ctr_drbg_context random;
        struct identity main, status;
        mbedtls_ssl_config config;
};

struct tunnel {
        struct grpc_transport base;
        const struct tls *tls;
        int fd;
        bool begun, open; /* the first byte was looked at; the handshake is over */
        bool wrote, heard;
        mbedtls_ssl_context ssl;
};

/* --- names
 * ---------------------------------------------------------------------------------------------------------------
 */

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

/* "10.0.0.1:7000" and "[::1]:7000" without the port and the brackets. */
static void host_of(const char *address, char ret[NAME_BYTES])
{
        const char *colon = strrchr(address, ':');
        size_t length = colon == NULL ? strlen(address) : (size_t) (colon - address);

        if (length >= 2 && address[0] == '[' && address[length - 1] == ']') {
                address++;
                length -= 2;
        }
        if (length >= NAME_BYTES)
                length = NAME_BYTES - 1;
        memcpy(ret, address, length);
        ret[length] = '\0';
}

/* --- why a certificate is refused
 * --------------------------------------------------------------------------------------------- */

static const char *why_refused(uint32_t flags)
{
        if ((flags & MBEDTLS_X509_BADCERT_EXPIRED) != 0)
                return "has expired";
        if ((flags & MBEDTLS_X509_BADCERT_FUTURE) != 0)
                return "is not valid yet; look at the clocks";
        if ((flags & MBEDTLS_X509_BADCERT_MISSING) != 0)
                return "is missing";
        if ((flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) != 0)
                return "is not of this job's CA";
        return "is not acceptable: its key or signature is too weak, or not for this use";
}

static int cannot_read(const char *option, const char *path, int code, struct err *err)
{
        if (access(path, R_OK) < 0)
                return err_set(err, -errno,
                               "%s: '%.200s': %m; the file must be there (of a pod: in its Secret)", option,
                               path);
        return err_set(err, -EINVAL, "%s: '%.200s' is not what it should be, in PEM (mbedTLS error -0x%04x)",
                       option, path, (unsigned) -code);
}

static int read_files(struct identity *id, const struct tls_options *options, struct err *err)
{
        int code = mbedtls_x509_crt_parse_file(&id->ca, options->ca);

        if (code != 0)
                return cannot_read("--tls-ca", options->ca, code, err);
        code = mbedtls_x509_crt_parse_file(&id->own, options->certificate);
        if (code != 0)
                return cannot_read("--tls-cert", options->certificate, code, err);
        code = mbedtls_pk_parse_keyfile(&id->key, options->key, NULL);
        if (code != 0)
                return cannot_read("--tls-key", options->key, code, err);
        if (mbedtls_pk_check_pair(&id->own.pk, &id->key) != 0)
                return err_set(err, -EINVAL, "--tls-key: '%.200s' is not the key of certificate '%.200s'",
                               options->key, options->certificate);
        return 0;
}

static int read_status_files(struct tls *tls, const char *folder, struct err *err)
{
        char files[3][512];
        static const char *const names[] = { "tls.crt", "tls.key", "ca.crt" };
        const struct tls_options options = { .certificate = files[0], .key = files[1], .ca = files[2] };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!text_format(files[i], sizeof(files[i]), "%s/%s", folder, names[i]))
                        return err_set(err, -ENAMETOOLONG, "--tls-status: '%.200s' is too long", folder);
        return read_files(&tls->status, &options, err);
}

/* Whoever asks for this name is of another CA, and is shown a certificate of it. */
static int choose_identity(void *context, mbedtls_ssl_context *ssl, const unsigned char *name, size_t bytes)
{
        struct tls *tls = context;

        if (bytes != strlen(TLS_STATUS_NAME) || memcmp(name, TLS_STATUS_NAME, bytes) != 0)
                return 0;
        mbedtls_ssl_set_hs_ca_chain(ssl, &tls->status.ca, NULL);
        return mbedtls_ssl_set_hs_own_cert(ssl, &tls->status.own, &tls->status.key);
}

/* What every peer would refuse is better refused here, where the file's name is known. */
static int judge_own(struct tls *tls, const struct tls_options *options, struct err *err)
{
        uint32_t flags = 0;

        if (mbedtls_x509_crt_verify(&tls->main.own, &tls->main.ca, NULL, NULL, &flags, NULL, NULL) != 0)
                return err_set(err, -EINVAL, "--tls-cert: '%.200s' %s ('%.200s'); give one that is valid now",
                               options->certificate, why_refused(flags), options->ca);
        if (tls->manager && !certificate_has(&tls->main.own, tls->name))
                return err_set(
                        err, -EINVAL,
                        "--tls-cert: '%.200s' does not have the name '%.100s'; make one with it, or give the "
                        "name that it has with --tls-name, here and to every group",
                        options->certificate, tls->name);
        return 0;
}

static int configure(struct tls *tls, bool by_name, struct err *err)
{
        static const char *protocols[] = { "h2", NULL };
        int code = mbedtls_ctr_drbg_seed(&tls->random, mbedtls_entropy_func, &tls->entropy, NULL, 0);

        if (code == 0)
                code = mbedtls_ssl_config_defaults(
                        &tls->config, tls->manager ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT,
                        MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
        if (code == 0)
                code = mbedtls_ssl_conf_own_cert(&tls->config, &tls->main.own, &tls->main.key);
        if (code == 0)
                code = mbedtls_ssl_conf_alpn_protocols(&tls->config, protocols);
        if (code != 0)
                return err_set(err, -EINVAL, "TLS cannot be set up (mbedTLS error -0x%04x)",
                               (unsigned) -code);
        mbedtls_ssl_conf_rng(&tls->config, mbedtls_ctr_drbg_random, &tls->random);
        mbedtls_ssl_conf_ca_chain(&tls->config, &tls->main.ca, NULL);
        if (by_name)
                mbedtls_ssl_conf_sni(&tls->config, choose_identity, tls);
        mbedtls_ssl_conf_authmode(&tls->config, MBEDTLS_SSL_VERIFY_REQUIRED);
        mbedtls_ssl_conf_min_version(&tls->config, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
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

int tls_open(const struct tls_options *options, const char *address, bool manager, struct tls **ret,
             struct err *err)
{
        const bool given[] = { options->certificate != NULL, options->key != NULL, options->ca != NULL };
        static const char *const names[] = { "--tls-cert", "--tls-key", "--tls-ca" };
        struct tls *tls;
        int r;

        *ret = NULL;
        if (!given[0] && !given[1] && !given[2])
                return 0;
        for (size_t i = 0; i < ARRAY_SIZE(given); i++)
                if (!given[i])
                        return err_set(err, -EINVAL,
                                       "%s is missing; --tls-cert, --tls-key and --tls-ca are given together",
                                       names[i]);
        tls = calloc(1, sizeof(*tls));
        if (tls == NULL)
                return err_set(err, -ENOMEM, "no memory for TLS");
        tls->manager = manager;
        if (options->name != NULL)
                (void) text_copy(tls->name, sizeof(tls->name), options->name);
        else
                host_of(address, tls->name);
        mbedtls_entropy_init(&tls->entropy);
        mbedtls_ctr_drbg_init(&tls->random);
        identity_init(&tls->main);
        identity_init(&tls->status);
        mbedtls_ssl_config_init(&tls->config);
        r = read_files(&tls->main, options, err);
        if (r == 0)
                r = judge_own(tls, options, err);
        if (r == 0 && manager && options->status != NULL)
                r = read_status_files(tls, options->status, err);
        if (r == 0)
                r = configure(tls, manager && options->status != NULL, err);
        if (r < 0)
                tls_close(tls);
        else
                *ret = tls;
        return r;
}

void tls_close(struct tls *tls)
{
        if (tls == NULL)
                return;
        mbedtls_ssl_config_free(&tls->config);
        identity_free(&tls->main);
        identity_free(&tls->status);
        mbedtls_ctr_drbg_free(&tls->random);
        mbedtls_entropy_free(&tls->entropy);
        free(tls);
}

/* --- a connection
 * ------------------------------------------------------------------------------------------------------------
 */

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

static void say_foreign(struct tunnel *tunnel)
{
        tunnel->base.refused = true;
        (void) text_format(tunnel->base.why, sizeof(tunnel->base.why),
                           "TLS: the %s does not speak TLS; give both sides their keys, or neither",
                           tunnel->tls->manager ? "group" : "manager");
}

/* A group that speaks plainly is told in the one way that it understands (grpc_connection.c): by an alert. */
static bool speaks_plainly(struct tunnel *tunnel)
{
        static const unsigned char alert[] = { 0x15, 3, 3, 0, 2, 2, 70 /* protocol_version */ };
        unsigned char bytes[4096];
        ssize_t n;

        if (!tunnel->tls->manager || tunnel->begun)
                return false;
        n = recv(tunnel->fd, bytes, 1, MSG_PEEK | MSG_DONTWAIT);
        tunnel->begun = n == 1;
        if (n != 1 || bytes[0] == 0x16)
                return false;
        while (recv(tunnel->fd, bytes, sizeof(bytes), MSG_DONTWAIT) >
               0) /* unread, it would reset the connection */
                continue;
        (void) !send(tunnel->fd, alert, sizeof(alert), MSG_NOSIGNAL | MSG_DONTWAIT);
        say_foreign(tunnel);
        return true;
}

/* The handshake has failed: whose fault is it? */
static void explain(struct tunnel *tunnel, int code)
{
        const char *peer = tunnel->tls->manager ? "group" : "manager";
        char *why = tunnel->base.why;
        uint32_t flags;

        tunnel->base.refused = true;
        switch (code) {
        case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
                flags = mbedtls_ssl_get_verify_result(&tunnel->ssl);
                (void) text_format(why, sizeof(tunnel->base.why), "TLS: the %s's certificate %s", peer,
                                   why_refused(flags));
                break;
        case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE:
                (void) text_format(why, sizeof(tunnel->base.why), "TLS: the %s shows no certificate", peer);
                break;
        case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
                (void) text_format(
                        why, sizeof(tunnel->base.why),
                        "TLS: the %s refuses this side's certificate; is it of the same CA, and still valid?",
                        peer);
                break;
        case MBEDTLS_ERR_SSL_INVALID_RECORD:
                say_foreign(tunnel);
                break;
        case MBEDTLS_ERR_SSL_CONN_EOF:
                if (!tunnel->tls->manager && !tunnel->heard) {
                        say_foreign(tunnel);
                        break;
                }
                if (!tunnel->tls->manager) {
                        explain(tunnel, MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE);
                        break;
                }
                tunnel->base.refused =
                        tunnel->wrote; /* a scanner that connects and leaves is not worth a word */
                (void) text_copy(why, sizeof(tunnel->base.why),
                                 "TLS: the group left; it may not trust this manager's certificate");
                break;
        default:
                (void) text_format(why, sizeof(tunnel->base.why),
                                   "TLS: no connection with the %s (mbedTLS error -0x%04x)", peer,
                                   (unsigned) -code);
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

/* Return: 0 once the peer is known and trusted. */
static int greet(struct tunnel *tunnel)
{
        int code;

        if (tunnel->open)
                return 0;
        if (tunnel->base.why[0] != '\0') /* refused before */
                return -EPROTO;
        if (speaks_plainly(tunnel))
                return -EPROTO;
        code = mbedtls_ssl_handshake(&tunnel->ssl);
        if (code == MBEDTLS_ERR_SSL_WANT_READ || code == MBEDTLS_ERR_SSL_WANT_WRITE)
                return later_or_end(tunnel, code);
        if (code != 0) {
                explain(tunnel, code);
                return -EPROTO;
        }
        if (!tunnel->tls->manager &&
            !certificate_has(mbedtls_ssl_get_peer_cert(&tunnel->ssl), tunnel->tls->name)) {
                tunnel->base.refused = true;
                (void) text_format(
                        tunnel->base.why, sizeof(tunnel->base.why),
                        "TLS: the manager's certificate does not have the name '%.60s'; see --tls-name",
                        tunnel->tls->name);
                return -EPROTO;
        }
        tunnel->open = true;
        return 0;
}

static ssize_t tunnel_read(struct grpc_transport *transport, uint8_t *buffer, size_t size_bytes)
{
        struct tunnel *tunnel = (struct tunnel *) transport;
        int code = greet(tunnel);

        if (code < 0) /* 0 would be a quiet end; a broken one is told by `why` */
                return code == -EAGAIN ? code : 0;
        code = mbedtls_ssl_read(&tunnel->ssl, buffer, size_bytes);
        if (code >= 0)
                return code;
        code = later_or_end(tunnel, code);
        return code == -EAGAIN ? code : 0;
}

static ssize_t tunnel_write(struct grpc_transport *transport, const uint8_t *bytes, size_t size_bytes)
{
        struct tunnel *tunnel = (struct tunnel *) transport;
        int code = greet(tunnel);

        if (code < 0)
                return code;
        code = mbedtls_ssl_write(&tunnel->ssl, bytes, size_bytes);
        return code >= 0 ? code : later_or_end(tunnel, code);
}

static bool tunnel_pending(const struct grpc_transport *transport)
{
        const struct tunnel *tunnel = (const struct tunnel *) transport;

        return tunnel->open && mbedtls_ssl_get_bytes_avail(&tunnel->ssl) > 0;
}

static void tunnel_free(struct grpc_transport *transport)
{
        struct tunnel *tunnel = (struct tunnel *) transport;

        if (tunnel->open)
                (void) mbedtls_ssl_close_notify(&tunnel->ssl);
        mbedtls_ssl_free(&tunnel->ssl);
        free(tunnel);
}

struct grpc_transport *tls_wrap(void *tls, int fd)
{
        struct tunnel *tunnel = calloc(1, sizeof(*tunnel));

        if (tunnel == NULL)
                return NULL;
        tunnel->base = (struct grpc_transport){
                .read = tunnel_read, .write = tunnel_write, .pending = tunnel_pending, .free = tunnel_free
        };
        tunnel->tls = tls;
        tunnel->fd = fd;
        mbedtls_ssl_init(&tunnel->ssl);
        if (mbedtls_ssl_setup(&tunnel->ssl, &tunnel->tls->config) != 0) {
                tunnel_free(&tunnel->base);
                return NULL;
        }
        mbedtls_ssl_set_bio(&tunnel->ssl, tunnel, on_send, on_receive, NULL);
        return &tunnel->base;
}
