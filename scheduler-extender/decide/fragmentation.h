/* Fragmentation: how much of a node's free chips typical pods will not be able to use.
 *
 * Two estimates, in thousandths of a chip, mixed half and half:
 *  - what a single typical pod could not use of what is free now, on average over the typical pods
 * (fragmentation gradient descent: Weng et al., "Beware of Fragmentation", USENIX ATC'23);
 *  - what is left over when the node is filled by whole sequences of typical pods as they come, each into the
 *    tightest chip: a look ahead that sees that 0.19 of a chip stays idle when nobody asks for so little.
 * The best place for a pod is where the estimate grows least. A live cluster has no list of its typical pods;
 * there pods of 1, 2, 4 and 8 whole chips count as equally typical, without sequences. Pure but for the heap
 * of fragmentation_learn(). One estimate costs O(typical + sequences x their length). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/inventory.h"

#define CHIP_MILLI          1000u /* a whole chip */
#define PARTIAL_CHIPS_MAX   64    /* shared chips of one node */
#define TYPICAL_SEQUENCES   8
#define TYPICAL_LENGTH      60
#define FRAGMENTATION_STEPS 60 /* growth is compared in 1/60 of a chip: finer is noise, coarser loses */

/* What a pod asks for. */
struct fragmentation_pod {
        uint32_t cpu_milli, memory_mib;
        uint32_t chips;  /* 0 = none */
        uint32_t milli;  /* of each chip; below CHIP_MILLI only where chips = 1 */
        uint64_t models; /* bit set of accepted models; 0 = any */
};

/* What is free on a node. */
struct fragmentation_node {
        uint32_t cpu_milli, memory_mib;
        uint32_t whole;                      /* chips that nobody uses */
        uint32_t partial_count;              /* chips that are shared, and not full */
        uint16_t partial[PARTIAL_CHIPS_MAX]; /* what is left of each, 1..999 */
        uint8_t model;                       /* bit number */
};

struct fragmentation_typical {
        struct fragmentation_pod *pods; /* those that ask for chips, the same chips together */
        double *shares;                 /* of each in the whole list */
        size_t count;
        struct fragmentation_pod
                *sequences[TYPICAL_SEQUENCES]; /* TYPICAL_LENGTH pods each; NULL = no look ahead */
        struct fragmentation_pod *least[TYPICAL_SEQUENCES]; /* of each place and all after it: the least CPU,
                                                         memory and milli that one asks for */
};

/* fragmentation_learn() - the typical pods of a list of `count`, of which a copy is kept.
 * Return: 0 or -ENOMEM. Release with fragmentation_forget(). */
int fragmentation_learn(const struct fragmentation_pod *pods, size_t count, uint64_t seed,
                        struct fragmentation_typical *ret);
void fragmentation_forget(struct fragmentation_typical *typical);

/* fragmentation_of_class() - those of a live cluster's nodes of a class; static. */
const struct fragmentation_typical *fragmentation_of_class(enum node_class node_class);

double fragmentation_of(const struct fragmentation_typical *typical, const struct fragmentation_node *node);

/* fragmentation_fits() - is there room for the pod? */
bool fragmentation_fits(const struct fragmentation_node *node, const struct fragmentation_pod *pod);

/* fragmentation_take() - place it; @partial: index of the shared chip to use, -1 = whole chips. It must fit.
 */
void fragmentation_take(struct fragmentation_node *node, const struct fragmentation_pod *pod, int partial);

/* fragmentation_choose() - the chip where the pod makes fragmentation grow least.
 * @before: fragmentation_of(node)
 * @ret_partial: as fragmentation_take() wants it
 * Return: the growth in steps of 1 / FRAGMENTATION_STEPS of a chip; may be negative. The pod must fit. */
int64_t fragmentation_choose(const struct fragmentation_typical *typical,
                             const struct fragmentation_node *node, double before,
                             const struct fragmentation_pod *pod, int *ret_partial);

/* fragmentation_left() - thousandths of chips that are free. */
uint32_t fragmentation_left(const struct fragmentation_node *node);
