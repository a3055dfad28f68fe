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
 *     selectorsOf: [nvidia]     # vendors by whose own drivers' attributes claims may select, too
 *     launchSocket: ""          # a directory mounted read-only into every container that gets a device
 *
 * A rule's `group`, `vendor` and `model` are shell patterns of * and ?; what is left out matches all. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "agent/inventory/resource_map.h"
#include "base/err.h"

#define PLUGIN_CONFIG_SELECTORS_MAX 4
#define PLUGIN_CONFIG_VENDOR_BYTES  16

/* PLANNED: by DRA, but in no slice: claims alone have them that remuda-controller allocates by itself.
 * UNSAID: the agent's option decides, and without it the device plugin. */
enum plugin_config_offer {
        PLUGIN_CONFIG_PLUGIN,
        PLUGIN_CONFIG_BOTH,
        PLUGIN_CONFIG_DRA,
        PLUGIN_CONFIG_PLANNED,
        PLUGIN_CONFIG_UNSAID
};
extern const char *const plugin_config_offers[]; /* their words; UNSAID has none: NULL ends them */

#define PLUGIN_CONFIG_SELECTORS_ATTRIBUTES_MAX 11 /* of all of `selectorsOf`: the API's 32 less our own */

struct plugin_config {
        enum plugin_config_offer offer; /* `offer:` plugin | both | dra | planned: by which API of the kubelet
                                         */
        struct resource_map resources;
        bool watcher; /* register through the plugin watcher instead of kubelet.sock */
        char plugins_registry[80];
        char device_root[200];
        bool cdi_names;
        char cdi_directory[200];
        char launch_socket_directory[200];
        char selectors[PLUGIN_CONFIG_SELECTORS_MAX]
                      [PLUGIN_CONFIG_VENDOR_BYTES]; /* vendors, vendor_selectors_of() each */
        size_t selector_count;
};

/* plugin_config_offers_plugin() - is the device plugin one of the APIs by which devices are offered? */
bool plugin_config_offers_plugin(const struct plugin_config *config);

/* plugin_config_claims_folder() - where the CDI specs of claims are: as @option (--cdi-dir; NULL = not given)
 * or plugin.cdi.directory says, in this order. Borrowed from both. */
const char *plugin_config_claims_folder(const struct plugin_config *config, const char *option);

/* plugin_config_default() - what is used without a configuration. */
void plugin_config_default(struct plugin_config *ret);

/* plugin_config_parse() - @root: the whole configuration object; keys of others are left alone.
 * Return: 0, or -EBADMSG and *err says "plugin.cdi.names: must be...". @ret is written on success only. */
int plugin_config_parse(const json_t *root, struct plugin_config *ret, struct err *err);
