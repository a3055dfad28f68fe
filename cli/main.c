/* remuda: finds the command and runs it. It is kubectl's plugin where it is called kubectl-remuda, and
 * completes that one's words where it is called kubectl_complete-remuda. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/exit_code.h"
#include "base/options.h"
#include "base/version.h"
#include "cli/command/command.h"
#include "cli/command/commands.h"

static void print_help(const char *called, FILE *out)
{
        fprintf(out, "usage: %s COMMAND [OPTION...]\n\ncommands:\n", called);
        for (const struct command *c = commands; c->name != NULL; c++)
                fprintf(out, "  %-14s %s\n", c->name, c->summary);
        fprintf(out, "\n`%s COMMAND --help` says more; so does `man remuda`.\n", called);
}

int main(int argc, char **argv)
{
        char called[OPTIONS_CALLED_BYTES];

        options_called("remuda", called);
        if (strcmp(program_invocation_short_name, "kubectl_complete-remuda") == 0)
                return command_complete(argc, argv);
        if (argc < 2) {
                print_help(called, stderr);
                return EXIT_USAGE;
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
                print_help(called, stdout);
                return EXIT_DONE;
        }
        if (strcmp(argv[1], "--version") == 0) {
                printf("remuda %s\n", REMUDA_VERSION);
                return EXIT_DONE;
        }
        for (const struct command *c = commands; c->name != NULL; c++)
                if (strcmp(c->name, argv[1]) == 0)
                        return c->run(argc - 1, argv + 1);

        if (strcmp(argv[1], "__complete") == 0)
                return command_complete(argc - 1, argv + 1);
        fprintf(stderr, "%s: no command '%s'; `%s --help` lists them\n", called, argv[1], called);
        return EXIT_USAGE;
}
