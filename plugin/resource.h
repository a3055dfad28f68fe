/* Resource: one name that is offered to the kubelet: its devices, its socket and what serves on it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "agent/inventory/prefer_map.h"
#include "base/err.h"
#include "base/pb.h"
#include "io/grpc/grpc_client.h"
#include "io/grpc/grpc_server.h"
#include "plugin/environment.h"
#include "plugin/list_and_watch.h"
#include "plugin/plugin_status.h"
#include "plugin/registration.h"

#define RESOURCE_SERVERS_MAX 4                  /* that are retired and still feed streams */
#define RESOURCE_ARENA_BYTES ((size_t) 8 << 20) /* for one request */

struct plugin;

/* What a snapshot makes of a resource, put together beside what is in use. */
struct resource_members {
        char vendor[24];
        unsigned shares;
        size_t *members;
        size_t count, capacity;
        struct prefer_map prefer;
};

struct resource {
        struct plugin *plugin;
        struct resource *next;
        char name[DEVICE_RESOURCE_BYTES];
        char vendor[24];
        unsigned shares; /* ids per device; 1 = plain ids */
        struct environment_shared shared;

        /* devices: indexes into the plugin's inventory, in canonical order */
        size_t *members;
        size_t member_count;
        struct prefer_map prefer;
        struct resource_members incoming;

        struct grpc_server *server;
        struct grpc_server *retired[RESOURCE_SERVERS_MAX];
        char endpoint[108]; /* file name of the server's socket */

        struct list_and_watch_list *list;
        struct list_and_watch_stream *streams;
        uint64_t list_sent_usec;
        sd_event_source *list_timer;

        enum registration_state state;
        unsigned failures; /* in a row: the back-off's exponent */
        sd_event_source *registration_timer;
        struct grpc_client_call *registration_call;

        struct plugin_status_resource status;
};

int resource_new(struct plugin *plugin, const char *name, struct resource **ret, struct err *err);
void resource_free(struct resource *resource);

/* resource_serve() - a fresh socket under a fresh name, with the plugin's methods; an older server lives on
 * for those it serves. */
int resource_serve(struct resource *resource, struct err *err);
void resource_check(struct resource *resource); /* every tick: is the socket still there? */
void resource_trouble(struct resource *resource, const char *sentence);

/* resource_find() - the device that an id of this resource stands for ("id", or "id::k" of a shared one).
 * Return: its position among the members, or -1. */
ssize_t resource_find(const struct resource *resource, const char *id);
