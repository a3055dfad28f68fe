/* TLS of the rendezvous: both sides show a certificate of the job's CA (mbedTLS; ADR 0098).
 *
 * A job without keys speaks plainly. One with keys speaks nothing else: a peer that does not, or whose
 * certificate is not of this CA, is over, or is another's, is refused with a sentence on both sides. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "io/grpc/grpc_connection.h"

#define TLS_STATUS_NAME "status.remuda.dev"

struct tls_options {
        const char *certificate, *key, *ca; /* files, PEM; all or none */
        const char *name;                   /* that the manager's certificate has; NULL = its address */
        const char *status; /* of a manager: a folder with keys of another CA (tls.crt, tls.key, ca.crt), for
                               peers that ask for the server TLS_STATUS_NAME; NULL = none */
};

struct tls;

/* tls_open() - read and judge the files.
 * @address: the manager's, "ADDR:PORT"
 * @manager: this side serves
 * @ret: NULL for a job without keys
 * Return: 0; -ENOENT, -EACCES (a file); -EINVAL (not all given, no pair, not of the CA, not valid now, not of
 * this name). */
int tls_open(const struct tls_options *options, const char *address, bool manager, struct tls **ret,
             struct err *err);
void tls_close(struct tls *tls); /* after every connection; accepts NULL */

/* tls_wrap() - a grpc_wrap; @tls is a struct tls. */
struct grpc_transport *tls_wrap(void *tls, int fd);
