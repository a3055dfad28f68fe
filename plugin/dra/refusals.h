/* Refusals: which refused claims are told as events, so that whoever looks at a claim sees why, and nobody's
 * claims fill a log or an API server: a claim once in five minutes, and of a namespace a few at once, then
 * one every half minute. What one namespace tells costs no other one. Pure; time is an argument. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/object_name.h"
#include "plugin/dra/account/dra_state.h"

#define REFUSALS_AGAIN_USEC  UINT64_C(300000000)
#define REFUSALS_BURST       8
#define REFUSALS_PERIOD_USEC UINT64_C(30000000)
#define REFUSALS_NAMESPACES  64 /* with pods on one node; of more, who was quiet longest is forgotten */

struct refusals_claim {
        char uid[DRA_STATE_UID_BYTES];
        uint64_t told_usec; /* 0 = free */
};

struct refusals_namespace {
        char name[OBJECT_NAME_LABEL_BYTES];
        uint64_t full_usec;                             /* when all of its burst is there again */
        struct refusals_claim told[2 * REFUSALS_BURST]; /* more than there are in five minutes are few */
};

struct refusals {
        struct refusals_namespace namespaces[REFUSALS_NAMESPACES]; /* name "" = free */
};

/* refusals_tell() - is it to be told? Then it is noted as told. @now_usec: CLOCK_MONOTONIC, above 0 */
bool refusals_tell(struct refusals *refusals, const char *namespace_, const char *uid, uint64_t now_usec);
