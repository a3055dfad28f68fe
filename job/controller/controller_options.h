/* Controller options: what a job controller is given by the process that it is in. */
#pragma once

#include <stdbool.h>

#include "job/controller/job_pods.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/server/settings.h"

struct controller_options {
        struct cluster *cluster;       /* outlives the controller */
        struct job_pods_options pods;  /* borrowed strings */
        unsigned keep_pods_sec;        /* ended pods of ended jobs stay so long, for their logs */
        bool planned_claims;           /* chips may be planned that no slice has: claims/claim_plans.h */
        bool kueue;                    /* jobs that name a queue wait until Kueue admits them */
        bool (*leads)(void *userdata); /* may it write now? Asked before every write */
        unsigned pods_wait_sec;        /* chips are leased so long while pods cannot be made; 0 = for ever */
        bool budgets;                  /* the store has disruption budgets, which refuse evictions */
        bool no_budgets;               /* but none shall: those that there are go */
        void (*log)(void *userdata, int priority, const char *event, const char *text);
        void *userdata;
};

/* controller_options_of() - what the command line says of them; no cluster and no callbacks. Borrows both. */
struct controller_options controller_options_of(const struct server_options *options,
                                                const struct settings *settings);
