/* Extender: the scheduler extender as one object on a loop: its cluster, its HTTP doors, its metrics.
 *
 * `remuda-extender` owns one; so does `remuda-agent --extender ADDR:PORT`, in the agent's process. It listens
 * as soon as it exists, answers /readyz with 503 until the first complete lists are in, and never blocks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/err.h"
#include "base/options.h"

struct extender;

/* The command line of remuda-extender; extender_options_default() fills it in, options.c owns the table. */
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

extern const struct option_program extender_program;

void extender_options_default(struct extender_options *options);

/* extender_new() - open the store, listen, and serve on `loop`. Options are borrowed and outlive the
 * extender. Return: 0; -EINVAL (an option or the configuration file, *err says which), or what store_open()
 * and http_server_new() say. */
int extender_new(sd_event *loop, const struct extender_options *options, struct extender **ret,
                 struct err *err);
void extender_free(struct extender *extender); /* accepts NULL */

const char *extender_address(const struct extender *extender); /* "127.0.0.1:41234", borrowed */
/* extender_check() - ask the extender that listens at options->listen for options->check. Return: 0 (it said
 * 200), -EAGAIN (another status), or why there was no answer. */
int extender_check(const struct extender_options *options, struct err *err);

bool extender_is_ready(const struct extender *extender);

/* extender_is_leader() - may this replica commit now? Asked before every commit; true only after it has read
 * the store anew since it began to lead. extender_watch_leader() - `changed` is called from the loop whenever
 * that changes, and at once if it leads; at most LEADER_WATCHES_MAX. 0 or -E2BIG. */
#define LEADER_WATCHES_MAX 4
bool extender_is_leader(const struct extender *extender);
int extender_watch_leader(struct extender *extender, void (*changed)(void *userdata, bool leading),
                          void *userdata);
