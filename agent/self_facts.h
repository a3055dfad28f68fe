/* Self facts: what the agent publishes of itself (agent_facts.h), put together from its parts. */
#pragma once

#include "agent/inventory/agent_facts.h"

struct kubelet;
struct vendor_probe;

/* self_facts_fill() - @probe, @kubelet: NULL = there is none, and nothing is said of it */
void self_facts_fill(struct agent_facts *ret, const struct vendor_probe *probe, struct kubelet *kubelet);
