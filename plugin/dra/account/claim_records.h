/* Claim records: what the CDI specs of a folder say of the claims that they are of: enough to go on serving
 * these where their account is lost. A spec is there before its claim is answered, and goes when that is
 * given up; the folder is in memory, as /var/run is, and with it a record ends with the boot it is of. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "base/text.h"
#include "plugin/dra/account/dra_state.h"

/* claim_record_take() - the claim of a spec is added to the state, unless a device of it would have two
 * holders then. Pure.
 * @uid: which the spec's file is of
 * Return: 0; -EBADMSG: it is no record of this claim, -EBUSY: somebody else has its device, -E2BIG or
 * -ENOMEM, *err says why, and the state is as before */
int claim_record_take(struct dra_state *state, const char *uid, const char *bytes, size_t size_bytes,
                      struct err *err);

/* claim_records_read() - the claims of all specs that the state does not have. Of two that say that they hold
 * one device the one that was written last is believed: the other's file outlived its claim.
 * @left: a line for each that was not taken, being no record, or another's; may be NULL
 * Return: 0; a negative errno: one could not be read just then, and nobody knows whether it is a record. The
 * state has those that were written after it */
int claim_records_read(const char *directory, struct dra_state *state, struct text *left, struct err *err);
