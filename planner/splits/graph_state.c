/* Keeps the loads of a placement as units are put down and taken up, net by net.
 *
 * Example: an output of 3 ms used by two consumers. Alone on a device the producer pays nothing; the first
 * consumer on another device makes the net span two devices, and both pay 3 ms; a second consumer there
 * changes nothing; moved to a third device it makes that one pay, too. Invariant: span = how many devices
 * hold a pin; a device pays a net exactly if it holds a pin and span > 1. */
#include "planner/splits/graph_state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static void fill_devices(struct graph_state *s)
{
        size_t d = 0;

        for (size_t t = 0; t < s->problem->type_count; t++)
                for (size_t i = 0; i < s->problem->types[t].count; i++, d++) {
                        s->speed[d] = s->problem->types[t].speed;
                        s->memory_limit[d] = s->problem->types[t].memory_bytes;
                }
        s->accelerators = d;
        for (; d < s->devices; d++) {
                s->speed[d] = 1;
                s->memory_limit[d] = INFINITY;
        }
}

static void fill_units(struct graph_state *s)
{
        for (size_t u = 0; u < s->units; u++)
                s->unit[u].on_accelerator = true;
        for (size_t v = 0; v < s->problem->node_count; v++) {
                const struct graph_node *node = &s->problem->nodes[v];
                struct graph_state_unit *unit = &s->unit[node->unit];

                if (node->accelerator_ms < 0)
                        unit->on_accelerator = false;
                else
                        unit->accelerator_ms += node->accelerator_ms;
                unit->cpu_ms += node->cpu_ms;
                unit->memory_bytes += node->memory_bytes;
        }
}

/* Edges sorted by their source (counting sort); first[v]..first[v + 1] are v's targets. */
static int targets_of_nodes(const struct graph_problem *p, size_t **ret_first, size_t **ret_targets)
{
        size_t *first = calloc(p->node_count + 2, sizeof(*first));
        size_t *targets = calloc(p->edge_count + 1, sizeof(*targets));

        *ret_first = first;
        *ret_targets = targets;
        if (first == NULL || targets == NULL)
                return -ENOMEM;
        for (size_t e = 0; e < p->edge_count; e++)
                first[p->edges[e].source + 2]++;
        for (size_t v = 1; v <= p->node_count; v++)
                first[v + 1] += first[v];
        for (size_t e = 0; e < p->edge_count; e++)
                targets[first[p->edges[e].source + 1]++] = p->edges[e].target;
        return 0;
}

/* The nets: each node whose output is used in another unit, its pins without repetition. */
static int fill_nets(struct graph_state *s)
{
        const struct graph_problem *p = s->problem;
        CLEANUP(free_p) size_t *first = NULL;
        CLEANUP(free_p) size_t *targets = NULL;
        CLEANUP(free_p) size_t *mark = calloc(s->units, sizeof(*mark));
        size_t pins = 0;
        int r = targets_of_nodes(p, &first, &targets);

        if (r < 0 || mark == NULL)
                return -ENOMEM;
        for (size_t v = 0; v < p->node_count; v++) {
                size_t begin = pins;

                if (p->nodes[v].output_ms <= 0 || first[v] == first[v + 1])
                        continue;
                s->pins[pins++] = (uint32_t) p->nodes[v].unit;
                mark[p->nodes[v].unit] = v + 1;
                for (size_t e = first[v]; e < first[v + 1]; e++) {
                        size_t unit = p->nodes[targets[e]].unit;

                        if (mark[unit] == v + 1)
                                continue;
                        mark[unit] = v + 1;
                        s->pins[pins++] = (uint32_t) unit;
                }
                if (pins - begin < 2) {
                        pins = begin;
                        continue;
                }
                s->net[s->nets++] = (struct graph_state_net){ .cost_ms = p->nodes[v].output_ms,
                                                              .first_pin = begin,
                                                              .pin_count = pins - begin };
        }
        return 0;
}

static void fill_unit_nets(struct graph_state *s)
{
        size_t at = 0;

        for (size_t n = 0; n < s->nets; n++)
                for (size_t i = 0; i < s->net[n].pin_count; i++)
                        s->unit[s->pins[s->net[n].first_pin + i]].net_count++;
        for (size_t u = 0; u < s->units; u++) {
                s->unit[u].first_net = at;
                at += s->unit[u].net_count;
                s->unit[u].net_count = 0;
        }
        for (size_t n = 0; n < s->nets; n++)
                for (size_t i = 0; i < s->net[n].pin_count; i++) {
                        struct graph_state_unit *unit = &s->unit[s->pins[s->net[n].first_pin + i]];

                        s->unit_nets[unit->first_net + unit->net_count++] = (uint32_t) n;
                }
}

int graph_state_init(struct graph_state *s, const struct graph_problem *problem)
{
        size_t pins = problem->node_count + problem->edge_count + 1;
        int r;

        memset(s, 0, sizeof(*s));
        s->problem = problem;
        s->units = problem->unit_count;
        s->devices = graph_device_count(problem);
        s->unit = calloc(s->units + 1, sizeof(*s->unit));
        s->net = calloc(problem->node_count + 1, sizeof(*s->net));
        s->pins = calloc(pins, sizeof(*s->pins));
        s->unit_nets = calloc(pins, sizeof(*s->unit_nets));
        s->speed = calloc(s->devices + 1, sizeof(*s->speed));
        s->memory_limit = calloc(s->devices + 1, sizeof(*s->memory_limit));
        s->device = calloc(s->units + 1, sizeof(*s->device));
        s->load = calloc(s->devices + 1, sizeof(*s->load));
        s->memory = calloc(s->devices + 1, sizeof(*s->memory));
        if (s->unit == NULL || s->net == NULL || s->pins == NULL || s->unit_nets == NULL ||
            s->speed == NULL || s->memory_limit == NULL || s->device == NULL || s->load == NULL ||
            s->memory == NULL)
                return -ENOMEM;
        fill_devices(s);
        fill_units(s);
        r = fill_nets(s);
        if (r < 0)
                return r;
        fill_unit_nets(s);
        s->pins_on = calloc(s->nets * s->devices + 1, sizeof(*s->pins_on));
        s->span = calloc(s->nets + 1, sizeof(*s->span));
        if (s->pins_on == NULL || s->span == NULL)
                return -ENOMEM;
        graph_state_clear(s);
        return 0;
}

void graph_state_free(struct graph_state *s)
{
        free(s->unit);
        free(s->net);
        free(s->pins);
        free(s->unit_nets);
        free(s->speed);
        free(s->memory_limit);
        free(s->device);
        free(s->pins_on);
        free(s->span);
        free(s->load);
        free(s->memory);
        memset(s, 0, sizeof(*s));
}

void graph_state_clear(struct graph_state *s)
{
        for (size_t u = 0; u < s->units; u++)
                s->device[u] = GRAPH_NOWHERE;
        memset(s->pins_on, 0, s->nets * s->devices * sizeof(*s->pins_on));
        memset(s->span, 0, s->nets * sizeof(*s->span));
        memset(s->load, 0, s->devices * sizeof(*s->load));
        memset(s->memory, 0, s->devices * sizeof(*s->memory));
}

/* INFINITY = cannot run there. */
static double unit_ms(const struct graph_state *s, size_t unit, size_t device)
{
        if (device >= s->accelerators)
                return s->unit[unit].cpu_ms;
        return s->unit[unit].on_accelerator ? s->unit[unit].accelerator_ms / s->speed[device] : INFINITY;
}

bool graph_state_can_place(const struct graph_state *s, size_t unit, size_t device)
{
        if (device >= s->accelerators)
                return true;
        return s->unit[unit].on_accelerator &&
               s->memory[device] + s->unit[unit].memory_bytes <= s->memory_limit[device];
}

/* The one other device that a net of span two touches besides one. */
static size_t other_device(const struct graph_state *s, size_t net, size_t besides)
{
        const uint32_t *on = s->pins_on + net * s->devices;
        size_t d = 0;

        while (on[d] == 0 || d == besides)
                d++;
        return d;
}

static void charge(struct graph_state *s, size_t device, double ms)
{
        if (device < s->accelerators)
                s->load[device] += ms;
}

void graph_state_place(struct graph_state *s, size_t unit, size_t device)
{
        const struct graph_state_unit *u = &s->unit[unit];

        s->device[unit] = (uint32_t) device;
        s->load[device] += unit_ms(s, unit, device);
        s->memory[device] += u->memory_bytes;
        for (size_t i = 0; i < u->net_count; i++) {
                size_t net = s->unit_nets[u->first_net + i];

                if (s->pins_on[net * s->devices + device]++ > 0)
                        continue;
                if (++s->span[net] == 1)
                        continue;
                charge(s, device, s->net[net].cost_ms);
                if (s->span[net] == 2)
                        charge(s, other_device(s, net, device), s->net[net].cost_ms);
        }
}

void graph_state_remove(struct graph_state *s, size_t unit)
{
        const struct graph_state_unit *u = &s->unit[unit];
        size_t device = s->device[unit];

        s->device[unit] = GRAPH_NOWHERE;
        s->load[device] -= unit_ms(s, unit, device);
        s->memory[device] -= u->memory_bytes;
        for (size_t i = 0; i < u->net_count; i++) {
                size_t net = s->unit_nets[u->first_net + i];

                if (--s->pins_on[net * s->devices + device] > 0)
                        continue;
                if (--s->span[net] == 0)
                        continue;
                charge(s, device, -s->net[net].cost_ms);
                if (s->span[net] == 1)
                        charge(s, other_device(s, net, device), -s->net[net].cost_ms);
        }
}

void graph_state_load(struct graph_state *s, const uint32_t *unit_device)
{
        graph_state_clear(s);
        for (size_t u = 0; u < s->units; u++)
                if (unit_device[u] != GRAPH_NOWHERE)
                        graph_state_place(s, u, unit_device[u]);
}

double graph_state_max_load_ms(const struct graph_state *s)
{
        double max = 0;

        for (size_t d = 0; d < s->devices; d++)
                max = fmax(max, s->load[d]);
        return max;
}

/* Is there a path from the side of (device, backward) that goes out and comes back? */
static bool comes_back(const struct graph_problem *p, const uint32_t *unit_device, size_t device,
                       bool backward, const size_t *first, const size_t *targets, size_t *stack,
                       bool *outside)
{
        size_t depth = 0;

        memset(outside, 0, p->node_count * sizeof(*outside));
        for (size_t v = 0; v < p->node_count; v++) {
                if (unit_device[p->nodes[v].unit] != device || p->nodes[v].backward != backward)
                        continue;
                for (size_t e = first[v]; e < first[v + 1]; e++) {
                        const struct graph_node *t = &p->nodes[targets[e]];

                        if ((unit_device[t->unit] == device && t->backward == backward) ||
                            outside[targets[e]])
                                continue;
                        outside[targets[e]] = true;
                        stack[depth++] = targets[e];
                }
        }
        while (depth > 0) {
                size_t v = stack[--depth];

                for (size_t e = first[v]; e < first[v + 1]; e++) {
                        const struct graph_node *t = &p->nodes[targets[e]];

                        if (unit_device[t->unit] == device && t->backward == backward)
                                return true;
                        if (outside[targets[e]])
                                continue;
                        outside[targets[e]] = true;
                        stack[depth++] = targets[e];
                }
        }
        return false;
}

bool graph_state_is_contiguous(const struct graph_problem *problem, const uint32_t *unit_device,
                               size_t accelerators)
{
        CLEANUP(free_p) size_t *first = NULL;
        CLEANUP(free_p) size_t *targets = NULL;
        CLEANUP(free_p) size_t *stack = calloc(problem->node_count + 1, sizeof(*stack));
        CLEANUP(free_p) bool *outside = calloc(problem->node_count + 1, sizeof(*outside));

        if (targets_of_nodes(problem, &first, &targets) < 0 || stack == NULL || outside == NULL)
                return false;
        for (size_t d = 0; d < accelerators; d++)
                if (comes_back(problem, unit_device, d, false, first, targets, stack, outside) ||
                    comes_back(problem, unit_device, d, true, first, targets, stack, outside))
                        return false;
        return true;
}
