#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "io/http/http_server_internal.h"

#define PEM_MAX_BYTES 1048576

static int read_pem(const char *path, char **ret, struct err *err)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "re");
        CLEANUP(free_p) char *text = NULL;
        size_t size;

        if (f == NULL)
                return err_set(err, -errno, "open '%s': %m", path);
        text = malloc(PEM_MAX_BYTES + 1);
        if (text == NULL)
                return err_set(err, -ENOMEM, "no memory for '%s'", path);
        size = fread(text, 1, PEM_MAX_BYTES + 1, f);
        if (ferror(f))
                return err_set(err, -EIO, "read '%s' failed", path);
        if (size > PEM_MAX_BYTES)
                return err_set(err, -E2BIG, "'%s' is too large for a PEM file", path);
        text[size] = '\0';
        *ret = strdup(text);
        return *ret == NULL ? err_set(err, -ENOMEM, "no memory for '%s'", path) : 0;
}

/* The library below says only that it could not start: find out which file is to blame. */
static int check_pair(const struct http_server *s, const struct http_server_options *o, struct err *err)
{
        gnutls_certificate_credentials_t credentials;
        gnutls_datum_t certificate = { (unsigned char *) s->tls_certificate,
                                       (unsigned) strlen(s->tls_certificate) };
        gnutls_datum_t key = { (unsigned char *) s->tls_key, (unsigned) strlen(s->tls_key) };
        int r = gnutls_certificate_allocate_credentials(&credentials);

        if (r < 0)
                return err_set(err, -ENOMEM, "no memory for certificates");
        r = gnutls_certificate_set_x509_key_mem(credentials, &certificate, &key, GNUTLS_X509_FMT_PEM);
        if (r < 0)
                r = err_set(err, -EINVAL, "certificate '%s' with key '%s': %s", o->tls_certificate_file,
                            o->tls_key_file, gnutls_strerror(r));
        if (r == 0 && s->client_ca != NULL) {
                gnutls_datum_t ca = { (unsigned char *) s->client_ca, (unsigned) strlen(s->client_ca) };

                if (gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM) <= 0)
                        r = err_set(err, -EINVAL, "client CA '%s' holds no certificate", o->client_ca_file);
        }
        gnutls_certificate_free_credentials(credentials);
        return r;
}

int http_server_read_tls(struct http_server *s, const struct http_server_options *o, struct err *err)
{
        int r;

        if (o->tls_certificate_file == NULL && o->tls_key_file == NULL && o->client_ca_file == NULL)
                return 0;
        if (o->tls_certificate_file == NULL || o->tls_key_file == NULL)
                return err_set(err, -EINVAL, "TLS needs a certificate and its key%s",
                               o->client_ca_file != NULL ? "; a client CA alone protects nothing" : "");
        r = read_pem(o->tls_certificate_file, &s->tls_certificate, err);
        if (r == 0)
                r = read_pem(o->tls_key_file, &s->tls_key, err);
        if (r == 0 && o->client_ca_file != NULL)
                r = read_pem(o->client_ca_file, &s->client_ca, err);
        return r < 0 ? r : check_pair(s, o, err);
}

bool http_server_client_is_known(struct MHD_Connection *mhd)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        unsigned status = 0, count = 0;

        if (info == NULL || info->tls_session == NULL ||
            gnutls_certificate_get_peers(info->tls_session, &count) == NULL || count == 0)
                return false;
        return gnutls_certificate_verify_peers2(info->tls_session, &status) == GNUTLS_E_SUCCESS &&
               status == 0;
}
