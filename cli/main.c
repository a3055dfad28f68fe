/* remuda: finds the command and runs it. */
#include <stdio.h>
#include <string.h>

#include "base/exit_code.h"
#include "base/version.h"
#include "cli/command/command.h"

static void print_help(FILE *out)
{
        fprintf(out, "usage: remuda COMMAND [OPTION...]\n\ncommands:\n");
        for (const struct command *c = commands; c->name != NULL; c++)
                fprintf(out, "  %-10s %s\n", c->name, c->summary);
        fprintf(out, "\n`remuda COMMAND --help` says more; so does `man remuda`.\n");
}

int main(int argc, char **argv)
{
        if (argc < 2) {
                print_help(stderr);
                return EXIT_USAGE;
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
                print_help(stdout);
                return EXIT_DONE;
        }
        if (strcmp(argv[1], "--version") == 0) {
                printf("remuda %s\n", REMUDA_VERSION);
                return EXIT_DONE;
        }
        for (const struct command *c = commands; c->name != NULL; c++)
                if (strcmp(c->name, argv[1]) == 0)
                        return c->run(argc - 1, argv + 1);

        fprintf(stderr, "remuda: no command '%s'; `remuda --help` lists them\n", argv[1]);
        return EXIT_USAGE;
}
