/* Claims request: what the kubelet sends of claims. */
#include "plugin/dra/claims_request.h"

#include <string.h>

#include "base/object_name.h"
#include "plugin/dra/account/dra_state.h"

#define CLAIMS_PER_CALL 1024

static bool is_valid(const Dra__Claim *claim)
{
        return dra_state_uid_valid(claim->uid) && object_name_label_valid(claim->namespace_) &&
               object_name_dns_valid(claim->name, strlen(claim->name));
}

Dra__ClaimsRequest *claims_request_unpack(struct pb_arena *arena, struct grpc_call *call,
                                          const uint8_t *message, size_t size_bytes)
{
        Dra__ClaimsRequest *request = pb_unpack(arena, &dra__claims_request__descriptor, message, size_bytes);

        if (request == NULL || request->n_claims > CLAIMS_PER_CALL) {
                grpc_call_finish(call, GRPC_INVALID_ARGUMENT,
                                 "the request is malformed, or has too many claims");
                return NULL;
        }
        for (size_t i = 0; i < request->n_claims; i++)
                if (!is_valid(request->claims[i])) {
                        grpc_call_finish(call, GRPC_INVALID_ARGUMENT,
                                         "a claim has no namespace, name and uid as Kubernetes makes them");
                        return NULL;
                }
        return request;
}
