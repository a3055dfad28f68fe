/* Extender options: the command line of remuda-extender. extender_options.c owns the table. */
#pragma once

#include <stdbool.h>

#include "base/options.h"

struct extender_options {
        const char *store;  /* "dir:PATH" or "kubernetes" */
        const char *listen; /* "127.0.0.1:9520"; port 0 = any */
        const char *kubeconfig;
        const char *config; /* FILE */
        const char *tls_cert, *tls_key, *client_ca;
        const char *placement; /* default placement */
        const char *overflow;
        const char *emergency_namespaces; /* "a,b" or "*" */
        const char *programs;             /* program table */
        const char *check;                /* ask a running one instead of serving */
        const char *identity;             /* of this replica; NULL = HOST_ADDRESS */
        const char *leader_namespace;     /* of the Lease; NULL = the pod's own */
        const char *beside_scheduler;     /* Lease of the kube-scheduler that we are to lead beside */
        bool lend_reserve, no_evict, fail_open, no_leader_elect;
        const char *jobs; /* auto | on | off: carry TrainingJobs out */
        const char *job_image, *launcher_image, *scheduler_name;
        unsigned keep_pods_sec;
        unsigned stale_after_sec, lease_seconds, body_max_mib, cache_limit_sec, eviction_grace_sec;
        unsigned audit_sec, leader_lease_sec;

        /* not on the command line */
        void (*log)(void *userdata, int priority, const char *event, const char *text); /* may be NULL */
        void *log_userdata;
};

extern const struct option_program extender_options_program;

/* extender_options_default() - every option as it is when it is not given. */
void extender_options_default(struct extender_options *options);
