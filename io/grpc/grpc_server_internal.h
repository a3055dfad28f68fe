/* The inside of a gRPC server: grpc_server.c (connections, listening) and grpc_call.c (what comes and goes on
 * a stream). Nobody else includes this. */
#pragma once

#include <sys/types.h>

#include "io/grpc/grpc_connection.h"
#include "io/grpc/grpc_server.h"

#define GRPC_PATH_BYTES 128

struct grpc_peer {
        struct grpc_connection connection;
        struct grpc_server *server;
        struct grpc_peer *next, *previous;
        struct grpc_call *calls;
        size_t call_count;
        uint64_t number;    /* of all that were ever accepted */
        uint64_t last_used; /* a counter of the server: who has been idle longest */
};

struct grpc_server {
        sd_event *loop;
        sd_event_source *accept, *accept_pause;
        int fd;
        char address[160];
        dev_t device;
        ino_t inode;
        struct grpc_server_options options;
        struct grpc_peer *peers;
        size_t peer_count;
        uint64_t uses, accepted;
};

/* One stream. It lives from its first header to the stream's end, whatever the application does. */
struct grpc_call {
        struct grpc_peer *peer;
        struct grpc_call *next, *previous;
        int32_t stream;
        const struct grpc_method *method;
        char path[GRPC_PATH_BYTES];
        bool post, grpc_content, encoded, bad_timeout;
        uint64_t timeout_usec; /* 0 = none */
        struct grpc_deframer in;
        uint8_t *request; /* the message, once whole */
        size_t request_bytes;
        bool have_request, remote_done, answered, finished;
        uint8_t *out; /* frame on its way */
        size_t out_bytes, out_offset;
        enum grpc_status status;
        char sentence[GRPC_SENTENCE_BYTES];
        sd_event_source *deadline;
        bool kept;
        void (*on_idle)(void *userdata, struct grpc_call *call);
        void (*on_closed)(void *userdata, struct grpc_call *call);
        void *userdata;
};

/* grpc_peer_session() - an HTTP/2 session whose streams are the peer's calls. Return: 0 or -ENOMEM. */
int grpc_peer_session(struct grpc_peer *peer, nghttp2_session **ret);

/* grpc_call_free() - out of its peer's list; who keeps it is told that it is closed. */
void grpc_call_free(struct grpc_call *call);
