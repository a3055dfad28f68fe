/* ListAndWatch: the stream of lists. A list is packed once for all streams and sent when it is another one,
 * and not more often than the kubelet can write its checkpoint. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct resource;

/* A packed ListAndWatchResponse, shared by the streams that send it. */
struct list_and_watch_list {
        unsigned references;
        unsigned devices, healthy;
        bool truncated;
        size_t size_bytes;
        uint8_t *bytes;
};

struct list_and_watch_stream {
        struct list_and_watch_stream *next;
        struct resource *resource;
        struct grpc_server *server; /* the one it came through */
        struct grpc_call *call;
        struct list_and_watch_list *sent; /* NULL = nothing yet */
        uint64_t since_usec;
};

int list_and_watch_open(struct resource *resource); /* 0 or a negative errno */
void list_and_watch_unref(struct list_and_watch_list *list);
int list_and_watch_build(struct resource *resource, struct list_and_watch_list **ret);
/* list_and_watch_update() - takes the reference; every stream gets it if it is another one than it had. */
void list_and_watch_update(struct resource *resource, struct list_and_watch_list *list);
void list_and_watch_handle(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void list_and_watch_close(struct resource *resource);
