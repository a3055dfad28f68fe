/* gRPC over TLS for a client with a certificate (GnuTLS): the transport of io/grpc/grpc_connection.h. The
 * peer has to show a certificate of the same CA with the given name; TLS 1.2 at least. */
#pragma once

#include "io/grpc/grpc_connection.h"

struct grpc_tls;

/* grpc_tls_new() - all PEM, read at once. Return: 0; -EINVAL and *err (they cannot be read, no pair);
 * -ENOMEM. */
int grpc_tls_new(const char *ca, const char *certificate, const char *key, const char *name,
                 struct grpc_tls **ret, struct err *err);
void grpc_tls_free(struct grpc_tls *tls); /* after every connection; accepts NULL */

/* grpc_tls_wrap() - a grpc_wrap; @tls is a struct grpc_tls. */
struct grpc_transport *grpc_tls_wrap(void *tls, int fd);
