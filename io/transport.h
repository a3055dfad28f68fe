/* Transport: what a connection's bytes go through on their way, such as TLS.
 *
 * read() and write() answer as recv() and send() would, but with a negative errno: -EAGAIN (later;
 * wants_write says which way it waits), another one = the end, with `why`. A read of 0 is the end, too: quiet
 * if `why` is "". */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TRANSPORT_WHY_BYTES     160
#define TRANSPORT_BINDING_BYTES 32

struct transport {
        ssize_t (*read)(struct transport *transport, uint8_t *buffer, size_t size_bytes);
        ssize_t (*write)(struct transport *transport, const uint8_t *bytes, size_t size_bytes);
        bool (*pending)(const struct transport *transport); /* taken from the socket, not yet read */
        void (*free)(struct transport *transport);
        bool wants_write;
        bool refused; /* one side does not trust the other: to try again is of no use */
        bool named;   /* the peer has shown a certificate that is believed */
        /* What ties a proof to this channel: the SHA-256 of the server's certificate (RFC 5929, 4). */
        uint8_t binding[TRANSPORT_BINDING_BYTES];
        char why[TRANSPORT_WHY_BYTES];
};

/* transport_wrap - the transport of a new descriptor, which stays the connection's; NULL = no memory. */
typedef struct transport *(*transport_wrap)(void *userdata, int fd);
