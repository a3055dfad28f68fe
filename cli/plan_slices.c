/* remuda plan slices: the ResourceSlices that the agent would publish of a machine, with the agent's own
 * code. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/configuration.h"
#include "agent/discovery/discovery.h"
#include "agent/stages.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/object_name.h"
#include "base/options.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/document.h"
#include "cli/command/open_tree.h"
#include "cli/plan_more.h"
#include "plugin/dra/slices.h"
#include "plugin/dra/slices_facts.h"

struct slices_arguments {
        const char *root, *machine, *node, *output, *health, *parts, *config;
        struct option_list held;
};

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "root", .type = OPTION_STRING, .offset = offsetof(struct slices_arguments, root), .value = "DIR",
          .help = "look at DIR instead of /" },
        { .name = "machine", .type = OPTION_STRING, .offset = offsetof(struct slices_arguments, machine), .value = "FILE",
          .help = "look at a machine file" },
        { .name = "node-name", .type = OPTION_STRING, .offset = offsetof(struct slices_arguments, node), .value = "NAME",
          .help = "name of the node (the host's name)" },
        { .name = "config", .type = OPTION_STRING, .offset = offsetof(struct slices_arguments, config), .value = "FILE",
          .help = "the agent's configuration: resource names, shares, pool, selectors" },
        { .name = "sick", .type = OPTION_CHOICE, .offset = offsetof(struct slices_arguments, health),
          .value = "tainted|left-out", .default_ = "tainted",
          .help = "devices that must not be used; left-out: as for clusters before 1.36" },
        { .name = "parts", .type = OPTION_CHOICE, .offset = offsetof(struct slices_arguments, parts),
          .value = "offered|left-out", .default_ = "offered",
          .help = "whole groups, counters and shares; left-out: as for clusters before 1.36" },
        { .name = "held", .type = OPTION_LIST, .offset = offsetof(struct slices_arguments, held), .value = "ID",
          .help = "a device that a claim holds: the rest of its group comes first; may be given again" },
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .offset = offsetof(struct slices_arguments, output),
          .value = "json|yaml", .default_ = "yaml", .help = "a List of ResourceSlices, as kubectl takes it" },
        { .name = NULL },
};
/* clang-format on */

const struct option_program plan_more_slices_options = {
        .name = "remuda plan slices",
        .summary = "The ResourceSlices that remuda-agent --dra on would publish of a machine.",
        .after = "Nothing is written anywhere; see man remuda-plan.\n",
        .specs = specs,
};

/* What an agent with that configuration would not publish is not printed either. */
static bool is_offered(const struct plugin_config *config)
{
        if (config->offer != PLUGIN_CONFIG_PLUGIN && config->offer != PLUGIN_CONFIG_PLANNED)
                return true;
        fprintf(stderr, "remuda plan slices: offer: %s has devices in no slice\n",
                plugin_config_offers[config->offer]);
        return false;
}

static int print(const struct inventory *inventory, const struct slices_fact *facts,
                 const struct plugin_config *config, const struct slices_arguments *arguments)
{
        bool parts = strcmp(arguments->parts, "offered") == 0;
        unsigned taints = strcmp(arguments->health, "tainted") == 0 ? SLICES_TAINTS : 0;
        const struct slices_options options = { .node = inventory->node,
                                                .generation = 1,
                                                .features = taints |
                                                            (parts ? SLICES_COUNTERS | SLICES_SHARES : 0),
                                                .bundles = parts,
                                                .facts = facts,
                                                .config = config };
        json_t *slices = NULL, *list;
        int r = 0;

        if (is_offered(config))
                r = slices_build(inventory, &options, &slices, NULL);
        else
                slices = json_array();

        list = r < 0 ? NULL
                     : json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "List", "items", slices);
        r = document_print(list, strcmp(arguments->output, "yaml") == 0, 0);
        json_decref(list);
        if (r == 0)
                return EXIT_DONE;
        fputs("remuda plan slices: no memory\n", stderr);
        return EXIT_FAILED;
}

/* Return: the first of --held that is no device of the machine; NULL = all are. */
static const char *note_held(const struct inventory *inventory, const struct option_list *held,
                             struct slices_fact *facts)
{
        for (size_t i = 0; i < held->count; i++) {
                size_t index = 0;

                while (index < inventory->device_count &&
                       strcmp(inventory->devices[index].id, held->items[i]) != 0)
                        index++;
                if (index == inventory->device_count)
                        return held->items[i];
                facts[index].held = true;
        }
        return NULL;
}

static int name_node(const struct slices_arguments *arguments, struct inventory *inventory)
{
        if (arguments->node != NULL)
                (void) snprintf(inventory->node, sizeof(inventory->node), "%s", arguments->node);
        else if (gethostname(inventory->node, sizeof(inventory->node) - 1) < 0)
                return -errno;
        return object_name_dns_valid(inventory->node, strlen(inventory->node)) &&
                               (arguments->node == NULL || strcmp(arguments->node, inventory->node) == 0)
                       ? 0
                       : -EINVAL;
}

/* As the agent does with its configuration; without one, by the defaults. */
static int look(const struct tree *tree, const struct configuration *configuration, struct inventory *ret,
                struct err *err)
{
        int r = discovery_run(tree, &configuration->agent.discovery, ret, err);

        return r < 0 ? r
                     : stages_describe(&configuration->agent, &configuration->plugin->resources, ret, err);
}

static int run(const struct slices_arguments *arguments)
{
        const struct agent_options agent = { .config = arguments->config };
        CLEANUP(configuration_free) struct configuration configuration = { .plugin = NULL };
        CLEANUP(inventory_free) struct inventory inventory;
        CLEANUP(free_p) struct slices_fact *facts = NULL;
        const char *stranger;
        struct tree *tree;
        struct err err = { 0 };
        int r = configuration_load(&agent, &configuration, &err);

        inventory_init(&inventory);
        if (r < 0) {
                fprintf(stderr, "remuda plan slices: %s\n", err.msg);
                return exit_code_of(r);
        }
        r = open_tree(arguments->root, arguments->machine, &tree, &err);
        if (r >= 0) {
                r = look(tree, &configuration, &inventory, &err);
                if (r >= 0)
                        facts = calloc(inventory.device_count + 1, sizeof(*facts));
                if (facts != NULL) {
                        tree_budget(tree, UINT64_MAX);
                        slices_facts_read(tree, &inventory, facts);
                }
                tree_close(tree);
        }
        if (r < 0) {
                fprintf(stderr, "remuda plan slices: %s\n", err.msg);
                return r == -E2BIG ? EXIT_FAILED : exit_code_of(r); /* larger than any machine */
        }
        if (facts == NULL) {
                fputs("remuda plan slices: no memory\n", stderr);
                return EXIT_FAILED;
        }
        if (name_node(arguments, &inventory) < 0) {
                fprintf(stderr,
                        "remuda plan slices: '%.100s' is no name of a node (lower-case letters, digits, '-' "
                        "and "
                        "'.'); give --node-name\n",
                        arguments->node != NULL ? arguments->node : inventory.node);
                return EXIT_USAGE;
        }
        stranger = note_held(&inventory, &arguments->held, facts);
        if (stranger != NULL) {
                fprintf(stderr, "remuda plan slices: --held %.100s: no device of this machine\n", stranger);
                return EXIT_USAGE;
        }
        return print(&inventory, facts, configuration.plugin, arguments);
}

int plan_more_slices(int argc, char **argv, const struct plan_host *host)
{
        struct slices_arguments arguments = { 0 };
        size_t operands = 0;
        int r = options_start(&plan_more_slices_options, REMUDA_VERSION, argc, argv, &arguments, &operands,
                              stdout, stderr);

        (void) host;
        if (r >= 0)
                return r;
        if (arguments.root == NULL || arguments.machine == NULL)
                return run(&arguments);
        fputs("remuda plan slices: --root and --machine exclude each other; `remuda plan slices --help` says "
              "what it takes\n",
              stderr);
        return EXIT_USAGE;
}
