/* Server options: what the extender and the job controller are told alike: where the store is, how they are
 * asked, who leads, by which rules chips are given out, and what pods of jobs have in common. */
#pragma once

#include <stdbool.h>

#include "base/options.h"
#include "io/log.h"

struct server_options {
        const char *store;          /* "dir:PATH" or "kubernetes" */
        const char *listen;         /* "127.0.0.1:9520"; port 0 = any */
        const char *metrics_listen; /* likewise, or "none" */
        const char *kubeconfig;
        const char *config; /* FILE */
        const char *tls_cert, *tls_key, *client_ca, *client_names;
        const char *placement; /* default placement */
        const char *overflow;
        const char *emergency_namespaces; /* "a,b" or "*" */
        const char *programs;             /* program table */
        const char *log_format, *log_level;
        const char *check;            /* ask a running one instead of serving */
        const char *identity;         /* of this replica; NULL = HOST_ADDRESS */
        const char *leader_namespace; /* of the Lease; NULL = the pod's own */
        const char *namespaces;     /* "a,b": of the controller, the only ones that it reads and writes in */
        const char *kueue;          /* on | off */
        const char *planned_claims; /* on | off */
        const char *job_image, *launcher_image, *scheduler_name, *job_pull_secrets;
        bool lend_reserve, no_evict, take_from_regular, no_leader_elect, fail_open, no_disruption_budgets;
        unsigned stale_after_sec, lease_seconds, lease_share, hold_seconds, cache_limit_sec,
                eviction_grace_sec, leader_lease_sec;
        unsigned keep_pods_sec, pods_wait_sec;

        /* not on the command line */
        void (*log)(void *userdata, int priority, const char *event, const char *text); /* may be NULL */
        void *log_userdata;
};

/* SERVER_OPTIONS_ROWS() - their rows of an option table, but for `listen`, whose default is each program's.
 * @at: AT(member) is the member's offset in the program's own struct */
/* clang-format off */
#define SERVER_OPTIONS_ROWS(at) \
        { .name = "metrics-listen", .type = OPTION_STRING, .offset = at(metrics_listen), .value = "ADDR:PORT|none", \
          .default_ = "none", .help = "/metrics, /healthz and /readyz alone, by plain HTTP" }, \
        LOG_ROWS(at(log_format), at(log_level), "text", "info"), \
        { .name = "store", .type = OPTION_STRING, .offset = at(store), .value = "dir:PATH|kubernetes", \
          .default_ = "kubernetes", .help = "where nodes, pods and jobs are read and written" }, \
        { .name = "kubeconfig", .type = OPTION_STRING, .offset = at(kubeconfig), .value = "FILE", \
          .help = "for --store kubernetes outside a cluster" }, \
        { .name = "config", .type = OPTION_STRING, .offset = at(config), .value = "FILE", \
          .help = "emergencyPriorityClasses, emergencyNamespaces, managedResources (YAML)" }, \
        { .name = "tls-cert", .type = OPTION_STRING, .offset = at(tls_cert), .value = "FILE", \
          .help = "serve HTTPS with this certificate" }, \
        { .name = "tls-key", .type = OPTION_STRING, .offset = at(tls_key), .value = "FILE", \
          .help = "its key" }, \
        { .name = "client-ca", .type = OPTION_STRING, .offset = at(client_ca), .value = "FILE", \
          .help = "clients must show a certificate of this CA, made for clients (clientAuth)" }, \
        { .name = "client-names", .type = OPTION_STRING, .offset = at(client_names), .value = "A,B", \
          .help = "... that has one of these DNS or common names; else any" }, \
        { .name = "placement", .type = OPTION_CHOICE, .offset = at(placement), \
          .value = "packed|uniform|largest-free|fastest", .default_ = "packed", \
          .help = "where a pod names none" }, \
        { .name = "overflow", .type = OPTION_STRING, .offset = at(overflow), \
          .value = "DIRECTION[:PERCENT]", .default_ = "none", \
          .help = "none, single-to-multi, multi-to-single or both" }, \
        { .name = "emergency-namespaces", .type = OPTION_STRING, .offset = at(emergency_namespaces), \
          .value = "A,B", .help = "where the urgency label counts; '*' = all" }, \
        { .name = "lend-reserve", .type = OPTION_BOOL, .offset = at(lend_reserve), \
          .help = "lend idle reserved chips to preemptible pods" }, \
        { .name = "stale-after", .type = OPTION_UNSIGNED, .offset = at(stale_after_sec), .value = "SECONDS", \
          .default_ = "60", .maximum = 31536000, .help = "nodes silent for longer get no pods and lose jobs; 0 = never" }, \
        { .name = "cache-limit", .type = OPTION_UNSIGNED, .offset = at(cache_limit_sec), .value = "SECONDS", \
          .default_ = "300", .maximum = 31536000, .help = "refuse when out of step for longer; 0 = never" }, \
        { .name = "hold-seconds", .type = OPTION_UNSIGNED, .offset = at(hold_seconds), .value = "N", \
          .default_ = "600", .maximum = 31536000, .help = "who waits keeps others from chips so long; 0 = ever" }, \
        { .name = "no-evict", .type = OPTION_BOOL, .offset = at(no_evict), \
          .help = "never evict anybody for an emergency" }, \
        { .name = "take-from-regular", .type = OPTION_BOOL, .offset = at(take_from_regular), \
          .help = "where the reserve is full, emergencies evict preemptible pods of regular nodes" }, \
        { .name = "eviction-grace", .type = OPTION_UNSIGNED, .offset = at(eviction_grace_sec), \
          .value = "SECONDS", .default_ = "30", .maximum = 86400, .help = "that evicted borrowers and job pods get" }, \
        { .name = "identity", .type = OPTION_STRING, .offset = at(identity), .value = "NAME", \
          .help = "of this replica; HOST_ADDR:PORT if left out" }, \
        { .name = "leader-namespace", .type = OPTION_STRING, .offset = at(leader_namespace), \
          .value = "NS", .help = "of the program's Lease; the pod's own if left out" }, \
        { .name = "leader-lease-seconds", .type = OPTION_UNSIGNED, .offset = at(leader_lease_sec), .value = "N", \
          .default_ = "10", .minimum = 3, .maximum = 600, .help = "a silent leader is replaced after this" }, \
        { .name = "no-leader-elect", .type = OPTION_BOOL, .offset = at(no_leader_elect), \
          .help = "act without asking: there is no other replica" }, \
        { .name = "programs", .type = OPTION_STRING, .offset = at(programs), .value = "FILE", \
          .help = "program table; jobs need a program per runtime" }, \
        { .name = "check", .type = OPTION_CHOICE, .offset = at(check), .value = "healthz|readyz|leaderz", \
          .help = "ask the one at --listen, and end: for probes" }, \
        { .name = "job-image", .type = OPTION_STRING, .offset = at(job_image), .value = "IMAGE", \
          .help = "of job pods whose spec.programs names none" }, \
        { .name = "launcher-image", .type = OPTION_STRING, .offset = at(launcher_image), .value = "IMAGE", \
          .default_ = "remuda.dev/remuda:0.1.0", .help = "that brings remuda-launch into job pods" }, \
        { .name = "job-pull-secrets", .type = OPTION_STRING, .offset = at(job_pull_secrets), .value = "A,B", \
          .help = "Secrets by which job pods pull images, each in the job's namespace" }, \
        { .name = "scheduler-name", .type = OPTION_STRING, .offset = at(scheduler_name), .value = "NAME", \
          .default_ = "remuda", .help = "schedulerName of job pods" }, \
        { .name = "kueue", .type = OPTION_CHOICE, .offset = at(kueue), .value = "on|off", .default_ = "off", \
          .help = "jobs with a queue-name label wait until Kueue admits them" }, \
        { .name = "planned-claims", .type = OPTION_CHOICE, .offset = at(planned_claims), .value = "on|off", .default_ = "off", \
          .help = "allocate claims of jobs on nodes that offer: planned" }, \
        { .name = "keep-pods", .type = OPTION_UNSIGNED, .offset = at(keep_pods_sec), .value = "SECONDS", \
          .default_ = "600", .maximum = 31536000, .help = "ended pods of ended jobs stay, for their logs" }, \
        { .name = "no-disruption-budgets", .type = OPTION_BOOL, .offset = at(no_disruption_budgets), \
          .help = "evictions of job pods are never refused, whatever a job says" }, \
        { .name = "pods-wait", .type = OPTION_UNSIGNED, .offset = at(pods_wait_sec), .value = "SECONDS", \
          .default_ = "600", .maximum = 31536000, .help = "jobs whose pods are refused, or on no node, keep plan and pods; 0 = for ever" }
/* clang-format on */
