/* Any bytes as a machine file: never a crash or a hang; what is read is discovered, recorded with masks, and
 * read again, and gives the same number of devices. */
#include <stdint.h>

#include "agent/discovery/discovery.h"
#include "agent/inventory/inventory_json.h"
#include "agent/tree/tree_machine.h"
#include "agent/tree/tree_record.h"
#include "base/text.h"

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

/* Return: how many devices it has; SIZE_MAX = it is refused. */
static size_t look(struct tree *tree, bool first)
{
        struct inventory inventory;
        size_t count;

        if (discovery_run(tree, NULL, &inventory, NULL) < 0)
                return SIZE_MAX;
        count = inventory.device_count;
        if (first) /* what is recorded is the same machine */
                go_through_json(&inventory);
        inventory_free(&inventory);
        return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct tree *tree = NULL, *again = NULL;
        struct text text = { 0 };
        size_t count;

        if (tree_machine_open_bytes("fuzz", (const char *) data, size, &tree, NULL) < 0)
                return 0;
        if (tree_record_begin(tree, NULL) < 0)
                __builtin_trap();
        count = look(tree, true);
        text_append(&text, "# remuda machine 1\n");
        if (tree_record_take(tree, false, &text, NULL) < 0 ||
            tree_machine_open_bytes("again", text.data, text.size_bytes, &again, NULL) < 0)
                __builtin_trap();
        if (look(again, false) != count)
                __builtin_trap();
        tree_close(again);
        tree_close(tree);
        text_free(&text);
        return 0;
}
