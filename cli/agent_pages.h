/* Agent pages: what the agents of a cluster's nodes measure, asked of all of them through the API server: of
 * the pod of each node that is an agent, by `pods/proxy`; of a node without one, where the agent may be a
 * service, at its port by `nodes/proxy`.
 *
 * So the caller reaches no more than kubectl does, with his own rights, and nothing new listens; the network
 * must let the API server reach the agents. At most AGENT_PAGES_PARALLEL requests are under way, each for
 * five seconds, all together for twenty: who is silent keeps no other waiting. */
#pragma once

#include <systemd/sd-event.h>

#include "base/err.h"
#include "cli/node_figures.h"

#define AGENT_PAGES_PARALLEL 32u

struct kube_client;

struct agent_page {
        const char *node; /* given */
        struct node_figures figures;
        char reason[160]; /* why nothing is known; "" = it has answered */
};

/* agent_pages_ask() - fills in what is not given, turning the loop. Return: 0; -ECANCELED: the loop has
 * ended, by a signal; -ENOMEM. */
int agent_pages_ask(sd_event *loop, struct kube_client *client, struct agent_page *pages, size_t count,
                    struct err *err);
