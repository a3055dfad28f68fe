/* TLS keys: a certificate authority made for one purpose, and certificates of it (GnuTLS; ECDSA on P-256).
 *
 * The authority's own key is forgotten as soon as the certificates are made: nobody can add to them. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct tls_keys_pair {
        char *certificate, *key; /* PEM, owned */
};

struct tls_keys {
        char *ca;                      /* PEM, owned */
        struct tls_keys_pair pairs[2]; /* each may serve and call */
};

/* tls_keys_make() - @name: what peers check: the DNS name of both certificates. Valid from an hour ago
 * (clocks differ) for ten years. About a millisecond.
 * Return: 0; -ENOMEM; -EIO and what the library says. @ret is released with tls_keys_free() in any case. */
int tls_keys_make(const char *name, uint64_t now_usec, struct tls_keys *ret, struct err *err);
void tls_keys_free(struct tls_keys *keys); /* accepts all zero */
