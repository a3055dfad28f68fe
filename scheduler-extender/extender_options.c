/* The command line of remuda-extender: one row an option. */
#include <stddef.h>
#include <unistd.h>

#include "scheduler-extender/extender_options.h"

#define AT(member)        offsetof(struct extender_options, member)
#define AT_SERVER(member) offsetof(struct extender_options, server.member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "listen", .type = OPTION_STRING, .offset = AT_SERVER(listen), .value = "ADDR:PORT",
          .default_ = "127.0.0.1:9520", .help = "HTTP; port 0 = any free one" },
        SERVER_OPTIONS_ROWS(AT_SERVER),
        { .name = "lease-seconds", .type = OPTION_UNSIGNED, .offset = AT_SERVER(lease_seconds), .value = "N",
          .default_ = "60", .minimum = 1, .maximum = 86400, .help = "how long a gang's chips are leased" },
        { .name = "lease-share", .type = OPTION_UNSIGNED, .offset = AT_SERVER(lease_share), .value = "PERCENT",
          .default_ = "50", .maximum = 100, .help = "that gangs of one namespace may lease of a resource; 0 = all" },
        { .name = "fail-open", .type = OPTION_BOOL, .offset = AT_SERVER(fail_open),
          .help = "past --cache-limit go on answering" },
        { .name = "audit-seconds", .type = OPTION_UNSIGNED, .offset = AT(audit_sec), .value = "N",
          .default_ = "600", .maximum = 86400, .help = "compare the ledger with a fresh list; 0 = never" },
        { .name = "shortlist", .type = OPTION_UNSIGNED, .offset = AT(shortlist), .value = "N",
          .default_ = "0", .maximum = 1000000, .help = "filter names the N best of the nodes that fit; 0 = all" },
        { .name = "waiting-seconds", .type = OPTION_UNSIGNED, .offset = AT(waiting_sec), .value = "N",
          .default_ = "30", .maximum = 86400, .help = "an Event says why a pod waits that has for so long; 0 = none" },
        { .name = "beside-scheduler", .type = OPTION_STRING, .offset = AT(beside_scheduler),
          .value = "LEASE", .help = "lead where the kube-scheduler leads that holds this Lease" },
        { .name = "node-conditions", .type = OPTION_CHOICE, .offset = AT(node_conditions), .value = "on|off",
          .default_ = "off", .help = "Nodes have the condition AcceleratorsHealthy" },
        { .name = "taint-all-bad", .type = OPTION_BOOL, .offset = AT(taint_all_bad),
          .help = "Nodes none of whose accelerators is healthy have a taint" },
        { .name = "jobs", .type = OPTION_CHOICE, .offset = AT(jobs), .value = "on|off",
          .default_ = "off", .help = "carry TrainingJobs out, as remuda-controller does" },
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
