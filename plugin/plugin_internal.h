/* The plugin's state, for the files that serve it: owned by plugin.c, which alone changes what a snapshot
 * means. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "agent/inventory/inventory.h"
#include "plugin/plugin_config.h"
#include "plugin/plugin_status.h"

struct kubelet_watch;
struct resource;

/* Which resource a device of the inventory was offered under. */
struct plugin_owner {
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
        int (*on_grant)(void *userdata, const char *const *ids, size_t count, struct err *err);
        void (*on_registered)(void *userdata);
        void *userdata;

        struct inventory inventory;
        struct plugin_owner *owners; /* one for each of its devices */
        size_t *by_id;               /* its devices, sorted by id */
        struct resource *resources;
        size_t resource_count;
        char instance[9]; /* in socket names: no two instances share one */
        unsigned serial;
        const struct grpc_method *methods; /* that every resource serves */
        struct kubelet_watch *watch;
        struct grpc_client *kubelet;
        struct plugin_status_resource *statuses;
        sd_event_source *moves; /* devices that change their resource wait here for the old list to go out */
};

uint64_t plugin_now_usec(void);
void plugin_log(struct plugin *plugin, int priority, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* plugin_find() - the offered device whose id is id[0..n): its index in the inventory, or -1. */
ssize_t plugin_find(const struct plugin *plugin, const char *id, size_t n);
