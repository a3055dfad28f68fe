/* Switches: the switches that nodes say they are under (label remuda.dev/switch-domain), and what is open
 * there, for a gang whose members are sought under one.. Pure; O(switches) a call, the first
 * SWITCHES_MAX that are met. */
#pragma once

#include "scheduler-extender/decide/rules.h"

#define SWITCHES_MAX 64

struct switches {
        struct {
                uint32_t domain; /* as ledger_node.switch_domain; 0 = was taken */
                uint64_t chips;
        } of[SWITCHES_MAX];
        size_t count;
};

/* switches_add() - what a node has open of the first resource of the request. Return: does it say under
 * which switch it is, one that is counted? */
bool switches_add(struct switches *switches, const struct rules_context *ctx, const struct ledger_node *node);

/* switches_take() - chips that are open under a switch; the next time 0. */
uint64_t switches_take(struct switches *switches, uint32_t domain);

/* switches_bound() - the one that members are under which are bound; 0 = none is, or they say none.
 * switches_said() - does any node say one? O(nodes). */
uint32_t switches_bound(const struct ledger_job *job);
bool switches_said(const struct ledger *ledger);
