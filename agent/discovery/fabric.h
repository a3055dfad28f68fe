/* Fabric: what joins the devices of a node, and how each is linked to its neighbours. */
#pragma once

#include "agent/discovery/scan.h"

/* fabric_adopt() - a device without its driver cannot tell what it is: it is what its likes are. */
void fabric_adopt(struct scan *scan);

/* fabric_link() - direct links and PCIe switches, for neighbours' sake; where a vendor's library told of
 * links, the fabric that follows from them. After fabric_adopt(). */
void fabric_link(struct scan *scan);

/* fabric_place() - for the devices of which their vendor's row knows no better: the PCIe switch that at least
 * two of them share, else the NUMA node. (A card with a bridge of its own is no switch that joins anything.)
 * After fabric_link(). */
void fabric_place(struct scan *scan);
