/* The library below says only that it could not start: here it is found out which file is to blame. */
#include "io/http/http_tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>

#include "base/text.h"
#include "io/read_file.h"
#include "io/tls/tls.h"

#define FILE_MAX_BYTES 1048576

int http_tls_read(struct http_tls *tls, const char *certificate_file, const char *key_file,
                  const char *client_ca_file, struct err *err)
{
        char certificate[300], key[300], ca[300];
        int r;

        *tls = (struct http_tls){ 0 };
        if (certificate_file == NULL && key_file == NULL && client_ca_file == NULL)
                return 0;
        if (certificate_file == NULL || key_file == NULL)
                return err_set(err, -EINVAL, "TLS needs a certificate and its key%s",
                               client_ca_file != NULL ? "; a client CA alone protects nothing" : "");
        r = read_file(certificate_file, FILE_MAX_BYTES, &tls->certificate, NULL, err);
        if (r == 0)
                r = read_file(key_file, FILE_MAX_BYTES, &tls->key, NULL, err);
        if (r == 0 && client_ca_file != NULL)
                r = read_file(client_ca_file, FILE_MAX_BYTES, &tls->client_ca, NULL, err);
        if (r < 0)
                return r;
        (void) text_format(certificate, sizeof(certificate), "certificate '%.200s'", certificate_file);
        (void) text_format(key, sizeof(key), "key '%.200s'", key_file);
        (void) text_format(ca, sizeof(ca), "client CA '%.200s'",
                           client_ca_file != NULL ? client_ca_file : "");
        return tls_check(&(struct tls_identity){ .certificate = { tls->certificate, certificate },
                                                 .key = { tls->key, key },
                                                 .ca = { tls->client_ca, ca } },
                         err);
}

void http_tls_free(struct http_tls *tls)
{
        free(tls->certificate);
        free(tls->key);
        free(tls->client_ca);
}

bool http_tls_is_known(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        unsigned status = 0, count = 0;

        if (info == NULL || info->tls_session == NULL ||
            gnutls_certificate_get_peers(info->tls_session, &count) == NULL || count == 0)
                return false;
        return gnutls_certificate_verify_peers2(info->tls_session, &status) == GNUTLS_E_SUCCESS &&
               status == 0;
}
