/* Options of remuda-agent: a row each; and what the node is called. */
#include "agent/agent_options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "io/log.h"

#define AT(member) offsetof(struct agent_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "root", .type = OPTION_STRING, .offset = AT(root), .value = "DIR", .default_ = "/",
          .help = "the machine: a directory with sys/, proc/, dev/" },
        { .name = "machine", .type = OPTION_STRING, .offset = AT(machine), .value = "FILE",
          .help = "a machine file instead of a root" },
        { .name = "node-name", .type = OPTION_STRING, .offset = AT(node_name), .value = "NAME",
          .help = "name of this node (the host's name)" },
        { .name = "listen", .type = OPTION_STRING, .offset = AT(listen), .value = "ADDR:PORT|none",
          .default_ = "127.0.0.1:9510", .help = "HTTP: inventory, metrics, health" },
        { .name = "store", .type = OPTION_STRING, .offset = AT(store), .value = "dir:PATH|kubernetes|none",
          .default_ = "none", .help = "where the inventory is written" },
        { .name = "kubeconfig", .type = OPTION_STRING, .offset = AT(kubeconfig), .value = "FILE",
          .help = "for --store kubernetes outside a cluster" },
        { .name = "kubelet-dir", .type = OPTION_STRING, .offset = AT(kubelet_dir), .value = "DIR|none",
          .help = "where its socket is (KUBELET-ROOT/device-plugins)" },
        { .name = "kubelet-root", .type = OPTION_STRING, .offset = AT(kubelet_root), .value = "DIR",
          .default_ = "/var/lib/kubelet", .help = "the kubelet's folder" },
        { .name = "dra", .type = OPTION_CHOICE, .offset = AT(dra), .value = "auto|off|on|only|planned",
          .help = "devices by claims: as `offer` says (auto), too, alone, planned" },
        { .name = "pod-uid", .type = OPTION_STRING, .offset = AT(pod_uid), .value = "UID",
          .help = "in names of DRA's sockets: of two agents" },
        { .name = "cdi-dir", .type = OPTION_STRING, .offset = AT(cdi_dir), .value = "DIR",
          .help = "where CDI specs are written (/var/run/cdi)" },
        { .name = "pod-resources", .type = OPTION_STRING, .offset = AT(pod_resources), .value = "SOCKET|none",
          .help = "who holds what (../pod-resources/kubelet.sock)" },
        { .name = "launch-socket", .type = OPTION_STRING, .offset = AT(launch_socket), .value = "PATH|none",
          .help = "the launch door (/run/remuda/agent.sock)" },
        { .name = "programs", .type = OPTION_STRING, .offset = AT(programs), .value = "FILE",
          .help = "program table (/etc/remuda/programs.yaml)" },
        { .name = "config", .type = OPTION_STRING, .offset = AT(config), .value = "FILE",
          .help = "configuration; read again when it changes" },
        { .name = "extender", .type = OPTION_STRING, .offset = AT(extender), .value = "ADDR:PORT",
          .help = "also serve the scheduler extender here" },
        { .name = "extender-config", .type = OPTION_STRING, .offset = AT(extender_config), .value = "FILE",
          .help = "its configuration, as of remuda-extender" },
        { .name = "state", .type = OPTION_STRING, .offset = AT(state), .value = "FILE|none",
          .help = "faults remembered (ROOT/var/lib/remuda/...)" },
        { .name = "rescan-ms", .type = OPTION_UNSIGNED, .offset = AT(rescan_ms), .value = "MS",
          .default_ = "1000", .minimum = 50, .maximum = 60000, .help = "how often a tree without events is read" },
        { .name = "compat", .type = OPTION_CHOICE, .offset = AT(compat), .value = "none|dcgm|otel",
          .help = "metrics also under these names" },
        LOG_ROWS(AT(log_format), AT(log_level), NULL, NULL),
        { .name = "check-config", .type = OPTION_BOOL, .offset = AT(check_config),
          .help = "read --config, say what is wrong, and leave" },
        { .name = "dry-run", .type = OPTION_BOOL, .offset = AT(dry_run),
          .help = "print the inventory once and leave" },
        { 0 },
};
/* clang-format on */

const struct option_program agent_options_program = {
        .name = "remuda-agent",
        .summary =
                "Tells what accelerators this node has, how healthy they are, and hands them to the kubelet.",
        .environment_prefix = "REMUDA_AGENT_",
        .environment = &environ,
        .after = "See remuda-agent(8) for the configuration, the endpoints and the signals.",
        .specs = specs,
};

int agent_options_name_node(const struct agent_options *options, char ret[AGENT_OPTIONS_NODE_BYTES],
                            struct err *err)
{
        memset(ret, 0, AGENT_OPTIONS_NODE_BYTES);
        if (options->node_name == NULL)
                return gethostname(ret, AGENT_OPTIONS_NODE_BYTES - 1) < 0
                               ? err_set(err, -errno, "the host's name: %m; give --node-name")
                               : 0;
        return options->node_name[0] != '\0' && text_copy(ret, AGENT_OPTIONS_NODE_BYTES, options->node_name)
                       ? 0
                       : err_set(err, -EINVAL, "--node-name: must be 1 to %d bytes",
                                 AGENT_OPTIONS_NODE_BYTES - 1);
}
