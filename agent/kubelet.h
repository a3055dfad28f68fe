/* Kubelet: the agent's side of the kubelet: what is published goes to it at once by the device plugin, and
 * who holds what comes back from its pod-resources socket. */
#pragma once

#include "agent/config/services.h"
#include "agent/inventory/holder.h"
#include "base/err.h"
#include "plugin/plugin.h"
#include "plugin/plugin_config.h"

struct kubelet;

/* kubelet_new() - @directory: of device plugins; "none" = there is no kubelet, and *ret stays NULL
 * @pod_resources: its socket; NULL = beside the directory; "none" = who holds what is not asked */
int kubelet_new(const struct services *services, const char *directory, const char *pod_resources,
                const struct plugin_config *config, const struct tree *tree, struct kubelet **ret,
                struct err *err);
void kubelet_free(struct kubelet *kubelet); /* accepts NULL, as all of these do */

void kubelet_set_tree(struct kubelet *kubelet, const struct tree *tree);
void kubelet_configure(struct kubelet *kubelet, const struct plugin_config *config);

/* kubelet_fill() - what is free and what is lost to whom, in an inventory that is about to be published. */
void kubelet_fill(const struct kubelet *kubelet, struct inventory *inventory);

/* kubelet_publish() - the plugin offers this from now on. */
void kubelet_publish(struct kubelet *kubelet, const struct inventory *inventory);

/* kubelet_holders() - as services->holders; kubelet_ask_holders() - somebody waits for a newer answer. */
size_t kubelet_holders(const struct kubelet *kubelet, const struct holder **ret, uint64_t *ret_asked_usec);
void kubelet_ask_holders(struct kubelet *kubelet);
bool kubelet_knows_holders(const struct kubelet *kubelet); /* are they asked for at all? */

/* kubelet_serves() - as services->serves; true where there is no kubelet. */
bool kubelet_serves(struct kubelet *kubelet);

/* kubelet_status() - Return: false without a kubelet. */
bool kubelet_status(struct kubelet *kubelet, struct plugin_status *ret);
