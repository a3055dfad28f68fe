/* Node class: its names. */
#include "agent/inventory/node_class.h"

#include <assert.h>

#include "base/cleanup.h"

/* clang-format off */
const char *const node_class_names[] = {
        [NODE_CLASS_ANY]    = "any",
        [NODE_CLASS_SINGLE] = "single",
        [NODE_CLASS_MULTI]  = "multi",
        [NODE_CLASS_COUNT]  = NULL,
};
/* clang-format on */
static_assert(ARRAY_SIZE(node_class_names) == NODE_CLASS_COUNT + 1, "a node class without a name");

const char *node_class_name(enum node_class node_class)
{
        assert(node_class < NODE_CLASS_COUNT);
        return node_class_names[node_class];
}
