/* DRA account: what the device plugin gives, noted on disk under the lock that claims are prepared under: of
 * two instances that serve side by side, each with both APIs, one alone gives a device. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct dra;

/* dra_account_grant() - the device plugin gives these devices, unless a claim has one: noted, for every
 * instance, until the kubelet's answer of @asked_usec or a later one says who has them. 0; -EBUSY and who has
 * it; or another negative errno: not noted, so not to be given. */
int dra_account_grant(struct dra *dra, const char *const *ids, size_t count, uint64_t asked_usec,
                      struct err *err);
bool dra_account_granted(const struct dra *dra, const char *id, uint64_t asked_usec);

/* dra_account_has_claims() - did an agent of this node prepare claims that nobody has given up? Reads its
 * file; where there is none, the CDI specs. */
bool dra_account_has_claims(const char *kubelet_root, const char *cdi_directory);
