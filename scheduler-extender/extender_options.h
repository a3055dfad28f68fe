/* Extender options: the command line of remuda-extender. extender_options.c owns the table. */
#pragma once

#include <stdbool.h>

#include "scheduler-extender/server/server_options.h"

struct extender_options {
        struct server_options server; /* the first: server_main() is given it */
        const char *beside_scheduler; /* Lease of the kube-scheduler that we are to lead beside */
        const char *node_conditions;  /* on | off: Nodes have a condition of their devices */
        bool taint_all_bad;           /* Nodes none of whose devices is healthy have a taint */
        const char *jobs;             /* on | off: carry TrainingJobs out */
        unsigned body_max_mib, audit_sec, shortlist, waiting_sec;
};

extern const struct option_program extender_options_program;

/* extender_options_default() - every option as it is when it is not given. */
void extender_options_default(struct extender_options *options);
