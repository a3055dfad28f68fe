/* Network estimate: what a network would cost on a device, from its shapes and the device's rate. Estimates
 * by formula, never measured; the assumptions are arguments. Pure.
 *
 * Work of one sample forward is 2 FLOP a multiply-add; backward is twice that. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/models/network.h"

struct network_estimate_device {
        char name[64];
        double tflops;         /* dense peak, > 0 */
        uint64_t count;        /* of this kind */
        uint64_t memory_bytes; /* of one; 0 = not known */
};

struct network_estimate_assumptions {
        double efficiency;            /* share of the peak that is reached, 0 < e <= 1 */
        bool training;                /* forward and backward, gradients and the optimiser's state */
        uint64_t samples;             /* in one microbatch */
        uint64_t bytes_per_element;   /* of activations and gradients */
        uint64_t bytes_per_parameter; /* held: weight, gradient, the optimiser's two moments */
};

/* network_estimate_default() - 40 % of the peak, training, 1 sample, 2 bytes an element, 16 a parameter (a
 * 32-bit weight, gradient and two moments). */
struct network_estimate_assumptions network_estimate_default(void);

/* network_estimate_ms() - of so many multiply-adds of one sample forward. */
double network_estimate_ms(uint64_t multiply_adds, const struct network_estimate_device *device,
                           const struct network_estimate_assumptions *assumptions);

/* A run of operators that a person would name together. */
struct network_estimate_block {
        const char *name; /* borrowed from the network */
        size_t first, last;
        uint64_t parameters, multiply_adds;
        uint64_t activations; /* elements of all its outputs: what the backward pass needs */
        uint64_t crossing;    /* elements that leave it, or pass it by */
};

/* network_estimate_blocks() - consecutive operators of the same block. *ret is released with free().
 * Return: 0, -ENOMEM. */
int network_estimate_blocks(const struct network *network, struct network_estimate_block **ret,
                            size_t *ret_count, struct err *err);

/* network_estimate_memory_bytes() - what a block holds but for the activations. */
uint64_t network_estimate_memory_bytes(const struct network_estimate_block *block,
                                       const struct network_estimate_assumptions *assumptions);
