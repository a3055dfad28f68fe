/* Opens what --root or --machine names, or this machine. */
#include "cli/command/open_tree.h"

#include <stddef.h>

int open_tree(const char *root, const char *machine, struct tree **ret, struct err *err)
{
        if (machine != NULL)
                return tree_open_machine(machine, ret, err);
        return tree_open(root != NULL ? root : "/", ret, err);
}
