/* TLS keys: a certificate authority made for one purpose, and certificates of it (GnuTLS; ECDSA on P-256).
 *
 * The authority's own key is forgotten as soon as the certificates are made: nobody can add to them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct tls_keys_pair {
        char *certificate, *key; /* PEM, owned */
};

#define TLS_KEYS_PAIRS 2
#define TLS_KEYS_NAMES 2

struct tls_keys {
        char *ca; /* PEM, owned */
        struct tls_keys_pair pairs[TLS_KEYS_PAIRS];
};

/* What a certificate is made for: its DNS names, and the sides it may be shown on (extended key usage). */
struct tls_keys_purpose {
        const char *names[TLS_KEYS_NAMES]; /* the first one is needed */
        bool serves, calls;
};

#define TLS_KEYS_ALWAYS 0

/* tls_keys_make() - Valid from an hour before `now_usec` for ten years; TLS_KEYS_ALWAYS = from 1970 to 9999,
 * for keys that live no longer than who has them, on machines whose clocks nobody vouches for. About a
 * millisecond. Return: 0; -ENOMEM; -EIO and what the library says. @ret is released with tls_keys_free() in
 * any case. */
int tls_keys_make(const struct tls_keys_purpose purposes[TLS_KEYS_PAIRS], uint64_t now_usec,
                  struct tls_keys *ret, struct err *err);
void tls_keys_free(struct tls_keys *keys); /* accepts all zero */
