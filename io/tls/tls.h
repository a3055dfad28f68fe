/* TLS: one side of encrypted connections; the transport of a connection.
 *
 * One interface, two libraries: GnuTLS here, mbedTLS in the static remuda-launch (io/static/tls.c; ADR 0050).
 * test_tls.c holds both to the same rules and the same sentences. TLS 1.2 at least, HTTP/2 inside. A peer
 * that does not speak TLS, or whose certificate is not of the CA, is over, is another's, or is not made for
 * its side (extended key usage: serverAuth, clientAuth), is refused with a sentence on both sides. Both show
 * a certificate, but clients without one are served where they ask for `other_name`. */
#pragma once

#include "base/err.h"
#include "io/transport.h"

#define TLS_NAME_BYTES 256

struct tls_pem {
        const char *text;
        const char *from; /* where it is from, for a sentence: "--tls-cert: 'FILE'" */
};

/* What one side shows, and whom it believes. A client without a certificate (its text NULL) shows none. */
struct tls_identity {
        struct tls_pem certificate, key, ca;
};

struct tls_options {
        struct tls_identity identity;
        bool server;
        const char *name;        /* DNS name or IP address that the server's certificate must have */
        const char *name_hint;   /* said where it has another one: "see --tls-name"; NULL = nothing */
        const char *client_name; /* of a server: DNS name that clients' certificates must have; NULL = any */
        struct tls_identity other; /* of a server: what clients see, and show nothing, that ask for ... */
        const char *other_name;    /* ... the server of this name; NULL = none */
        const char *peer;          /* in sentences: what the other side is; NULL = server, client */
        const char *authority;     /* in sentences: what the CA is; NULL = "the CA" */
};

struct tls;

/* tls_check() - is it PEM, and does the key belong to the certificate? @identity: a CA without text is none.
 * Return: 0; -EINVAL and which of them is to blame; -ENOMEM. */
int tls_check(const struct tls_identity *identity, struct err *err);

/* tls_new() - all is read at once. What every peer would refuse is refused here: no pair, not of the CA, not
 * valid now, not for this side, a server's certificate without its name. Return: 0; -EINVAL and why; -ENOMEM.
 */
int tls_new(const struct tls_options *options, struct tls **ret, struct err *err);
void tls_free(struct tls *tls); /* after every connection; accepts NULL */

/* tls_wrap() - a transport_wrap; @tls is a struct tls. */
struct transport *tls_wrap(void *tls, int fd);
