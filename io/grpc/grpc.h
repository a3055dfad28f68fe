/* gRPC: what gRPC adds to HTTP/2: status codes, message frames, timeouts, percent-encoded sentences.
 *
 * Pure but for the heap: no descriptor, no clock. Used by grpc_server and grpc_client. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum grpc_status {
        GRPC_OK = 0,
        GRPC_CANCELLED = 1,
        GRPC_UNKNOWN = 2,
        GRPC_INVALID_ARGUMENT = 3,
        GRPC_DEADLINE_EXCEEDED = 4,
        GRPC_NOT_FOUND = 5,
        GRPC_ALREADY_EXISTS = 6,
        GRPC_PERMISSION_DENIED = 7,
        GRPC_RESOURCE_EXHAUSTED = 8,
        GRPC_FAILED_PRECONDITION = 9,
        GRPC_ABORTED = 10,
        GRPC_OUT_OF_RANGE = 11,
        GRPC_UNIMPLEMENTED = 12,
        GRPC_INTERNAL = 13,
        GRPC_UNAVAILABLE = 14,
        GRPC_DATA_LOSS = 15,
        GRPC_UNAUTHENTICATED = 16,
        GRPC_STATUS_COUNT
};

#define GRPC_MESSAGE_MAX_BYTES ((size_t) 4 << 20) /* what grpc-go receives at most unless told otherwise */
#define GRPC_FRAME_BYTES       5                  /* compressed flag and big-endian length */
#define GRPC_SENTENCE_BYTES    512                /* of a grpc-message, decoded, with its NUL */

const char *grpc_status_name(enum grpc_status status); /* "DEADLINE_EXCEEDED" */

/* grpc_header_is() - @name, @size: as HTTP/2 gives it, not terminated. */
bool grpc_header_is(const char *header, const uint8_t *name, size_t size);

/* grpc_status_of_http() - what a reply that is no gRPC reply means, by its HTTP status. */
enum grpc_status grpc_status_of_http(unsigned http_status);

/* A deframer joins the bytes of a stream into messages. Zero-initialised but for max_bytes;
 * grpc_deframer_free() releases. Memory grows with what has arrived, never with what a length claims. */
struct grpc_deframer {
        size_t max_bytes; /* of one message */
        uint8_t header[GRPC_FRAME_BYTES];
        size_t header_bytes;
        uint8_t *body;
        size_t size_bytes; /* as claimed, <= max_bytes */
        size_t have_bytes, capacity_bytes;
};

enum { GRPC_FRAME_MESSAGE = 1 };

/* grpc_deframer_feed() - take bytes until a message is whole or none are left.
 * @data, @size: advanced past what was taken
 * Return: 0 (all taken, nothing whole yet); GRPC_FRAME_MESSAGE (body[0..size_bytes) is a message until the
 * next call; call again for the rest); -EPROTONOSUPPORT (compressed), -EMSGSIZE (larger than max_bytes),
 * -EBADMSG (no such flag), -ENOMEM. After a negative answer the stream is beyond reading. */
int grpc_deframer_feed(struct grpc_deframer *deframer, const uint8_t **data, size_t *size);
bool grpc_deframer_partial(const struct grpc_deframer *deframer); /* inside a message */
void grpc_deframer_free(struct grpc_deframer *deframer);

/* grpc_frame() - a message with its frame before it, malloc'd. NULL when out of memory or too large. */
uint8_t *grpc_frame(const uint8_t *message, size_t size_bytes, size_t *ret_bytes);

/* grpc_timeout_parse() - "100m" -> microseconds. Return: 0 or -EINVAL. */
int grpc_timeout_parse(const char *text, size_t size, uint64_t *ret_usec);
/* grpc_timeout_format() - at most 8 digits and a unit, rounded up. */
void grpc_timeout_format(uint64_t usec, char *ret, size_t ret_bytes);

/* grpc_sentence_encode(), grpc_sentence_decode() - grpc-message is percent-encoded; cut short to fit. */
void grpc_sentence_encode(const char *sentence, char *ret, size_t ret_bytes);
void grpc_sentence_decode(const char *encoded, size_t size, char *ret, size_t ret_bytes);

struct grpc_call; /* at a server: io/grpc/grpc_call.h */

/* The message is borrowed for the call. The handler must finish the call, or keep it. */
typedef void (*grpc_handler)(void *userdata, struct grpc_call *call, const uint8_t *message,
                             size_t size_bytes);

struct grpc_method {
        const char *path; /* "/v1beta1.DevicePlugin/Allocate" */
        grpc_handler handler;
};
