/* Claim CDI: a claim's spec file: what a container that uses the claim gets, as a runtime puts it in.
 *
 * Kind remuda.dev/claim. A device of it is a device's own files, "UID.device.NAME"; another one,
 * "UID.request.NAME", what the devices of a request need together: the vendor's other files, mounts, the
 * variables that Allocate would give. The kubelet hands both on to the containers that use the request.
 *
 * Beside that, in an annotation that runtimes pass over, what the account has of the claim: where that is
 * lost it is made anew from these (claim_records.h). */
#pragma once

#include <jansson.h>

#include "agent/inventory/inventory.h"
#include "agent/tree/tree.h"
#include "base/err.h"
#include "plugin/dra/account/dra_state.h"
#include "plugin/plugin_config.h"

#define CLAIM_CDI_KIND       "remuda.dev/claim"
#define CLAIM_CDI_NAME_BYTES 192
#define CLAIM_CDI_RECORD     "remuda.dev/claim" /* the annotation: a line of the journal that adds the claim */
#define CLAIM_CDI_RECORD_MAX ((size_t) 256 << 10) /* CDI's bound, of names and values of all annotations */
#define CLAIM_CDI_PATH_BYTES 512
#define CLAIM_CDI_MAX_BYTES  ((size_t) 4 << 20)    /* of a spec */
#define CLAIM_CDI_SHARES     "REMUDA_SHARE_MEMORY" /* what a container has of the memory of shared devices */

/* What the files of claims follow from. */
struct claim_cdi_node {
        const char *directory;
        const struct inventory *inventory;
        const struct plugin_config *config;
        const struct tree *tree; /* NULL = no file or mount of a vendor's is there */
};

/* claim_cdi_build() - Return: 0; -EBADMSG: a request has devices of several resources; -ENOMEM. */
int claim_cdi_build(const struct claim_cdi_node *node, const struct dra_state_claim *claim, json_t **ret,
                    struct err *err);

/* claim_cdi_write() - build it, and write it unless the file says it already. 0 or a negative errno. */
int claim_cdi_write(const struct claim_cdi_node *node, const struct dra_state_claim *claim, struct err *err);
void claim_cdi_remove(const char *directory, const char *uid);

/* claim_cdi_is_spec() - is it the name of a claim's file? *ret_uid: whose. */
bool claim_cdi_is_spec(const char *name, char ret_uid[DRA_STATE_UID_BYTES]);
bool claim_cdi_path(const char *directory, const char *uid, char ret[CLAIM_CDI_PATH_BYTES]);

/* claim_cdi_sweep() - remove the files of claims that are not in the state. */
void claim_cdi_sweep(const char *directory, const struct dra_state *state);

/* claim_cdi_device_name(), claim_cdi_request_name() - as the kubelet is told: "remuda.dev/claim=...". The
 * first device of a request brings its request's along. */
void claim_cdi_device_name(const struct dra_state_claim *claim, size_t device,
                           char ret[CLAIM_CDI_NAME_BYTES]);
void claim_cdi_request_name(const struct dra_state_claim *claim, size_t device,
                            char ret[CLAIM_CDI_NAME_BYTES]);
bool claim_cdi_is_first(const struct dra_state_claim *claim, size_t device);
