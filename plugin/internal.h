/* What the files of plugin/ share: the plugin's state, a resource's state, and who does what.
 *
 *   plugin.c         life, the snapshot, what it means for each resource
 *   resource.c       one resource: its socket, its servers, its list
 *   registration.c   telling the kubelet, again and again until it listens
 *   kubelet_watch.c  noticing that there is a new kubelet
 *   watcher.c        the other way to register: the kubelet's plugin watcher
 *   list_and_watch.c the stream of lists
 *   allocate.c       Allocate, PreStartContainer, options
 *   preferred.c      GetPreferredAllocation;  cdi.c  the CDI spec files */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/inventory/prefer.h"
#include "agent/vendor/vendor.h"
#include "base/pb_arena.h"
#include "io/grpc/grpc_client.h"
#include "io/grpc/grpc_server.h"
#include "plugin/plugin.h"

#define LAUNCH_SOCKET_DIRECTORY "/run/remuda" /* where remuda-launch looks for the agent */
#define API_VERSION             "v1beta1"
#define RETIRED_SERVERS_MAX     4
#define REQUEST_MAX_BYTES       ((size_t) 1 << 20) /* 1,024 devices x 256 replicas do not ask for more at once */
#define REQUEST_ARENA_BYTES     ((size_t) 8 << 20)
#define LIST_MAX_BYTES          (GRPC_MESSAGE_MAX_BYTES - 4096) /* the kubelet receives no more than 4 MiB */
#define LIST_COALESCE_USEC      ((uint64_t) 50000) /* the kubelet writes its checkpoint for every list */
#define TICK_USEC               ((uint64_t) 1000000)
#define REGISTER_TIMEOUT_USEC   ((uint64_t) 15000000) /* the kubelet gives itself 10 s to dial back */
#define SHARED_FILES_MAX        16
#define SHARED_MOUNTS_MAX       16
#define STREAM_WAIT_USEC        ((uint64_t) 5000000) /* registered, but nobody reads: register again */

/* A packed ListAndWatchResponse, shared by the streams that send it. */
struct list {
        unsigned references;
        unsigned devices, healthy;
        bool truncated;
        size_t size_bytes;
        uint8_t *bytes;
};

struct list_stream {
        struct list_stream *next;
        struct resource *resource;
        struct grpc_server *server; /* the one it came through */
        struct grpc_call *call;
        struct list *sent; /* NULL = nothing yet */
        uint64_t since_usec;
};

enum registration_state {
        REGISTRATION_IDLE,    /* no kubelet, or nothing to tell it yet */
        REGISTRATION_BACKOFF, /* the timer runs */
        REGISTRATION_CALLING, /* Register is on its way */
        REGISTRATION_DONE     /* accepted; the timer runs until a stream opens */
};

/* What a snapshot makes of a resource, put together beside what is in use. */
struct membership {
        char vendor[24];
        unsigned shares;
        size_t *members;
        size_t count, capacity;
        struct prefer_map prefer;
};

/* What a container gets with any device of the resource, as far as it exists on this node. */
struct shared_parts {
        const struct vendor_variable *variable; /* that says which devices; NULL = none */
        const char *files[SHARED_FILES_MAX];
        size_t file_count;
        const struct vendor_mount *mounts[SHARED_MOUNTS_MAX];
        size_t mount_count;
};

struct resource {
        struct plugin *plugin;
        struct resource *next;
        char name[DEVICE_RESOURCE_BYTES];
        char vendor[24];
        unsigned shares; /* ids per device; 1 = plain ids */
        struct shared_parts shared;

        /* devices: indexes into the plugin's inventory, in canonical order */
        size_t *members;
        size_t member_count;
        struct prefer_map prefer;
        struct membership incoming;

        struct grpc_server *server;
        struct grpc_server *retired[RETIRED_SERVERS_MAX];
        char endpoint[108]; /* file name of the server's socket */
        bool bind_failed;

        struct list *list;
        struct list_stream *streams;
        uint64_t list_sent_usec;
        sd_event_source *list_timer;

        enum registration_state state;
        unsigned failures; /* in a row: the back-off's exponent */
        sd_event_source *registration_timer;
        struct grpc_client_call *registration_call;

        struct plugin_resource_status status;
};

struct kubelet_watch {
        sd_event_source *inotify, *tick;
        uint64_t device, inode;
        int64_t changed_nsec; /* ctime of the socket, so that a reused inode is not taken for the old kubelet
                               */
        bool present;
};

/* Which resource a device of the inventory was offered under. */
struct owner {
        struct resource *resource; /* NULL = none */
        size_t position;           /* among its members */
        bool held;                 /* was another's until now: not offered before that list has gone out */
};

struct plugin {
        sd_event *loop;
        char directory[200];
        struct plugin_config config;
        const struct tree *tree;
        void (*log)(void *userdata, int priority, const char *line);
        void (*on_allocate)(void *userdata);
        void *userdata;

        struct inventory inventory;
        struct owner *owners; /* one for each of its devices */
        size_t *by_id;        /* its devices, sorted by id */
        struct resource *resources;
        size_t resource_count;
        char instance[9]; /* in socket names: no two instances share one */
        unsigned serial;
        struct kubelet_watch watch;
        struct grpc_client *kubelet;
        uint64_t kubelet_seen_total;
        struct plugin_resource_status *statuses;
        sd_event_source *moves; /* devices that change their resource wait here for the old list to go out */
};

uint64_t plugin_now_usec(void);
void plugin_log(struct plugin *plugin, int priority, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* plugin_find() - the offered device whose id is id[0..n): its index in the inventory, or -1. */
ssize_t plugin_find(const struct plugin *plugin, const char *id, size_t n);

/* resource.c */
int resource_new(struct plugin *plugin, const char *name, struct resource **ret, struct err *err);
void resource_free(struct resource *resource);
/* resource_serve() - a fresh socket under a fresh name; an older server lives on for those it serves. */
int resource_serve(struct resource *resource, struct err *err);
void resource_check(struct resource *resource); /* every tick: is the socket still there? */
void resource_trouble(struct resource *resource, const char *sentence);
extern const struct grpc_method resource_methods[];

/* registration.c */
void registration_begin(struct resource *resource, uint64_t delay_usec);
void registration_stream_opened(struct resource *resource);
void registration_stream_lost(struct resource *resource, uint64_t lived_usec);
void registration_accepted(struct resource *resource);
void registration_refused(struct resource *resource, const char *sentence);
void registration_free(struct resource *resource);

/* kubelet_watch.c */
int kubelet_watch_start(struct plugin *plugin, struct err *err);
void kubelet_watch_stop(struct plugin *plugin);

/* list_and_watch.c */
void list_unref(struct list *list);
int list_build(struct resource *resource, struct list **ret);
void list_update(struct resource *resource, struct list *list); /* takes the reference */
void list_and_watch(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void list_streams_free(struct resource *resource);

/* allocate.c, preferred.c, watcher.c: method handlers */
void allocate(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void pre_start_container(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void get_options(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void preferred(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void watcher_info(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);
void watcher_status(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size_bytes);

/* resource_find() - the device that an id of this resource stands for ("id", or "id::k" of a shared one).
 * Return: its position among the members, or -1. */
ssize_t resource_find(const struct resource *resource, const char *id);

/* cdi.c */
int cdi_write(struct plugin *plugin, struct err *err);
/* cdi_name() - "remuda.dev/nvidia=GPU-..."; false when the id cannot be a CDI name. */
bool cdi_name(const struct device *device, char *ret, size_t ret_bytes);
