/* TLS reason: why a certificate or a peer is refused, in the same words whichever library found it out; and
 * the look at the first byte, which tells who does not speak TLS at all. For the implementations of
 * io/tls/tls.h. */
#pragma once

#include "io/tls/tls.h"

enum tls_reason {
        TLS_REASON_NONE,
        TLS_REASON_EXPIRED,
        TLS_REASON_NOT_YET_VALID,
        TLS_REASON_NO_CERTIFICATE,
        TLS_REASON_UNTRUSTED,
        TLS_REASON_UNFIT,
        TLS_REASON_OTHER_NAME,
        TLS_REASON_PURPOSE,      /* made for the other side */
        TLS_REASON_PEER_REFUSES, /* it has said so, or left during the handshake */
        TLS_REASON_PLAIN,        /* it does not speak TLS */
        TLS_REASON_LEFT,         /* a client, during the handshake */
};

/* What sentences are made of; copied from the options. */
struct tls_reason_words {
        bool server;
        char name[TLS_NAME_BYTES], client_name[TLS_NAME_BYTES]; /* client_name: "" = any */
        char hint[40], peer[24], authority[32];
};

void tls_reason_words_set(struct tls_reason_words *words, const struct tls_options *options);

/* tls_reason_asks() - does this side say whom it wants? A client does, unless it is an address (RFC 6066). */
bool tls_reason_asks(const struct tls_reason_words *words);

/* tls_reason_own() - this side's own certificate is of no use. Return: -EINVAL, *err is set. */
int tls_reason_own(const struct tls_reason_words *words, const struct tls_options *options,
                   enum tls_reason reason, struct err *err);

/* tls_reason_refuse() - the peer is refused, or refuses: the transport has come to its end. */
void tls_reason_refuse(const struct tls_reason_words *words, enum tls_reason reason,
                       struct transport *transport);
void tls_reason_broken(const struct tls_reason_words *words, const char *what, struct transport *transport);

/* tls_reason_is_plain() - a client's first byte is no TLS: it is told in the one way that it understands, by
 * an alert, and refused. @begun: set once there was a first byte; nothing is looked at after that. */
bool tls_reason_is_plain(const struct tls_reason_words *words, int fd, bool *begun,
                         struct transport *transport);
