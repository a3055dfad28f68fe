/* Role hint: what is misspelt where a role finds no chip. Pure; O(groups). */
#pragma once

#include "job/spec/job_role.h"
#include "scheduler-extender/ledger/ledger.h"

#define ROLE_HINT_BYTES 320

/* role_hint() - "; no chip has model 'H1OO'; did you mean H100-SXM5-80GB?": the first of its runtime, vendor,
 * model and group that no chip of the ledger has, taken or free, with the names of chips that are near it.
 * Return: @ret; "" = each of them is somewhere. */
const char *role_hint(const struct ledger *ledger, const struct job_role *role, char ret[ROLE_HINT_BYTES]);
