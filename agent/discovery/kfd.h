/* KFD: the compute topology that amdgpu and Hygon's driver show in /sys/class/kfd. Private to
 * agent/discovery.
 */
#pragma once

#include <stdint.h>

#include "agent/tree/tree.h"

#define KFD_NODES_MAX 256

#define KFD_LINKS_MAX 15

/* An xGMI link to another GPU. */
struct kfd_link {
        uint64_t order; /* of the other's PCI function */
        unsigned width; /* in units of 25 GB/s, which is one link of the first xGMI cards; >= 1 */
};

struct kfd_node {
        unsigned number;
        uint16_t vendor, device;
        uint64_t order; /* of its PCI function, see pci_order() */
        unsigned render_minor;
        uint64_t hive, unique;
        uint64_t memory_bytes;
        int numa; /* of the processors it hangs on; -1 = not known. Read only where there is no PCI tree */
        struct kfd_link links[KFD_LINKS_MAX];
        size_t link_count;
        unsigned island; /* lowest node number reachable over xGMI links, itself without any */
};

struct kfd {
        struct kfd_node nodes[KFD_NODES_MAX]; /* GPU nodes, in order of their number */
        size_t count;
};

/* kfd_scan() - @with_numa: also find the processors that a GPU hangs on */
void kfd_scan(const struct tree *tree, bool with_numa, struct kfd *ret);
