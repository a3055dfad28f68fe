/* Hardware: what the cluster must know of a node beside its accelerators. Pure data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hardware_network {
        char name[32];
        char kind[16]; /* ethernet | infiniband */
        uint64_t mbps; /* 0 = not known */
};

#define NETWORKS_MAX 32

struct hardware {
        char cpu_model[96];
        unsigned cores;
        unsigned max_mhz;
        uint64_t memory_bytes;
        char memory_type[24];
        struct hardware_network networks[NETWORKS_MAX];
        size_t network_count;
};
