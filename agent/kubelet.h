/* Kubelet: the agent's side of the kubelet: what is published goes to it at once, by the device plugin, by
 * DRA or by both (`offer`), and who holds what comes back from its pod-resources socket. A device that one of
 * the two has given is out of the other. */
#pragma once

#include "agent/agent_options.h"
#include "agent/config/services.h"
#include "agent/inventory/holder.h"
#include "base/err.h"
#include "plugin/dra/dra_status.h"
#include "plugin/plugin.h"
#include "plugin/plugin_config.h"

struct kubelet;

/* kubelet_new() - @options: where the kubelet is (`kubelet_dir` "none", and neither DRA nor, where an option
 * says so, claims of before: there is none, and *ret stays NULL), who is asked who holds what, and by which
 * APIs devices are offered; borrowed for its life, as
 * @node. */
int kubelet_new(const struct services *services, const struct agent_options *options, const char *node,
                const struct plugin_config *config, const struct tree *tree, struct kubelet **ret,
                struct err *err);
void kubelet_free(struct kubelet *kubelet); /* accepts NULL, as all of these do */

void kubelet_set_tree(struct kubelet *kubelet, const struct tree *tree);

/* kubelet_configure() - another `offer` opens one API and closes another; who holds a device keeps it. */
void kubelet_configure(struct kubelet *kubelet, const struct plugin_config *config);

/* kubelet_fill() - what is free and what is lost to whom, in an inventory that is about to be published. */
void kubelet_fill(struct kubelet *kubelet, struct inventory *inventory);

/* kubelet_publish() - this is offered from now on. */
void kubelet_publish(struct kubelet *kubelet, const struct inventory *inventory);

/* kubelet_holders() - as services->holders, claims included; kubelet_ask_holders() - somebody waits for a
 * newer answer. */
size_t kubelet_holders(struct kubelet *kubelet, const struct holder **ret, uint64_t *ret_asked_usec);
void kubelet_ask_holders(struct kubelet *kubelet);
bool kubelet_knows_holders(const struct kubelet *kubelet); /* are they asked for at all? */

/* kubelet_serves() - as services->serves; true where there is no kubelet. */
bool kubelet_serves(struct kubelet *kubelet);

/* kubelet_status() - of the device plugin. Return: false without one. */
bool kubelet_status(struct kubelet *kubelet, struct plugin_status *ret);

/* kubelet_dra_status() - of the DRA driver. Return: false without one. */
bool kubelet_dra_status(const struct kubelet *kubelet, struct dra_status *ret);
