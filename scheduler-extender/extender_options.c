/* The command line of remuda-extender: one row an option. */
#include <stddef.h>
#include <unistd.h>

#include "scheduler-extender/extender_options.h"

#define AT(member) offsetof(struct extender_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "store", .type = OPTION_STRING, .offset = AT(store), .value = "dir:PATH|kubernetes",
          .default_ = "kubernetes", .help = "where nodes and pods are read, and binds written" },
        { .name = "kubeconfig", .type = OPTION_STRING, .offset = AT(kubeconfig), .value = "FILE",
          .help = "for --store kubernetes outside a cluster" },
        { .name = "listen", .type = OPTION_STRING, .offset = AT(listen), .value = "ADDR:PORT",
          .default_ = "127.0.0.1:9520", .help = "HTTP; port 0 = any free one" },
        { .name = "config", .type = OPTION_STRING, .offset = AT(config), .value = "FILE",
          .help = "emergencyPriorityClasses, managedResources (YAML)" },
        { .name = "tls-cert", .type = OPTION_STRING, .offset = AT(tls_cert), .value = "FILE",
          .help = "serve HTTPS with this certificate" },
        { .name = "tls-key", .type = OPTION_STRING, .offset = AT(tls_key), .value = "FILE",
          .help = "its key" },
        { .name = "client-ca", .type = OPTION_STRING, .offset = AT(client_ca), .value = "FILE",
          .help = "clients must show a certificate of this CA" },
        { .name = "placement", .type = OPTION_CHOICE, .offset = AT(placement),
          .value = "packed|uniform|largest-free|fastest", .default_ = "packed",
          .help = "where a pod names none" },
        { .name = "overflow", .type = OPTION_STRING, .offset = AT(overflow),
          .value = "DIRECTION[:PERCENT]", .default_ = "none",
          .help = "none, single-to-multi, multi-to-single or both" },
        { .name = "emergency-namespaces", .type = OPTION_STRING, .offset = AT(emergency_namespaces),
          .value = "A,B", .help = "where the urgency label counts; '*' = all" },
        { .name = "lend-reserve", .type = OPTION_BOOL, .offset = AT(lend_reserve),
          .help = "lend idle reserved chips to preemptible pods" },
        { .name = "lease-seconds", .type = OPTION_UNSIGNED, .offset = AT(lease_seconds), .value = "N",
          .default_ = "60", .minimum = 1, .maximum = 86400, .help = "how long a gang's chips are leased" },
        { .name = "stale-after", .type = OPTION_UNSIGNED, .offset = AT(stale_after_sec), .value = "SECONDS",
          .default_ = "60", .maximum = 31536000, .help = "older inventories are not trusted; 0 = never" },
        { .name = "cache-limit", .type = OPTION_UNSIGNED, .offset = AT(cache_limit_sec), .value = "SECONDS",
          .default_ = "300", .maximum = 31536000, .help = "refuse when out of step for longer; 0 = never" },
        { .name = "fail-open", .type = OPTION_BOOL, .offset = AT(fail_open),
          .help = "past --cache-limit go on answering" },
        { .name = "no-evict", .type = OPTION_BOOL, .offset = AT(no_evict),
          .help = "never evict borrowers of the reserve" },
        { .name = "eviction-grace", .type = OPTION_UNSIGNED, .offset = AT(eviction_grace_sec),
          .value = "SECONDS", .default_ = "30", .maximum = 86400, .help = "that evicted borrowers get" },
        { .name = "audit-seconds", .type = OPTION_UNSIGNED, .offset = AT(audit_sec), .value = "N",
          .default_ = "600", .maximum = 86400, .help = "compare the ledger with a fresh list; 0 = never" },
        { .name = "identity", .type = OPTION_STRING, .offset = AT(identity), .value = "NAME",
          .help = "of this replica; HOST_ADDR:PORT if left out" },
        { .name = "leader-namespace", .type = OPTION_STRING, .offset = AT(leader_namespace),
          .value = "NS", .help = "of the Lease remuda-extender; the pod's own if left out" },
        { .name = "leader-lease-seconds", .type = OPTION_UNSIGNED, .offset = AT(leader_lease_sec), .value = "N",
          .default_ = "10", .minimum = 3, .maximum = 600, .help = "a silent leader is replaced after this" },
        { .name = "beside-scheduler", .type = OPTION_STRING, .offset = AT(beside_scheduler),
          .value = "LEASE", .help = "lead where the kube-scheduler leads that holds this Lease" },
        { .name = "no-leader-elect", .type = OPTION_BOOL, .offset = AT(no_leader_elect),
          .help = "commit without asking: there is no other replica" },
        { .name = "programs", .type = OPTION_STRING, .offset = AT(programs), .value = "FILE",
          .help = "program table; jobs need a program per runtime" },
        { .name = "check", .type = OPTION_CHOICE, .offset = AT(check), .value = "healthz|readyz|leaderz",
          .help = "ask the extender at --listen, and end: for probes" },
        { .name = "jobs", .type = OPTION_CHOICE, .offset = AT(jobs), .value = "auto|on|off",
          .default_ = "auto", .help = "carry TrainingJobs out; auto: with --store kubernetes" },
        { .name = "job-image", .type = OPTION_STRING, .offset = AT(job_image), .value = "IMAGE",
          .help = "of job pods whose spec.programs names none" },
        { .name = "launcher-image", .type = OPTION_STRING, .offset = AT(launcher_image), .value = "IMAGE",
          .default_ = "remuda.dev/remuda:0.1.0", .help = "that brings remuda-launch into job pods" },
        { .name = "scheduler-name", .type = OPTION_STRING, .offset = AT(scheduler_name), .value = "NAME",
          .default_ = "remuda", .help = "schedulerName of job pods" },
        { .name = "keep-pods", .type = OPTION_UNSIGNED, .offset = AT(keep_pods_sec), .value = "SECONDS",
          .default_ = "600", .maximum = 31536000, .help = "ended pods of ended jobs stay, for their logs" },
        { .name = "body-max-mib", .type = OPTION_UNSIGNED, .offset = AT(body_max_mib), .value = "MIB",
          .default_ = "64", .minimum = 1, .maximum = 4096, .help = "larger requests are refused (413)" },
        { 0 },
};
/* clang-format on */

const struct option_program extender_options_program = {
        .name = "remuda-extender",
        .summary = "Filters, scores and binds pods that ask for accelerators, for kube-scheduler.",
        .environment_prefix = "REMUDA_EXTENDER_",
        .environment = &environ,
        .after = "See remuda-extender(8) for the rules, the reasons and the endpoints.",
        .specs = specs,
};

void extender_options_default(struct extender_options *options)
{
        *options = (struct extender_options){ 0 };
        options_default(&extender_options_program, options);
}
