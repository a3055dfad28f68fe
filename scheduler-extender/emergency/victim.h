/* Victim: who may be asked to go for an emergency, and what that costs.
 *
 * A cost is a sum of what the victims lose, compared as a number: first chips of regular nodes, where these
 * may be taken; then work, in chip-seconds; then chips; then their ages, so that of equal ones the younger
 * go. Work is what nothing keeps: the chips times the seconds since the last checkpoint that is known of, or
 * since the start; none of who says that it keeps its work when it is asked to end. A pod's own words can
 * only make it cheaper. Whoever evicts one member of a gang ends all of it: a gang costs what its bound pods
 * cost, once, however many of them go. Pure but for the heap; time is an argument. */
#pragma once

#include "scheduler-extender/ledger/ledger_pods.h"

#define VICTIM_AGAIN_USEC                                                                                    \
        UINT64_C(60000000) /* who was asked to go counts as leaving for so long, then as staying after all   \
                            */

/* 96 bits on: chips of regular nodes; 54 on: chip-seconds; 36 on: chips; from 0 on: seconds of age. */
typedef unsigned __int128 victim_cost;

#define VICTIM_COST_MAX    (~(victim_cost) 0)
#define VICTIM_COST_BARRED ((victim_cost) 1 << 120) /* more than anything costs; 64 of it are no overflow */

struct victim_rules {
        enum ledger_pods_takes takes;
        uint64_t now_usec;
        uint64_t grace_usec; /* that who is evicted gets */
};

/* victim_leaves() - is the pod on its way out already, and gone as soon as who is evicted now, or within
 * VICTIM_AGAIN_USEC? One that is being deleted with a longer grace time has its chips until then, unless it
 * is evicted: an eviction shortens it. */
bool victim_leaves(const struct victim_rules *rules, const struct ledger_pod *pod);

/* victim_spared() - was its eviction refused a while ago? */
bool victim_spared(const struct ledger_pod *pod, uint64_t now_usec);

/* victim_may_go() - may it be chosen for an emergency of `job` (NULL = of none)? */
bool victim_may_go(const struct victim_rules *rules, const struct ledger *ledger,
                   const struct ledger_pod *pod, const struct ledger_job *job);

/* victim_pod_cost() - of the pod by itself. */
victim_cost victim_pod_cost(const struct victim_rules *rules, const struct ledger *ledger,
                            const struct ledger_pod *pod);

/* What people are told of a cost. */
uint64_t victim_chip_seconds(victim_cost cost); /* of work */

/* The gangs among the candidates. */
struct victim_gang {
        const struct ledger_job *job;
        victim_cost cost;           /* of all its bound pods */
        uint32_t items, item_count; /* where it is, + 1: for bins.h */
        bool settled;               /* a member goes for sure: the others cost nothing more */
        bool paid;                  /* ... or went in the last try */
        bool barred;                /* no member may go, for a try */
        victim_cost priced;         /* of its cost, what the bins bear that were chosen */
        bool counted;               /* for those who add costs up */
};

struct victim_gangs {
        struct victim_gang *list; /* owned */
        size_t count, capacity;
        uint32_t *slots; /* by job: number in the list + 1; owned */
        size_t slot_count;
};

void victim_gangs_free(struct victim_gangs *gangs);

/* victim_is_member() - does the pod go with a gang? */
bool victim_is_member(const struct ledger_pod *pod);

/* victim_gangs_of() - the pod's gang, found out at its first pod. NULL = no memory. O(1); at the first
 * O(members). */
struct victim_gang *victim_gangs_of(struct victim_gangs *gangs, const struct victim_rules *rules,
                                    const struct ledger *ledger, const struct ledger_pod *pod);

struct victim_list {
        struct ledger_pod **pods; /* owned */
        size_t count, capacity;
};

/* victim_list_cost() - a gang once. victim_list_sort() - the cheapest first, then by name. */
int victim_list_cost(const struct victim_list *list, const struct victim_rules *rules,
                     const struct ledger *ledger, victim_cost *ret); /* 0 or -ENOMEM */
void victim_list_sort(struct victim_list *list, const struct victim_rules *rules,
                      const struct ledger *ledger);
int victim_list_add(struct victim_list *list, struct ledger_pod *pod); /* 0 or -ENOMEM */
void victim_list_free(struct victim_list *list);
