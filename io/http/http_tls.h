/* HTTP TLS: the keys of a server, which libmicrohttpd serves with GnuTLS, and who shows one of a client.
 * TLS 1.2 at least.
 *
 * The files are looked at when somebody connects, or asks as a client of the CA, at most once a second: what
 * has changed counts from that connection on. Connections that there are keep what they began with, but for
 * the CA: who is not of it any more is refused at his next request. Files that are no pair, or no
 * certificates, change nothing but the count of failures; a CA beside such a pair counts all the same. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/text.h"

#define HTTP_TLS_FILES 3 /* certificate, key, client CA */

struct http_tls_credentials; /* what was read at one time; counted: the newest, and each connection's */

struct http_tls_files {
        const char *names[HTTP_TLS_FILES]; /* all NULL = plain, the last NULL = anybody */
        /* Of a client's certificate: one of these DNS names, or common names where it has no DNS name, commas
         * between; NULL = any of the CA. */
        const char *client_names;
};

struct http_tls {
        struct http_tls_files files;
        char *own[HTTP_TLS_FILES + 1]; /* its names */
        struct stat seen[HTTP_TLS_FILES];
        uint64_t looked_usec;
        struct http_tls_credentials *now; /* NULL = plain */
        int64_t expires_sec;              /* of the server's certificate, since 1970 */
        uint64_t reloads, reload_failures;
        char trouble[256]; /* of the last reload; "" = none */
};

/* http_tls_open() - read and judge the files. Return: 0; -EINVAL (not given together, no pair, not PEM, made
 * for clients alone), -ENOENT ... and the file. Release with http_tls_close() in any case. */
int http_tls_open(struct http_tls *tls, const struct http_tls_files *files, struct err *err);
void http_tls_close(struct http_tls *tls);

/* http_tls_pem() - what the library wants at its start. @i: as in names */
const char *http_tls_pem(const struct http_tls *tls, size_t i);

/* http_tls_begin() - a new connection, before its handshake: it is given what counts now. Return: what it
 * holds, for http_tls_end(); NULL = plain. */
struct http_tls_credentials *http_tls_begin(struct http_tls *tls, struct MHD_Connection *connection,
                                            uint64_t now_usec);
void http_tls_end(struct http_tls_credentials *credentials); /* accepts NULL */

/* http_tls_is_known() - did the client of this connection show a certificate of the CA that counts now, made
 * for clients (extended key usage clientAuth), and of the names that are wanted? @begun: what
 * http_tls_begin() returned */
bool http_tls_is_known(struct http_tls *tls, struct MHD_Connection *connection,
                       const struct http_tls_credentials *begun, uint64_t now_usec);

/* http_tls_pending() - bytes that came with others, and that the library has not asked for yet. */
size_t http_tls_pending(struct MHD_Connection *connection);

/* http_tls_metrics() - as http_server_metrics(). */
void http_tls_metrics(const struct http_tls *tls, const char *expiry, const char *reloads, struct text *page);
