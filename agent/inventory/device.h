/* Device: an accelerator, and the group that a fabric joins it to, in the words of the whole project. Pure
 * data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum device_health {
        HEALTH_UNKNOWN,     /* could not be asked: not a verdict */
        HEALTH_HEALTHY,     /* works as promised */
        HEALTH_DEGRADED,    /* works, below its promise */
        HEALTH_UNHEALTHY,   /* must not be used */
        HEALTH_QUARANTINED, /* flapped; an operator or a long quiet time clears it */
        HEALTH_COUNT
};

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
        unsigned index;                 /* its number on the node within its vendor: numbers.h */
        unsigned ordinal;               /* as its driver and its runtime count now */
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
        bool tflops_estimated; /* from the processors, by no data sheet: stands for every precision */
        uint64_t memory_bytes; /* per device */
        /* set by `remuda devices --measure`; kernel "" = not measured */
        char measured_kernel[32];
        char measured_precision[8]; /* "fp32" */
        double measured_gflops;
        uint64_t measured_usec; /* CLOCK_REALTIME */
};

extern const char *const device_health_names[];            /* by enum; ended by NULL */
const char *device_health_name(enum device_health health); /* "healthy" ... */

/* device_group_complete() - a figure that was measured before precisions were told is of single precision: so
 * every kernel was. */
void device_group_complete(struct device_group *group);
