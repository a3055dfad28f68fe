/* HTTP TLS: the keys of a server, which libmicrohttpd serves with GnuTLS, and who shows one of a client. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

#include "base/err.h"

struct http_tls {
        char *certificate, *key, *client_ca; /* PEM, owned; all NULL = plain, client_ca NULL = anybody */
};

/* http_tls_read() - read and judge the files; all NULL = plain. Return: 0; -EINVAL (not given together, no
 * pair, not PEM), -ENOENT ... and the file. Release with http_tls_free() in any case. */
int http_tls_read(struct http_tls *tls, const char *certificate_file, const char *key_file,
                  const char *client_ca_file, struct err *err);
void http_tls_free(struct http_tls *tls);

/* http_tls_is_known() - did the client of this connection show a certificate of the CA? */
bool http_tls_is_known(struct MHD_Connection *connection);
