/* Plugin configuration: the keys `offer:`, `resources:` and `plugin:` of the agent's configuration file.
 *
 *   resources:
 *     by: vendor                # vendor (default) | model | group: one resource for each
 *     rules:                    # the first that matches a group decides; `by` for the rest
 *     - {vendor: nvidia, model: "H100*", resource: example.com/h100}
 *     - {group: nvidia-a100-0, replicas: 4}
 *   plugin:
 *     registration: kubelet     # kubelet (its socket) | watcher (a socket in pluginsRegistry)
 *     pluginsRegistry: /var/lib/kubelet/plugins_registry
 *     deviceRoot: ""            # put before the path of a device file on the host
 *     cdi: {names: false, directory: ""}   # CDI names in answers; where a spec file is written, "" = nowhere
 *     launchSocket: ""          # a directory mounted read-only into every container that gets a device
 *
 * A rule's `group`, `vendor` and `model` are shell patterns of * and ?; what is left out matches all. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "agent/inventory/resource_map.h"
#include "base/err.h"

enum plugin_config_offer { PLUGIN_CONFIG_PLUGIN, PLUGIN_CONFIG_BOTH, PLUGIN_CONFIG_DRA };

struct plugin_config {
        enum plugin_config_offer
                offer; /* `offer:` plugin (default) | both | dra: by which API of the kubelet */
        struct resource_map resources;
        bool watcher; /* register through the plugin watcher instead of kubelet.sock */
        char plugins_registry[80];
        char device_root[200];
        bool cdi_names;
        char cdi_directory[200];
        char launch_socket_directory[200];
};

/* plugin_config_default() - what is used without a configuration. */
void plugin_config_default(struct plugin_config *ret);

/* plugin_config_parse() - @root: the whole configuration object; keys of others are left alone.
 * Return: 0, or -EBADMSG and *err says "plugin.cdi.names: must be...". @ret is written on success only. */
int plugin_config_parse(const json_t *root, struct plugin_config *ret, struct err *err);
