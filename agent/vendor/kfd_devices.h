/* KFD devices: what AMD and Hygon have in common. Private to lib/discovery/vendor. */
#pragma once

#include "agent/vendor/vendor.h"

/* kfd_add() - the devices of one function: one, or one a partition. For struct vendor. */
int kfd_add(struct scan *scan, struct sighting *sighting);

/* kfd_add_others() - the KFD nodes of a PCI vendor whose function the tree does not show. */
int kfd_add_others(struct scan *scan, const struct vendor *vendor, uint16_t pci_vendor);
