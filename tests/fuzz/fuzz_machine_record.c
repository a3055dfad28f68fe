/* Any bytes as a machine file: what is read of it is recorded with masks while it is discovered, and read
 * again it gives the same number of devices. Twice the work of fuzz_machine.c, from the same seeds. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/discovery/discovery.h"
#include "agent/tree/tree_machine.h"
#include "agent/tree/tree_record.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool look(struct tree *tree, size_t *ret_count)
{
        struct inventory inventory;

        if (discovery_run(tree, NULL, &inventory, NULL) < 0)
                return false;
        *ret_count = inventory.device_count;
        inventory_free(&inventory);
        return true;
}

/* A machine that can be discovered. */
static void go_through_record(struct tree *tree, size_t count)
{
        struct text text = { 0 };
        struct tree *again = NULL;
        size_t count_again;

        text_append(&text, "# remuda machine 1\n");
        if (tree_record_take(tree, false, &text, NULL) < 0 ||
            tree_machine_open_bytes("again", text.data, text.size_bytes, &again, NULL) < 0 ||
            !look(again, &count_again) || count_again != count)
                __builtin_trap();
        tree_close(again);
        text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct tree *tree = NULL;
        size_t count;

        if (tree_machine_open_bytes("fuzz", (const char *) data, size, &tree, NULL) < 0)
                return 0;
        if (tree_record_begin(tree, NULL) < 0)
                __builtin_trap();
        if (look(tree, &count)) /* as `remuda machine record`: what cannot be discovered is not recorded */
                go_through_record(tree, count);
        tree_close(tree);
        return 0;
}
