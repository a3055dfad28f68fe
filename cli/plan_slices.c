/* remuda plan slices: the ResourceSlices that the agent would publish of a machine, with the agent's own
 * code. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/discovery/discovery.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/object_name.h"
#include "base/options.h"
#include "base/version.h"
#include "cli/command/document.h"
#include "cli/command/open_tree.h"
#include "cli/plan_more.h"
#include "plugin/dra/slices.h"
#include "plugin/dra/slices_facts.h"

struct slices_arguments {
        const char *root, *machine, *node, *output, *health;
};

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "root", .type = OPTION_STRING, .offset = offsetof(struct slices_arguments, root), .value = "DIR",
          .help = "look at DIR instead of /" },
        { .name = "machine", .type = OPTION_STRING, .offset = offsetof(struct slices_arguments, machine), .value = "FILE",
          .help = "look at a machine file" },
        { .name = "node-name", .type = OPTION_STRING, .offset = offsetof(struct slices_arguments, node), .value = "NAME",
          .help = "name of the node (the host's name)" },
        { .name = "sick", .type = OPTION_CHOICE, .offset = offsetof(struct slices_arguments, health),
          .value = "tainted|left-out", .default_ = "tainted",
          .help = "devices that must not be used; left-out: as for clusters before 1.36" },
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

static int print(const struct inventory *inventory, const struct slices_fact *facts,
                 const struct slices_arguments *arguments)
{
        const struct slices_options options = { .node = inventory->node,
                                                .generation = 1,
                                                .taints = strcmp(arguments->health, "tainted") == 0,
                                                .facts = facts };
        json_t *slices = NULL, *list;
        int r = slices_build(inventory, &options, &slices, NULL);

        list = r < 0 ? NULL
                     : json_pack("{s:s, s:s, s:o}", "apiVersion", "v1", "kind", "List", "items", slices);
        r = document_print(list, strcmp(arguments->output, "yaml") == 0, 0);
        json_decref(list);
        if (r == 0)
                return EXIT_DONE;
        fputs("remuda plan slices: no memory\n", stderr);
        return EXIT_FAILED;
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

static int run(const struct slices_arguments *arguments)
{
        CLEANUP(inventory_free) struct inventory inventory;
        CLEANUP(free_p) struct slices_fact *facts = NULL;
        struct tree *tree;
        struct err err = { 0 };
        int r = open_tree(arguments->root, arguments->machine, &tree, &err);

        inventory_init(&inventory);
        if (r >= 0) {
                r = discovery_run(tree, NULL, &inventory, &err);
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
        return print(&inventory, facts, arguments);
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
