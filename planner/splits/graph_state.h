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

#include "planner/splits/graph_split.h"

struct graph_net {
        double cost_ms;
        size_t first_pin, pin_count; /* units, without repetition */
};

struct graph_unit {
        double accelerator_ms, cpu_ms, memory_bytes;
        bool on_accelerator;         /* may it run there? */
        size_t first_net, net_count; /* nets it is a pin of */
};

struct graph_state {
        const struct graph_problem *problem;
        size_t units, nets, devices, accelerators;
        struct graph_unit *unit;
        struct graph_net *net;
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

double graph_unit_ms(const struct graph_state *s, size_t unit,
                     size_t device); /* INFINITY = cannot run there */
bool graph_can_place(const struct graph_state *s, size_t unit, size_t device); /* kind and memory */
void graph_place(struct graph_state *s, size_t unit, size_t device);
void graph_remove(struct graph_state *s, size_t unit);
void graph_load_placement(struct graph_state *s, const uint32_t *unit_device);
double graph_max_load(const struct graph_state *s);

/* graph_is_contiguous() - of the units placed so far. */
bool graph_is_contiguous(const struct graph_problem *problem, const uint32_t *unit_device,
                         size_t accelerators);

/* A shared record of the search: the best placement so far and how long it may go on. */
struct graph_best {
        uint32_t *device; /* of each unit */
        double max_load_ms;
        double lower_bound_ms;
        bool proven;
        uint64_t steps, effort, random;
        bool (*stop)(void *userdata);
        void *userdata;
        bool stopped;
};

/* graph_offer() - the state's placement, if it is better. graph_step() - false when the search must end. */
void graph_offer(struct graph_best *best, const struct graph_state *s);
bool graph_step(struct graph_best *best);
uint64_t graph_random(struct graph_best *best);    /* 64 bits */
double graph_random_unit(struct graph_best *best); /* [0, 1) */

/* The three methods. Each improves `best`; 0 or -ENOMEM. */
int graph_search_exact(struct graph_state *s, struct graph_best *best, uint64_t steps_max);
int graph_search_ideals(struct graph_state *s, struct graph_best *best);
int graph_search_anneal(struct graph_state *s, struct graph_best *best);
