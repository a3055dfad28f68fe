/* Opens what --root or --machine names, or this machine. */
#include "cli/command/open_tree.h"

#include <stddef.h>

#include "agent/tree/tree_directory.h"
#include "agent/tree/tree_machine.h"

int open_tree(const char *root, const char *machine, struct tree **ret, struct err *err)
{
        if (machine != NULL)
                return tree_machine_open(machine, ret, err);
        return tree_directory_open(root != NULL ? root : "/", ret, err);
}
