/* Page agents: what GET /v1/agents says of the agent of a node: as it told itself, and as far as the cluster
 * tells. docs/reference/page.md has the fields. Pure. */
#pragma once

#include "scheduler-extender/page/page_fleet.h"

enum page_agents_registered { PAGE_AGENTS_NOT_KNOWN, PAGE_AGENTS_REGISTERED, PAGE_AGENTS_NOT_REGISTERED };

/* page_agents_registered() - has the kubelet taken all that the agent offers? As the agent says; of one that
 * does not say, its Node object has to offer some of each resource of which the agent has usable devices.
 * O(1) but for those. @of: may be NULL */
enum page_agents_registered page_agents_registered(const struct page_node_told *told,
                                                   const struct ledger *ledger, const struct ledger_node *of);

void page_agents_write(struct json_writer *w, const struct page_fleet_node *node);
