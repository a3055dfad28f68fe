/* Shard curve: the time of b samples on a worker, compared exactly, and turned round: how many samples in a
 * given time? The inner parts of shards.h; nothing outside the planner needs them.
 *
 * A share is counted in the worker's own multiples. Pure; the curves own their pieces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "planner/shards/exact.h"
#include "planner/shards/shard.h"

/* A straight piece: (base + slope (b - from)) / denominator ms for from <= b <= to. */
struct shard_curve_piece {
        uint64_t from, to;        /* samples */
        double base_ms, slope_ms; /* the same, rounded */
        double samples_per_ms;    /* 1 / slope_ms */
        bool small;               /* the three below hold it exactly: else ask the worker's decimals */
        uint64_t base, slope, denominator;
};

struct shard_curve {
        const struct shard_worker *worker;
        const struct shard_curve_piece *pieces; /* at least 1 */
        size_t piece_count;
        uint64_t multiple;             /* samples, >= 1 */
        uint64_t least;                /* smallest share but none, >= 1; in multiples */
        uint64_t limit;                /* largest share; 0 = can take nothing; in multiples */
        double real_least, real_limit; /* samples, as if they could be divided */
};

struct shard_curves {
        struct shard_curve *curve; /* [count] */
        struct shard_curve_piece *pieces;
        size_t count;
};

/* A moment is the time of one share on one worker: all that the search compares. */
struct shard_curve_moment {
        size_t worker;
        uint64_t share; /* multiples */
        double ms;      /* rounded */
        const struct shard_curve_piece *piece;
        unsigned __int128 numerator; /* over piece->denominator, where piece->small */
};

/* shard_curves_make() - check and prepare the workers. @ret released by shard_curves_free() after success.
 * Return: 0, -EINVAL, -ENOMEM. */
int shard_curves_make(const struct shard_worker *workers, size_t count, uint64_t batch,
                      struct shard_curves *ret, struct err *err);
void shard_curves_free(struct shard_curves *curves);

struct shard_curve_moment shard_curve_at(const struct shard_curves *curves, size_t worker, uint64_t share);
int shard_curve_compare(const struct shard_curves *curves, const struct shard_curve_moment *a,
                        const struct shard_curve_moment *b); /* -1, 0, 1: exact */
struct exact_time shard_curve_exact(const struct shard_curves *curves,
                                    const struct shard_curve_moment *moment);

/* shard_curve_ms() - for people: the nearest double to the exact time where that has few digits, else
 * nearly. */
double shard_curve_ms(const struct shard_curve_moment *moment);

/* shard_curve_reach() - the largest share in low ... high of the worker that takes at most (`strictly`: less
 * than) the moment's time; `low` is known to. Exact. */
uint64_t shard_curve_reach(const struct shard_curves *curves, size_t worker,
                           const struct shard_curve_moment *moment, bool strictly, uint64_t low,
                           uint64_t high);

/* shard_curve_samples() - how many samples, were they divisible, in `ms`; at most real_limit. Rounded. */
double shard_curve_samples(const struct shard_curve *curve, double ms);

/* shard_curve_last_ms() - the time of real_limit samples. Rounded. */
double shard_curve_last_ms(const struct shard_curve *curve);
