/* Any JSON as an inventory: never a crash, and what is accepted survives the way out and back. */
#include <stdint.h>

#include "agent/inventory/inventory_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *object = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL), *written;
        struct inventory inventory, again;

        if (object == NULL)
                return 0;
        if (inventory_json_decode(object, &inventory, NULL) == 0) {
                written = inventory_json_encode(&inventory);
                if (written == NULL || inventory_json_decode(written, &again, NULL) < 0 ||
                    !inventory_same(&inventory, &again) || !agent_facts_same(&inventory.agent, &again.agent))
                        __builtin_trap();
                inventory_free(&again);
                json_decref(written);
        }
        inventory_free(&inventory);
        json_decref(object);
        return 0;
}
