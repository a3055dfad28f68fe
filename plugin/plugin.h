/* Plugin: every resource of this node at the kubelet's door (device plugin API v1beta1), in one event loop.
 *
 * The agent hands over its snapshot with plugin_update() whenever it changed; the plugin finds out what that
 * means for each resource, serves one socket a resource, registers it, sends lists on change only, and
 * answers Allocate and GetPreferredAllocation from its own copy: handlers touch memory, never a disk or a
 * driver. A kubelet that restarts, refuses, answers late or goes away is followed without any help. One
 * resource's trouble never touches another's.
 *
 * Not thread-safe; everything happens in callbacks of the loop given. Nothing here prints: `log` gets one
 * line for what an operator should know. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/inventory/inventory.h"
#include "agent/tree/tree.h"
#include "base/err.h"
#include "plugin/plugin_config.h"
#include "plugin/plugin_status.h"

#define PLUGIN_KUBELET_DIRECTORY "/var/lib/kubelet/device-plugins"

struct plugin;

struct plugin_options {
        const char *kubelet_directory;      /* NULL = PLUGIN_KUBELET_DIRECTORY; need not exist yet */
        const struct plugin_config *config; /* copied; NULL = defaults */
        const struct tree *tree; /* borrowed for the plugin's life: which of a vendor's shared device files
                                    and mounts exist; NULL = assume none */
        void (*log)(void *userdata, int priority, const char *line); /* syslog priority; NULL = silent */
        void (*on_allocate)(void *userdata); /* a grant was just made: a good time to ask who holds what.
                                                Not a place to call back into the plugin */
        int (*on_grant)(void *userdata, const char *const *ids, size_t count,
                        struct err *err); /* these devices of one container, just before: 0, or it is refused
                                             with the sentence; may be NULL */
        void (*on_registered)(void *userdata); /* a resource is registered now, or is no more; may be NULL.
                                                  Not a place to call back into the plugin */
        void *userdata;
};

/* plugin_new() - start watching the kubelet's directory. Nothing is served before the first plugin_update().
 * Return: 0 or a negative errno; a kubelet that is not there is no error. */
int plugin_new(sd_event *loop, const struct plugin_options *options, struct plugin **ret, struct err *err);

/* plugin_free() - say goodbye, close and remove our own sockets. Accepts NULL. */
void plugin_free(struct plugin *plugin);

/* plugin_update() - the snapshot has changed (or may have: an equal one costs a comparison and sends
 * nothing). The inventory is borrowed for the call; its groups carry the resource names and the shares, so
 * that resource_map_apply() comes before. Devices in no group are not advertised. Return: 0 or -ENOMEM, and
 * then the lists of before go on. */
int plugin_update(struct plugin *plugin, const struct inventory *inventory, struct err *err);

/* plugin_set_tree() - the machine is read through another tree from now on; NULL = none. Streams go on. */
void plugin_set_tree(struct plugin *plugin, const struct tree *tree);

/* plugin_configure() - the configuration was reloaded. Takes effect for answers from now on; how to register
 * takes effect with the next registration. */
int plugin_configure(struct plugin *plugin, const struct plugin_config *config, struct err *err);

void plugin_status(struct plugin *plugin, struct plugin_status *ret);
