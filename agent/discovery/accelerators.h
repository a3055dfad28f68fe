/* Accelerators: which PCI functions and other signs of a tree are devices, of which vendor. */
#pragma once

#include "agent/discovery/scan.h"
#include "agent/vendor/vendor.h"

/* accelerators_scan() - every vendor's row, the operator's vendors, and what nobody claimed. Return: 0;
 * -E2BIG; -ENOMEM. */
int accelerators_scan(struct scan *scan, struct err *err);

/* For readers: a function that the row's data does not count and its reader does; is it a virtual function
 * whose physical one is there, of which it is a part? */
int accelerators_add_function(struct scan *scan, const struct vendor *vendor, struct pci_function *function,
                              unsigned rank);
bool accelerators_is_part(const struct scan *scan, const struct pci_function *function);
