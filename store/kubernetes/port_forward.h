/* Port forward: a port of a pod as a UNIX socket here, through the API server and the node's kubelet, by the
 * rights of whoever asks (pods/portforward), as `kubectl port-forward` has it.
 *
 * Its messages are those of `v4.channel.k8s.io`: a byte that says the channel (0 data, 1 what went wrong),
 * and bytes; the first two bytes of a channel are the port. API servers since 1.5 hand them to the kubelet as
 * they are, whatever newer ways they know. */
#pragma once

#include <systemd/sd-event.h>

#include "base/err.h"
#include "store/kubernetes/kube.h"

struct port_forward;

struct port_forward_target {
        const char *namespace_, *pod;
        unsigned port;
};

#define PORT_FORWARD_NAME_BYTES 32

/* port_forward_open() - the caller waits until it stands, @timeout_usec at most.
 * @ret_name: "@...": a socket without a file, for one connection of this very process
 * (io/http/http_client.h), on which bytes go while the loop runs Return: 0; as kube_result() says (-EPERM no
 * right, -ENOENT no such pod) or the connection's error. */
int port_forward_open(sd_event *loop, struct kube_client *client, const struct port_forward_target *target,
                      uint64_t timeout_usec, struct port_forward **ret,
                      char ret_name[PORT_FORWARD_NAME_BYTES], struct err *err);
void port_forward_close(struct port_forward *forward); /* accepts NULL */

/* port_forward_failure() - why it has ended, where the other side said so: "" = it did not. Borrowed. */
const char *port_forward_failure(const struct port_forward *forward);
