/* A `remuda` that knows `plan` alone, for who works on the planners: `make planner` builds it. Never
 * installed. */
#include <stdio.h>
#include <string.h>

#include "base/exit_code.h"
#include "planner/commands/plan.h"

int main(int argc, char **argv)
{
        const struct plan_host nothing = { .more = NULL };

        if (argc < 2 || strcmp(argv[1], "plan") != 0) {
                fprintf(stderr, "usage: remuda plan PLANNER [OPTION...] ...\n");
                return EXIT_USAGE;
        }
        return plan_run(&nothing, argc - 1, argv + 1);
}
