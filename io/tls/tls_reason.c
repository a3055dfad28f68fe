/* The sentences about certificates, and an alert to those who do not speak TLS. */
#include "io/tls/tls_reason.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/text.h"

#define HANDSHAKE 0x16 /* the first byte of every TLS connection */

void tls_reason_words_set(struct tls_reason_words *words, const struct tls_options *o)
{
        *words = (struct tls_reason_words){ .server = o->server };
        (void) text_copy(words->name, sizeof(words->name), o->name != NULL ? o->name : "");
        (void) text_copy(words->client_name, sizeof(words->client_name),
                         o->client_name != NULL ? o->client_name : "");
        (void) text_copy(words->hint, sizeof(words->hint), o->name_hint != NULL ? o->name_hint : "");
        (void) text_copy(words->peer, sizeof(words->peer),
                         o->peer != NULL ? o->peer
                         : o->server     ? "client"
                                         : "server");
        (void) text_copy(words->authority, sizeof(words->authority),
                         o->authority != NULL ? o->authority : "the CA");
}

bool tls_reason_asks(const struct tls_reason_words *words)
{
        unsigned char bytes[16];

        return !words->server && inet_pton(AF_INET, words->name, bytes) != 1 &&
               inet_pton(AF_INET6, words->name, bytes) != 1;
}

/* "... has expired": what is said of a certificate. @of_server: it is a server's */
static void describe(const struct tls_reason_words *words, enum tls_reason reason, bool of_server, char *text,
                     size_t size)
{
        switch (reason) {
        case TLS_REASON_EXPIRED:
                (void) text_copy(text, size, "has expired");
                break;
        case TLS_REASON_NOT_YET_VALID:
                (void) text_copy(text, size, "is not valid yet; look at the clocks");
                break;
        case TLS_REASON_NO_CERTIFICATE:
                (void) text_copy(text, size, "is missing");
                break;
        case TLS_REASON_UNTRUSTED:
                (void) text_format(text, size, "is not of %s", words->authority);
                break;
        case TLS_REASON_OTHER_NAME:
                (void) text_format(text, size, "does not have the name '%.60s'%s%s",
                                   of_server ? words->name : words->client_name,
                                   words->hint[0] != '\0' ? "; " : "", words->hint);
                break;
        case TLS_REASON_PURPOSE:
                (void) text_format(text, size, "is not made for a %s (extended key usage %sAuth)",
                                   of_server ? "server" : "client", of_server ? "server" : "client");
                break;
        default:
                (void) text_copy(text, size,
                                 "is not acceptable: its key or signature is too weak, or not for this use");
        }
}

int tls_reason_own(const struct tls_reason_words *words, const struct tls_options *options,
                   enum tls_reason reason, struct err *err)
{
        char text[TRANSPORT_WHY_BYTES];

        describe(words, reason, words->server, text, sizeof(text));
        return err_set(err, -EINVAL, "%s %s (%s)", options->identity.certificate.from, text,
                       reason == TLS_REASON_OTHER_NAME || reason == TLS_REASON_PURPOSE
                               ? "or make one that has it"
                               : options->identity.ca.from);
}

void tls_reason_refuse(const struct tls_reason_words *words, enum tls_reason reason,
                       struct transport *transport)
{
        char text[TRANSPORT_WHY_BYTES];

        transport->refused = reason != TLS_REASON_LEFT;
        switch (reason) {
        case TLS_REASON_PEER_REFUSES:
                (void) text_format(
                        transport->why, sizeof(transport->why),
                        "TLS: the %s refuses this side's certificate; is it of the same CA, and still valid?",
                        words->peer);
                break;
        case TLS_REASON_PLAIN:
                (void) text_format(transport->why, sizeof(transport->why),
                                   "TLS: the %s does not speak TLS; give both sides their keys, or neither",
                                   words->peer);
                break;
        case TLS_REASON_LEFT:
                (void) text_format(transport->why, sizeof(transport->why),
                                   "TLS: the %s left; it may not trust this side's certificate", words->peer);
                break;
        default:
                describe(words, reason, !words->server, text, sizeof(text));
                (void) text_format(transport->why, sizeof(transport->why), "TLS: the %s's certificate %s",
                                   words->peer, text);
        }
}

void tls_reason_broken(const struct tls_reason_words *words, const char *what, struct transport *transport)
{
        if (transport->why[0] == '\0')
                (void) text_format(transport->why, sizeof(transport->why),
                                   "TLS: no connection with the %s (%s)", words->peer, what);
}

bool tls_reason_is_plain(const struct tls_reason_words *words, int fd, bool *begun,
                         struct transport *transport)
{
        static const unsigned char alert[] = { 0x15, 3, 3, 0, 2, 2, 70 /* protocol_version */ };
        unsigned char bytes[4096];
        ssize_t n;

        if (!words->server || *begun)
                return false;
        n = recv(fd, bytes, 1, MSG_PEEK | MSG_DONTWAIT);
        *begun = n == 1;
        if (n != 1 || bytes[0] == HANDSHAKE)
                return false;
        while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0) /* unread, it would reset the connection */
                continue;
        (void) !send(fd, alert, sizeof(alert), MSG_NOSIGNAL | MSG_DONTWAIT);
        tls_reason_refuse(words, TLS_REASON_PLAIN, transport);
        return true;
}
