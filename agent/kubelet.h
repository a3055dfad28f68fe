/* Kubelet: the agent's side of the device plugin: what was told goes to the kubelet at once, and who holds
 * what comes back from its pod-resources socket. */
#pragma once

#include "agent/inventory/device.h"
#include "base/err.h"

struct agent;

/* kubelet_open() - as the options say ("none": neither). Needs agent->tree and agent->plugin_config. */
int kubelet_open(struct agent *agent, struct err *err);
void kubelet_close(struct agent *agent);

/* kubelet_name_resources() - the configuration's resource names and shares, and what is free, in an inventory
 * that is about to be told. */
void kubelet_name_resources(struct agent *agent, struct inventory *inventory);

/* kubelet_told() - agent->told is new. */
void kubelet_told(struct agent *agent);
