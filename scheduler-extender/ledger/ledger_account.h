/* Ledger, its accounts: how many chips of each group of a node pods hold and gangs lease. A pod on a node
 * counts by what it asks for: in the groups that its bind recorded, where these add up to it and have room,
 * else where it breaks least. Recorded pods first, then what
 * claims hold, then the other pods, then leases; so that the order of events
 * does not matter. Pure; O(pods and slots on the node x groups). */
#pragma once

#include "scheduler-extender/ledger/ledger.h"
#include "scheduler-extender/ledger/ledger_pods.h"

/* Who is left out of an account; all zero = nobody. */
struct ledger_account_without {
        const struct ledger_pod *pod;
        const struct ledger_job *job; /* its slots */
        enum ledger_pods_takes takes; /* who gives way */
};

/* ledger_account() - recompute held and leased of a node into `groups` (a copy of the node's groups). */
void ledger_account(const struct ledger_node *node, struct ledger_account_without without,
                    struct ledger_group *groups);

/* Chips of a group that somebody has: a pod, a job that leases them, or, both NULL, claims. */
struct ledger_account_part {
        uint32_t group; /* symbol */
        uint32_t chips;
        const struct ledger_pod *pod;
        const struct ledger_job *job;
};

/* ledger_account_tell() - the same account in parts: what adds up to held and leased of each group. Return: 0
 * or -ENOMEM. */
int ledger_account_tell(const struct ledger_node *node,
                        void (*part)(void *userdata, const struct ledger_account_part *part), void *userdata);

/* ledger_account_place() - choose groups for `request` among `groups`: the tightest one that has room, else
 * spread over the largest; chips beyond all room are put where they are least wrong. Adds to `held` or, for a
 * lease, `leased`. Return: the number of parts written (at most LEDGER_POD_PARTS_MAX are told). */
size_t ledger_account_place(struct ledger_group *groups, size_t group_count, const struct request *request,
                            bool lease, struct ledger_pod_part *parts);

/* ledger_account_refresh() - the node's own accounts, after a change of what is on it. */
void ledger_account_refresh(struct ledger *ledger, struct ledger_node *node);
