/* Ledger, devices: what DRA drivers offer on a node (scheduler-extender/claims/claims.h), and which chips of
 * ours that is. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEDGER_DEVICES_OFFERS_MAX 4  /* resources of one node */
#define LEDGER_DEVICES_GROUPS_MAX 16 /* that claims hold chips of, by name */

struct ledger_devices_offer {
        uint32_t resource; /* symbol */
        bool offers;       /* there are slices with them; else claims alone hold some */
        bool planned;      /* they are in none: claims that remuda-controller plans have them alone */
        uint32_t offered, held;
};

struct ledger_devices {
        bool unjudged; /* how many are free is not known */
        bool lost;     /* of ours, claims hold some that are not offered */
        uint8_t offer_count, group_count;
        uint32_t offered, free;
        uint32_t ours, ours_free; /* of them, of our driver */
        struct ledger_devices_offer offers[LEDGER_DEVICES_OFFERS_MAX];
        struct {
                uint32_t name, held;         /* the first a symbol */
        } groups[LEDGER_DEVICES_GROUPS_MAX]; /* of what offers hold, where the driver says which group it is
                                                of */
};

/* ledger_devices_offer() - of a resource; NULL = none. @devices: may be NULL */
static inline const struct ledger_devices_offer *ledger_devices_offer(const struct ledger_devices *devices,
                                                                      uint32_t resource)
{
        for (size_t i = 0; devices != NULL && i < devices->offer_count; i++)
                if (devices->offers[i].resource == resource)
                        return &devices->offers[i];
        return NULL;
}
