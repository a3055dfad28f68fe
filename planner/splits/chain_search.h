/* Chain search: the dynamic programme behind chain.h. Internal to the planner; pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/splits/chain.h"

/* What one problem needs again and again: prefix sums, the reach of memory, link classes, the states by
 * level. */
struct chain_search {
        const struct chain_problem *problem;
        size_t n, words; /* layers; 64-bit words that hold n + 1 bits */
        size_t classes;
        size_t links;                         /* distinct link speeds */
        double link_speed[CHAIN_CLASSES_MAX]; /* bytes per ms */
        size_t link_of[CHAIN_CLASSES_MAX];
        size_t devices;
        double *prefix;    /* [class][n + 1]: ms of the layers before */
        uint32_t *allowed; /* [class][n + 1]: first layer from which all up to here may go on the class */
        uint32_t
                *reach; /* [class][held][n + 1]: the same for memory; held = 0..held_max - 1 means one more */
        size_t held_max;
        size_t stride[CHAIN_CLASSES_MAX]; /* of a class in a state's number */
        size_t states;
        uint32_t *by_level;     /* states ordered by the number of devices they use */
        uint32_t *level_begin;  /* [devices + 2] */
        uint64_t *masks;        /* [class][right link][left link][n + 1][words] for the period at hand */
        uint64_t *fresh, *seen; /* [state][link][link][words] of the feasibility pass */
};

double chain_search_boundary_ms(const struct chain_problem *p, size_t boundary, double bytes_per_ms);

int chain_search_init(struct chain_search *s, const struct chain_problem *problem, struct err *err);
void chain_search_free(struct chain_search *s);

/* Load of layers [i, j) on class c between devices of link classes `left` and `right` (ignored at the ends).
 */
double chain_search_load_ms(const struct chain_search *s, size_t c, size_t i, size_t j, size_t left,
                            size_t right);

unsigned chain_search_count_of(const struct chain_search *s, size_t state,
                               size_t c); /* devices of class c in a state */

/* First layer from which a stage that ends before j may begin: allowed types and memory, as the from_end-th
 * stage. */
size_t chain_search_first_begin(const struct chain_search *s, size_t c, size_t from_end, size_t j);

void chain_search_set_period(struct chain_search *s, double period_ms); /* fills the masks */
bool chain_search_is_feasible(struct chain_search *s,
                              double period_ms); /* also leaves the masks of that period */

static inline uint64_t *chain_search_mask(const struct chain_search *s, size_t c, size_t right, size_t left,
                                          size_t j)
{
        return s->masks + ((((c * s->links) + right) * s->links + left) * (s->n + 1) + j) * s->words;
}
