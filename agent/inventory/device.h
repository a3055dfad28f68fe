/* Device and inventory: what a node has, in the words of the whole project. Pure data; no I/O.
 *
 * An inventory is what discovery fills, health judges, the agent reports, the plugin serves and the extender
 * reads. It owns its arrays; strings are fixed fields, so that an inventory copies and compares cheaply. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum device_health {
        HEALTH_UNKNOWN,     /* could not be asked: not a verdict */
        HEALTH_HEALTHY,     /* works as promised */
        HEALTH_DEGRADED,    /* works, below its promise */
        HEALTH_UNHEALTHY,   /* must not be used */
        HEALTH_QUARANTINED, /* flapped; an operator or a long quiet time clears it */
        HEALTH_COUNT
};

enum node_class { NODE_CLASS_ANY, NODE_CLASS_SINGLE, NODE_CLASS_MULTI, NODE_CLASS_COUNT };

#define DEVICE_ID_BYTES       96
#define DEVICE_GROUP_BYTES    64 /* a group's name is a valid Kubernetes label name part: [a-z0-9-], <= 63 */
#define DEVICE_MODEL_BYTES    64
#define DEVICE_RESOURCE_BYTES 128
#define DEVICE_NODES_MAX      8
#define DEVICE_NODE_BYTES     64
#define DEVICES_MAX           1024 /* per node */
#define GROUPS_MAX            256  /* per node */

#define DEVICE_LINKS_MAX 15

/* A direct link to another device of the node, as far as it is known; fabrics that join all alike need none.
 */
struct device_link {
        char peer[20];  /* its PCI address */
        unsigned width; /* how fat, in any unit that is the same within the vendor (links, GB/s); >= 1 */
};

struct device {
        char id[DEVICE_ID_BYTES];       /* stable; what the kubelet gets. See docs/reference/inventory.md */
        char group[DEVICE_GROUP_BYTES]; /* "" = in no group (Assigned, Excluded) */
        char vendor[24];
        char model[DEVICE_MODEL_BYTES]; /* "" = not known */
        unsigned index;                 /* order on the node within its vendor */
        char pci[20];                   /* "0000:18:00.0"; "" for CPU groups and core groups */
        char partition[32];             /* MIG profile, compute partition...; "" = the whole function */
        char pci_switch[20]; /* upstream port of the nearest PCIe switch shared with another of its vendor */
        char pci_port[20];   /* the root port above it: shared across switches that hang on each other */
        struct device_link links[DEVICE_LINKS_MAX];
        size_t link_count;
        int numa;                                        /* -1 = not known */
        char nodes[DEVICE_NODES_MAX][DEVICE_NODE_BYTES]; /* "/dev/nvidia0" ... */
        size_t node_count;
        uint64_t memory_bytes; /* 0 = not known */

        enum device_health health;
        bool usable;         /* the kubelet is told Healthy exactly for usable devices */
        char reason[32];     /* CamelCase; "" when healthy */
        char message[160];   /* a sentence for a person; "" when healthy */
        char rule[48];       /* the rule that decided, e.g. "aer-fatal"; "" = none */
        uint64_t since_usec; /* CLOCK_REALTIME when `health` last changed; 0 = not known */
};

struct device_group {
        char name[DEVICE_GROUP_BYTES]; /* unique on the node: "nvidia-h100-0" */
        char vendor[24];
        char runtime[16];
        char model[DEVICE_MODEL_BYTES];
        char resource[DEVICE_RESOURCE_BYTES]; /* "nvidia.com/gpu" */
        char fabric[24];                      /* nvlink, hccs, xgmi, pcie-switch, numa, core-groups, none */
        char fabric_source[24];               /* how it is known: kfd, pci, rule, nvml, numa, sysfs */
        unsigned total;                       /* devices that belong to it, whatever their health */
        unsigned healthy;                     /* usable ones */
        unsigned free;                        /* usable and held by nobody, as far as the agent knows */
        unsigned shares;                      /* replicas per device; 0 or 1 = not shared */
        double tflops_bf16;                   /* dense peak per device; 0 = not known */
        double tflops_fp16, tflops_fp32;
        uint64_t memory_bytes; /* per device */
        /* set by `remuda devices --measure` and refined by jobs; kernel "" = not measured */
        char measured_kernel[32];
        double measured_gflops;
        uint64_t measured_usec; /* CLOCK_REALTIME */
};

struct network_interface {
        char name[32];
        char kind[16]; /* ethernet | infiniband */
        uint64_t mbps; /* 0 = not known */
};

#define NETWORKS_MAX 32
#define PROGRAMS_MAX 32

struct hardware {
        char cpu_model[96];
        unsigned cores;
        unsigned max_mhz;
        uint64_t memory_bytes;
        char memory_type[24];
        struct network_interface networks[NETWORKS_MAX];
        size_t network_count;
};

struct program_reference {
        char runtime[16];
        char sha256[65]; /* lower case hex; "" = not given */
};

/* A pod that holds a device which may not be used any more: whoever runs it has to move it. */
struct device_loss {
        char device_id[DEVICE_ID_BYTES];
        char pod[320]; /* "namespace/name" */
};

#define LOSSES_MAX 4096 /* shared devices have several holders */

struct inventory {
        char node[254];
        uint64_t generation; /* grows with every change that is reported */
        char boot_id[40];
        enum node_class node_class;
        char pool[64]; /* "regular" unless configured */
        struct hardware hardware;
        struct program_reference programs[PROGRAMS_MAX];
        size_t program_count;
        struct device_group *groups;
        size_t group_count;
        struct device *devices;
        size_t device_count;
        struct device_loss
                *losses; /* in the order of the devices; as far as the agent knows who holds what */
        size_t loss_count;
};

extern const char *const device_health_names[], *const device_class_names[]; /* by enum; ended by NULL */
const char *device_health_name(enum device_health health);                   /* "healthy" ... */
const char *node_class_name(enum node_class node_class);                     /* "any", "single", "multi" */

/* inventory_init() - the empty inventory: class any, pool regular. */
void inventory_init(struct inventory *inventory);
void inventory_free(struct inventory *inventory); /* accepts NULL; leaves it as after inventory_init() */

/* inventory_copy() - a deep copy into an uninitialised or freed *ret. Return: 0 or -ENOMEM. */
int inventory_copy(const struct inventory *inventory, struct inventory *ret);

/* inventory_add_device(), inventory_add_group() - append a zeroed entry.
 * Return: the entry, valid until the next add; NULL when out of memory or past DEVICES_MAX / GROUPS_MAX. */
struct device *inventory_add_device(struct inventory *inventory);
struct device_group *inventory_add_group(struct inventory *inventory);

/* inventory_add_loss() - @pod: "namespace/name". 0; -ENOMEM; -E2BIG past LOSSES_MAX. */
int inventory_add_loss(struct inventory *inventory, const char *device_id, const char *pod);

struct device *inventory_find_device(const struct inventory *inventory, const char *id);        /* or NULL */
struct device_group *inventory_find_group(const struct inventory *inventory, const char *name); /* or NULL */

/* inventory_count() - recompute every group's total and healthy from the devices; free = healthy. */
void inventory_count(struct inventory *inventory);

/* inventory_same() - is everything that is told equal, but `generation`? */
bool inventory_same(const struct inventory *a, const struct inventory *b);

/* inventory_wired_same() - are links and switches equal, device by device? They are not told, and decide what
 * is preferred. */
bool inventory_wired_same(const struct inventory *a, const struct inventory *b);
