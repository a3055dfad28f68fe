/* The Lease of extenders, read once. */
#include "cli/command/leading.h"

#include <errno.h>
#include <string.h>

#include "base/json/json_field.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "store/leader.h"
#include "store/lease.h"

#define STEP_USEC UINT64_C(10000000)

static int read_lease(const json_t *lease, struct leading *ret, struct err *err)
{
        struct json_field root = json_field_root(lease), metadata = json_field_get(&root, "metadata"),
                          annotations = json_field_get(&metadata, "annotations"),
                          spec = json_field_get(&root, "spec");
        const char *holder = "", *address = "", *colon;
        uint64_t port = 0;

        (void) json_field_string(&spec, "holderIdentity", &holder, NULL);
        (void) json_field_string(&annotations, LEASE_ADDRESS, &address, NULL);
        if (holder[0] == '\0')
                return err_set(err, -ENOENT, "none leads");
        if (!kube_name_is_safe(holder))
                return err_set(err, -ENOENT, "the one that leads, '%.100s', is no pod: name its address",
                               holder);
        colon = strrchr(address, ':');
        if (colon == NULL || text_parse_uint64(colon + 1, &port) < 0 || port == 0 || port > UINT16_MAX)
                return err_set(err, -EPROTO, "its Lease does not say where it listens: name its address");
        (void) text_copy(ret->pod, sizeof(ret->pod), holder);
        ret->port = (unsigned) port;
        return 0;
}

int leading_find(struct exchange *e, struct kube_client *client, const char *namespace_, struct leading *ret,
                 struct err *err)
{
        char path[400], sentence[300] = "";
        struct kube_request request = { .method = "GET",
                                        .path = path,
                                        .reply_max_bytes = 1 << 20,
                                        .timeout_usec = STEP_USEC,
                                        .done = exchange_done,
                                        .userdata = e };
        json_t *lease = NULL;
        int r;

        (void) text_format(path, sizeof(path), LEASE_COLLECTION "/" LEADER_EXTENDER, namespace_);
        if (kube_call_start(client, &request, NULL) < 0)
                return err_set(err, -ENOMEM, "no memory for a look at the Lease");
        r = exchange_await(e, err);
        if (r < 0)
                return r;
        ret->heard = e->result.status != 0;
        r = kube_result(&e->result, sentence, sizeof(sentence));
        if (r < 0)
                return err_set(err, r, "%s%s", ret->heard ? "" : "the API server: ", sentence);
        lease = json_read(e->result.body, e->result.body_bytes, 0, err);
        r = lease == NULL ? -EBADMSG : read_lease(lease, ret, err);
        json_decref(lease);
        return r;
}
