/* Ledger, devices that may not be used: what an inventory says of them, and whose pods have them. */
#pragma once

#include "scheduler-extender/ledger/ledger.h"

/* A device that may not be used now: what `remuda explain` can ask a person to mend. */
struct ledger_sick {
        char id[DEVICE_ID_BYTES];
        uint32_t group; /* symbol */
        uint8_t health; /* enum device_health */
};

/* ledger_sick_of_pod() - has this pod a chip that may not be used any more? Its node's agent says who holds
 * which device; without that it is certain where the pod has more chips of a group than are usable there.
 * @device: the device's id, "" where it is not known. May be NULL. */
bool ledger_sick_of_pod(const struct ledger_pod *pod, char device[DEVICE_ID_BYTES]);

/* ledger_sick_take() - of the node, from its inventory. 0 or -ENOMEM. */
int ledger_sick_take(const struct inventory *inventory, struct ledger *ledger, struct ledger_node *node);
