/* Leading: which extender of a cluster leads, and at which port of its pod it is asked, as its Lease says. */
#pragma once

#include <stdbool.h>

#include "cli/command/exchange.h"
#include "store/kubernetes/kube.h"

struct leading {
        char pod[254];
        unsigned port;
        bool heard; /* the API server has answered */
        bool said;  /* of who asks it something then: it has refused the question */
};

/* leading_find() - while the loop of the exchange runs. Return: 0; -ENOENT: none leads, or no pod; -EPROTO:
 * the Lease does not say where it listens; or what the API server says. */
int leading_find(struct exchange *e, struct kube_client *client, const char *namespace_, struct leading *ret,
                 struct err *err);
