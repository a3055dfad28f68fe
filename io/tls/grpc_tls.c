#include "io/tls/grpc_tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct grpc_tls {
        gnutls_certificate_credentials_t credentials;
        char name[256];
};

struct tunnel {
        struct grpc_transport base;
        gnutls_session_t session;
        bool open;
};

int grpc_tls_new(const char *ca, const char *certificate, const char *key, const char *name,
                 struct grpc_tls **ret, struct err *err)
{
        gnutls_datum_t trust = { (unsigned char *) ca, (unsigned) strlen(ca) },
                       own = { (unsigned char *) certificate, (unsigned) strlen(certificate) },
                       private = { (unsigned char *) key, (unsigned) strlen(key) };
        struct grpc_tls *tls = calloc(1, sizeof(*tls));
        int r;

        if (tls == NULL)
                return err_set(err, -ENOMEM, "no memory for TLS");
        (void) text_copy(tls->name, sizeof(tls->name), name);
        r = gnutls_certificate_allocate_credentials(&tls->credentials);
        if (r >= 0)
                r = gnutls_certificate_set_x509_key_mem(tls->credentials, &own, &private,
                                                        GNUTLS_X509_FMT_PEM);
        if (r >= 0 &&
            gnutls_certificate_set_x509_trust_mem(tls->credentials, &trust, GNUTLS_X509_FMT_PEM) <= 0)
                r = GNUTLS_E_NO_CERTIFICATE_FOUND;
        if (r < 0) {
                grpc_tls_free(tls);
                return err_set(err, -EINVAL, "TLS keys: %s", gnutls_strerror(r));
        }
        *ret = tls;
        return 0;
}

void grpc_tls_free(struct grpc_tls *tls)
{
        if (tls == NULL)
                return;
        if (tls->credentials != NULL)
                gnutls_certificate_free_credentials(tls->credentials);
        free(tls);
}

static ssize_t later_or_end(struct tunnel *tunnel, int code)
{
        if (code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED) {
                tunnel->base.wants_write = gnutls_record_get_direction(tunnel->session) == 1;
                return -EAGAIN;
        }
        if (tunnel->base.why[0] == '\0')
                (void) text_format(tunnel->base.why, sizeof(tunnel->base.why), "TLS: %s",
                                   gnutls_strerror(code));
        return -EPROTO;
}

/* Return: 0 once the peer is known and trusted. */
static ssize_t greet(struct tunnel *tunnel)
{
        int code;

        if (tunnel->open)
                return 0;
        if (tunnel->base.why[0] != '\0')
                return -EPROTO;
        code = gnutls_handshake(tunnel->session);
        if (code < 0 && gnutls_error_is_fatal(code) == 0)
                return later_or_end(tunnel, GNUTLS_E_AGAIN);
        if (code < 0) {
                tunnel->base.refused = code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR ||
                                       code == GNUTLS_E_FATAL_ALERT_RECEIVED;
                return later_or_end(tunnel, code);
        }
        tunnel->open = true;
        return 0;
}

static ssize_t tunnel_read(struct grpc_transport *transport, uint8_t *buffer, size_t size_bytes)
{
        struct tunnel *tunnel = (struct tunnel *) transport;
        ssize_t code = greet(tunnel);

        if (code < 0) /* 0 would be a quiet end; a broken one is told by `why` */
                return code == -EAGAIN ? code : 0;
        code = gnutls_record_recv(tunnel->session, buffer, size_bytes);
        if (code >= 0)
                return code;
        if (gnutls_error_is_fatal((int) code) == 0)
                code = GNUTLS_E_AGAIN;
        code = later_or_end(tunnel, (int) code);
        return code == -EAGAIN ? code : 0;
}

static ssize_t tunnel_write(struct grpc_transport *transport, const uint8_t *bytes, size_t size_bytes)
{
        struct tunnel *tunnel = (struct tunnel *) transport;
        ssize_t code = greet(tunnel);

        if (code < 0)
                return code;
        code = gnutls_record_send(tunnel->session, bytes, size_bytes);
        return code >= 0 ? code : later_or_end(tunnel, (int) code);
}

static bool tunnel_pending(const struct grpc_transport *transport)
{
        const struct tunnel *tunnel = (const struct tunnel *) transport;

        return tunnel->open && gnutls_record_check_pending(tunnel->session) > 0;
}

static void tunnel_free(struct grpc_transport *transport)
{
        struct tunnel *tunnel = (struct tunnel *) transport;

        if (tunnel->open)
                (void) gnutls_bye(tunnel->session, GNUTLS_SHUT_WR);
        if (tunnel->session != NULL)
                gnutls_deinit(tunnel->session);
        free(tunnel);
}

struct grpc_transport *grpc_tls_wrap(void *userdata, int fd)
{
        static const gnutls_datum_t protocol = { (unsigned char *) "h2", 2 };
        const struct grpc_tls *tls = userdata;
        struct tunnel *tunnel = calloc(1, sizeof(*tunnel));
        int r;

        if (tunnel == NULL)
                return NULL;
        tunnel->base = (struct grpc_transport){
                .read = tunnel_read, .write = tunnel_write, .pending = tunnel_pending, .free = tunnel_free
        };
        r = gnutls_init(&tunnel->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
        if (r >= 0)
                r = gnutls_priority_set_direct(tunnel->session, PRIORITIES, NULL);
        if (r >= 0)
                r = gnutls_credentials_set(tunnel->session, GNUTLS_CRD_CERTIFICATE, tls->credentials);
        if (r >= 0)
                r = gnutls_alpn_set_protocols(tunnel->session, &protocol, 1, 0);
        if (r < 0) {
                tunnel_free(&tunnel->base);
                return NULL;
        }
        (void) gnutls_server_name_set(tunnel->session, GNUTLS_NAME_DNS, tls->name, strlen(tls->name));
        gnutls_session_set_verify_cert(tunnel->session, tls->name, 0);
        gnutls_transport_set_int(tunnel->session, fd);
        gnutls_handshake_set_timeout(tunnel->session, GNUTLS_INDEFINITE_TIMEOUT); /* the call has one */
        return &tunnel->base;
}
