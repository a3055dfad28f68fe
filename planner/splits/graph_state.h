/* Graph state: a placement of units on devices whose loads follow every move in O(pins). Internal to
 * graph_split.
 *
 * A net is an output with more than one unit on it: the producer and its consumers. A device on which a net
 * has a pin pays the net's cost as soon as the net spans two devices: that is the load of graph_split.h, term
 * by term. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/splits/graph.h"

struct graph_state_net {
        double cost_ms;
        size_t first_pin, pin_count; /* units, without repetition */
};

struct graph_state_unit {
        double accelerator_ms, cpu_ms, memory_bytes;
        bool on_accelerator;         /* may it run there? */
        size_t first_net, net_count; /* nets it is a pin of */
};

struct graph_state {
        const struct graph_problem *problem;
        size_t units, nets, devices, accelerators;
        struct graph_state_unit *unit;
        struct graph_state_net *net;
        uint32_t *pins;      /* units of each net */
        uint32_t *unit_nets; /* nets of each unit */
        double *speed;       /* of each device; CPUs 1 */
        double *memory_limit;
        /* the placement */
        uint32_t *device;      /* of each unit; GRAPH_NOWHERE = not placed yet */
        uint32_t *pins_on;     /* [net][device] */
        uint32_t *span;        /* devices that a net touches */
        double *load, *memory; /* of each device */
};

#define GRAPH_NOWHERE UINT32_MAX

int graph_state_init(struct graph_state *s, const struct graph_problem *problem);
void graph_state_free(struct graph_state *s);
void graph_state_clear(struct graph_state *s); /* every unit nowhere */

bool graph_state_can_place(const struct graph_state *s, size_t unit, size_t device); /* kind and memory */
void graph_state_place(struct graph_state *s, size_t unit, size_t device);
void graph_state_remove(struct graph_state *s, size_t unit);
void graph_state_load(struct graph_state *s, const uint32_t *unit_device);
double graph_state_max_load_ms(const struct graph_state *s);

/* graph_state_is_contiguous() - of the units placed so far. */
bool graph_state_is_contiguous(const struct graph_problem *problem, const uint32_t *unit_device,
                               size_t accelerators);
