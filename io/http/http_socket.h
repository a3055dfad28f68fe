/* HTTP socket: a WebSocket to the server of an HTTP client, by the client's own addresses, keys and trust.
 *
 * It is opened while the caller waits, within a time; messages then come and go on the loop. A message in
 * parts is put together, pings are answered. The client outlives it; owned by its creator, who does not
 * close it from its own callbacks. */
#pragma once

#include "io/http/http_client.h"

struct http_socket;

#define HTTP_SOCKET_MESSAGE_MAX_BYTES ((size_t) 1 << 20)
#define HTTP_SOCKET_REFUSAL_BYTES     4096

struct http_socket_options {
        const char *path; /* with query, begins with '/' */
        const char *protocol;
        const char *authorization; /* "Bearer ..." or NULL */
        uint64_t timeout_usec;     /* until it is open */
        void (*message)(void *userdata, const char *bytes, size_t size_bytes);
        void (*drained)(void *userdata); /* all that was sent has left */
        /* Nothing comes any more: once, the last call. @sentence: why, "" = the server has closed it */
        void (*ended)(void *userdata, const char *sentence);
        void *userdata;
};

/* What a server said that opens none, as the reply of a call: `body` is in `bytes`. */
struct http_socket_refusal {
        struct http_call_result result;
        char bytes[HTTP_SOCKET_REFUSAL_BYTES];
};

/* http_socket_open() - Return: 0; else a negative errno and *refusal. Only then *ret is untouched. */
int http_socket_open(sd_event *loop, struct http_client *client, const struct http_socket_options *options,
                     struct http_socket **ret, struct http_socket_refusal *refusal);
void http_socket_close(struct http_socket *socket); /* accepts NULL; no more calls */

/* http_socket_send() - a binary message. Return: 0 or -ENOMEM. http_socket_unsent() - bytes that have not
 * left yet. http_socket_hold() - no more messages while `hold`. */
int http_socket_send(struct http_socket *socket, const void *bytes, size_t size_bytes);
size_t http_socket_unsent(const struct http_socket *socket);
void http_socket_hold(struct http_socket *socket, bool hold);
