/* Node figures: what the metrics page of an agent says of its node's devices together. Pure. */
#pragma once

#include <stddef.h>

/* NAN = no device's is known. */
struct node_figures {
        double busy;         /* 0..1: the mean of those that are known */
        double used, memory; /* bytes, of the devices of which both are known */
        double temperature;  /* the hottest core, degrees Celsius */
        double power;        /* watts */
        size_t busy_devices; /* that `busy` is the mean of */
};

#define NODE_FIGURES_NONE                                                                                    \
        (struct node_figures)                                                                                \
        {                                                                                                    \
                .busy = NAN, .used = NAN, .memory = NAN, .temperature = NAN, .power = NAN                    \
        }

/* node_figures_read() - of a page in Prometheus' text form; what it does not say stays NAN. */
struct node_figures node_figures_read(const char *page);

/* node_figures_add() - of two nodes together. */
void node_figures_add(struct node_figures *sum, const struct node_figures *more);
