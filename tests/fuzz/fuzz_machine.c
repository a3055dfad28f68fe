/* Any bytes as a machine file: never a crash or a hang; what is read is discovered, and what was found is the
 * same after a way through JSON. That it is the same machine when it is recorded: fuzz_machine_record.c. */
#include <stdint.h>

#include "agent/discovery/discovery.h"
#include "agent/inventory/inventory_json.h"
#include "agent/tree/tree_machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void go_through_json(const struct inventory *inventory)
{
        json_t *object = inventory_json_encode(inventory);
        struct inventory again;

        if (object == NULL || inventory_json_decode(object, &again, NULL) < 0)
                __builtin_trap();
        inventory_free(&again);
        json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct tree *tree = NULL;
        struct inventory inventory;

        if (tree_machine_open_bytes("fuzz", (const char *) data, size, &tree, NULL) < 0)
                return 0;
        if (discovery_run(tree, NULL, &inventory, NULL) == 0) {
                go_through_json(&inventory);
                inventory_free(&inventory);
        }
        tree_close(tree);
        return 0;
}
